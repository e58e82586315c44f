/** What every event store promises of a subscription (shared/event-store/port.ts). */
import { describe, expect, test } from '@jest/globals';
import { isReadable } from '../../shared/event-store/codec.ts';
import type {
  EventStore,
  LogEvent,
  Position,
  SubscriptionItem,
} from '../../shared/event-store/port.ts';
import { timesOf } from '../support/long-run-share.ts';
import {
  appendWithRetry,
  batchOf,
  caughtUp,
  collect,
  type EventStoreDriver,
  eventsOf,
  openForGroup,
} from './opened.ts';

/** To each of the streams that several write to at once. */
const WRITERS = timesOf(10, 4);

export const subscribingCases = (driver: EventStoreDriver): void => {
  describe('subscribing', () => {
    let store: EventStore;
    let start: Position | null;
    const { named, dropConnections } = openForGroup(driver, (opened) => {
      ({ store, start } = opened);
    });

    // First, where the log may be empty. A store may say so between two events of one append as well.
    test('say when they have caught up: at once on an empty log, and again after new events', async () => {
      const stop = new AbortController();
      const seenAtMarks: number[] = [];
      let seen = 0;
      for await (const item of store.subscribe(start, stop.signal)) {
        if (item.kind === 'events') seen += item.events.length;
        if (item.kind !== 'caught-up') continue;
        seenAtMarks.push(seen);
        if (seen === 0) await store.append(named(1), 'none', batchOf(2));
        if (seen === 2) await store.append(named(2), 'none', batchOf(1));
        if (seen === 3) stop.abort();
      }
      expect(seenAtMarks.filter((events) => events !== 1)).toEqual([0, 2, 3]);
    });

    test('from the start, with concurrent writers, give each stream in order and nothing twice', async () => {
      const enough = (items: SubscriptionItem[]) => eventsOf(items).length >= 6 * WRITERS;
      const live = collect(store, start, enough);
      const writers = Array.from({ length: 6 * WRITERS }, (_, n) =>
        appendWithRetry(store, named(n % 6)),
      );
      await Promise.all(writers);
      const seen = eventsOf(await live);
      expect(seen).toEqual(await store.readAll(start, 100));
      for (let n = 0; n < 6; n++) {
        const own = seen.filter(({ stream }) => stream === named(n));
        expect(own.map(({ revision }) => revision)).toEqual([...Array(WRITERS).keys()]);
      }
    });

    test('resume after any position with nothing lost or doubled', async () => {
      for (let n = 0; n < 4; n++) await store.append(named(n), 'none', batchOf(2));
      const whole = await store.readAll(start, 100);
      for (const [index, event] of whole.entries()) {
        const rest = eventsOf(await collect(store, event.position, caughtUp));
        expect(rest).toEqual(whole.slice(index + 1));
      }
    });

    test('of some types: give those alone, in order, after any position, and live', async () => {
      for (let n = 0; n < 3; n++) await store.append(named(n), 'none', batchOf(2));
      const whole = await store.readAll(start, 100);
      const of = (from: LogEvent[]) =>
        from.filter((event) => isReadable(event) && event.event.type === 'PaymentAuthorized');
      for (const [index, { position }] of whole.entries()) {
        const rest = await collect(store, position, caughtUp, ['PaymentAuthorized']);
        expect(eventsOf(rest)).toEqual(of(whole.slice(index + 1)));
      }
      const enough = (items: SubscriptionItem[]) => eventsOf(items).length >= 2;
      const live = collect(store, whole.at(-1)?.position ?? null, enough, ['PaymentAuthorized']);
      for (let n = 3; n < 5; n++) await store.append(named(n), 'none', batchOf(2));
      expect(eventsOf(await live)).toEqual(of((await store.readAll(start, 100)).slice(6)));
    });

    test('never enter a slow reader twice, and give it what it missed in order', async () => {
      const stop = new AbortController();
      const seen: unknown[] = [];
      let inside = 0;
      let streams = 0;
      for await (const item of store.subscribe(start, stop.signal)) {
        inside += 1;
        if (streams < 20) {
          streams += 2;
          await store.append(named(streams), 'none', batchOf(2));
          await store.append(named(streams + 1), 'none', batchOf(2));
        }
        if (item.kind === 'events') seen.push(...item.events);
        expect(inside).toBe(1);
        inside -= 1;
        if (seen.length === 40) stop.abort();
      }
      expect(seen).toEqual(await store.readAll(start, 100));
    });

    test('end when their signal is aborted, while they wait and before they begin', async () => {
      const stop = new AbortController();
      const items = store.subscribe(start, stop.signal)[Symbol.asyncIterator]();
      expect((await items.next()).value).toEqual({ kind: 'caught-up' });
      const waiting = items.next();
      stop.abort();
      expect((await waiting).done).toBe(true);
      const late = store.subscribe(start, stop.signal)[Symbol.asyncIterator]();
      expect((await late.next()).done).toBe(true);
    });

    test('run beside one another, each at its own pace', async () => {
      const enough = (items: SubscriptionItem[]) => eventsOf(items).length >= 10;
      const both = [collect(store, start, enough), collect(store, start, enough)];
      for (let n = 0; n < 5; n++) await store.append(named(n), 'none', batchOf(2));
      const [one, other] = await Promise.all(both);
      expect(eventsOf(one ?? [])).toEqual(eventsOf(other ?? []));
    });

    const dropped = driver.connectionless === undefined ? test : test.skip;
    dropped(
      `come back after a dropped connection${driver.connectionless === undefined ? '' : `, skipped: ${driver.connectionless}`}`,
      async () => {
        const enough = (items: SubscriptionItem[]) => eventsOf(items).length >= 4;
        const live = collect(store, start, enough);
        await store.append(named(1), 'none', batchOf(2));
        await dropConnections();
        await store.append(named(2), 'none', batchOf(2));
        expect(eventsOf(await live)).toEqual(await store.readAll(start, 10));
      },
    );
  });
};
