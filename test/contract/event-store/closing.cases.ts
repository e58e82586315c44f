/** What every event store promises of its end and the next start (shared/event-store/port.ts). */
import { describe, expect, test } from '@jest/globals';
import { StoreUnavailable } from '../../../shared/event-store/errors.ts';
import type { EventStore, Position, RecordedEvent } from '../../../shared/event-store/port.ts';
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
      const appends = Array.from({ length: 30 }, (_, n) =>
        store.append(named(n), 'none', batchOf(2)),
      );
      await store.close();
      const acknowledged = await Promise.all(appends);
      store = await reopen();
      const again = acknowledged.map((events) => placed(store, Promise.resolve(events)));
      const stored = (await Promise.all(again)).flat();
      const found = await store.readAll(start, 100);
      expect(new Set(found)).toEqual(new Set(stored));
      const [, last] = await store.readStream(named(0));
      const next = await store.append(named(0), at(last as RecordedEvent), batchOf(1));
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
