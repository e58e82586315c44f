/** What every event store says of a stream that its administrator deleted or cut (docs/eventstoredb.md). */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { isReadable } from '../../shared/event-store/codec.ts';
import { StreamNotWhole } from '../../shared/event-store/errors.ts';
import type { EventStore, Position } from '../../shared/event-store/port.ts';
import { isPaymentEvent } from '../../shared/payment/events.ts';
import type { Administrator } from '../support/eventstoredb-administrator.ts';
import { authorized, newEvent, timeOf } from '../support/payment-events.ts';
import { at, batchOf, collect, type EventStoreDriver, eventsOf, openForGroup } from './opened.ts';

const WAYS = {
  'a soft delete': (by: Administrator, stream: string) => by.softDelete(stream),
  'a tombstone': (by: Administrator, stream: string) => by.tombstone(stream),
  'a truncation': (by: Administrator, stream: string) => by.truncate(stream, 2),
  'a truncation of everything': (by: Administrator, stream: string) => by.truncate(stream, 3),
};

export const removingCases = (driver: EventStoreDriver): void => {
  const { administrator: administratorFor, undeletable } = driver;
  if (administratorFor === undefined) {
    describe.skip(`a removed stream (skipped: ${undeletable})`, () => {
      test('is never taken for whole', () => undefined);
    });
    return;
  }
  describe('a stream that an administrator removed', () => {
    let store: EventStore;
    let start: Position | null;
    let administrator: Administrator;
    afterEach(async () => {
      // The next test begins after this event, and so after the server's own before it.
      await store.append(after(), 'none', batchOf(1));
      await administrator.close();
    });
    const { named, reopen } = openForGroup(driver, (opened) => {
      ({ store, start } = opened);
    });
    beforeEach(async () => {
      administrator = await administratorFor();
    });
    const after = () => named('after');
    const next = () => [newEvent(authorized(), timeOf(5))];

    describe.each(Object.entries(WAYS))('by %s', (way, remove) => {
      const removed = () => named('removed');
      let events: Awaited<ReturnType<EventStore['append']>>;
      beforeEach(async () => {
        events = await store.append(removed(), 'none', batchOf(3));
        await remove(administrator, removed());
      });

      test.each([
        ['subscribers', undefined],
        ['subscribers of some types', ['PaymentCreated' as const]],
      ])('is announced to %s, in its place, and takes no append from then on', async (_, types) => {
        const later = named('later');
        await store.append(later, 'none', batchOf(1));
        const items = await collect(
          store,
          start,
          (seen) => eventsOf(seen).at(-1)?.stream === later,
          types,
        );
        expect(items.filter(({ kind }) => kind === 'removal')).toEqual([
          { kind: 'removal', stream: removed() },
        ]);
        expect(items.findIndex(({ kind }) => kind === 'removal')).toBeGreaterThan(0);
        const append = store.append(removed(), at(events.at(-1)), next());
        await expect(append).rejects.toBeInstanceOf(StreamNotWhole);
        await expect(store.readStream(removed())).rejects.toBeInstanceOf(StreamNotWhole);
      });

      test('gives no other event than ours to readers of the log, and is counted no other', async () => {
        const page = await store.readAll(start, 100);
        expect(page.every((event) => isReadable(event) && isPaymentEvent(event.event))).toBe(true);
        expect((await store.head(start)).eventsAfter).toBe(page.length);
        expect((await store.head(start)).position).toBe(page.at(-1)?.position);
        expect(await store.stored.readAll(start, 100)).toHaveLength(page.length);
      });

      test('is not whole to its readers, or reads as unknown', async () => {
        store = await reopen();
        const read = store.readStream(removed());
        if (way === 'a soft delete') expect(await read).toEqual([]);
        else await expect(read).rejects.toBeInstanceOf(StreamNotWhole);
        const last = store.lastRevision(removed());
        if (way === 'a truncation') expect(await last).toBe(2);
        else await expect(last).rejects.toBeInstanceOf(StreamNotWhole);
        expect(await store.lastRevision(named('unknown'))).toBeNull();
      });
    });

    test('is whole again once the server shows all of it', async () => {
      const stream = named('restored');
      const events = await store.append(stream, 'none', batchOf(3));
      await administrator.truncate(stream, 2);
      await administrator.restore(stream);
      await collect(store, start, (items) => items.some(({ kind }) => kind === 'removal'));
      expect(await store.readStream(stream)).toHaveLength(3);
      await expect(store.append(stream, at(events.at(-1)), next())).resolves.toHaveLength(1);
    });
  });
};
