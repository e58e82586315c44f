/** What every event store promises of its end and the next start (shared/event-store/port.ts). */
import { describe, expect, test } from '@jest/globals';
import { AppendOutcomeUnknown, StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { EventStore, Position } from '../../shared/event-store/port.ts';
import {
  at,
  batchOf,
  collect,
  type EventStoreDriver,
  eventsOf,
  openForGroup,
  placed,
} from './opened.ts';

export const closingCases = (driver: EventStoreDriver): void => {
  describe('closing', () => {
    let store: EventStore;
    let start: Position | null;
    const { named, reopen } = openForGroup(driver, (opened) => {
      ({ store, start } = opened);
    });

    test('ends after everything appended so far is durable; the next start finds it', async () => {
      const [, last] = await store.append(named('first'), 'none', batchOf(2));
      const appends = Array.from({ length: 30 }, (_, n) =>
        store.append(named(n), 'none', batchOf(2)),
      );
      await store.close();
      const outcomes = await Promise.allSettled(appends);
      store = await reopen();
      const stored: object[] = [];
      for (const outcome of outcomes) {
        // A server that does not answer within a moment is not waited for.
        if (outcome.status === 'rejected')
          expect(outcome.reason).toBeInstanceOf(AppendOutcomeUnknown);
        else stored.push(...(await placed(store, Promise.resolve(outcome.value))));
      }
      expect(await store.readAll(start, 100)).toEqual(expect.arrayContaining(stored));
      const next = await store.append(named('first'), at(last), batchOf(1));
      expect(next[0]).toMatchObject({ revision: 2, previousHash: last?.hash });
    });

    test('rejects later calls, ends the subscriptions and can be repeated', async () => {
      const live = collect(store, start, () => false);
      await Promise.all([store.close(), store.close()]);
      await expect(store.append(named(1), 'none', batchOf(1))).rejects.toThrow(StoreUnavailable);
      await expect(store.readStream(named(1))).rejects.toThrow(StoreUnavailable);
      expect(eventsOf(await live)).toEqual([]);
      store = await reopen();
    });
  });
};
