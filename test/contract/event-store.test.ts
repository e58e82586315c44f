/**
 * What every event store promises (shared/event-store/port.ts, docs/architecture.md). The suite is
 * one and the same for all drivers; a driver that cannot be tested here says why.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { isReadable } from '../../shared/event-store/codec.ts';
import { RevisionConflict, StoreUnavailable } from '../../shared/event-store/errors.ts';
import type {
  EventStore,
  Expected,
  NewEvent,
  Position,
  RecordedEvent,
  SubscriptionItem,
  UnreadableEvent,
} from '../../shared/event-store/port.ts';
import { type EventStoreUnderTest, eventStoreDrivers } from '../support/drivers.ts';
import {
  authorized,
  captured,
  captureRequested,
  created,
  newEvent,
  timeOf,
} from '../support/payment-events.ts';

const at = (event: RecordedEvent | undefined): Expected => {
  if (event === undefined) throw new Error('no event to stand at');
  return { revision: event.revision, hash: event.hash };
};
/** All of an event that answers are made from. */
const bytes = (events: (RecordedEvent | UnreadableEvent)[]): string =>
  JSON.stringify(events.map((event) => isReadable(event) && [event.event, event.context]));
const batchOf = (count: number): NewEvent[] =>
  Array.from({ length: count }, (_, n) => newEvent(n === 0 ? created() : authorized(), timeOf(n)));

/** Appends one event at the end of a stream, again after each lost race. */
async function appendWithRetry(store: EventStore, stream: string): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const last = (await store.readStream(stream)).at(-1);
    try {
      await store.append(stream, last === undefined ? 'none' : at(last), [newEvent(created())]);
      return;
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
    }
  }
  throw new Error('lost a hundred races');
}

/** What a subscription delivers until `enough` of it has come. */
async function collect(
  store: EventStore,
  after: string | null,
  enough: (items: SubscriptionItem[]) => boolean,
): Promise<SubscriptionItem[]> {
  const stop = new AbortController();
  const items: SubscriptionItem[] = [];
  for await (const item of store.subscribe(after, stop.signal)) {
    items.push(item);
    if (enough(items)) stop.abort();
  }
  return items;
}
const eventsOf = (items: SubscriptionItem[]) =>
  items.flatMap((item) => (item.kind === 'events' ? item.events : []));
const caughtUp = (items: SubscriptionItem[]): boolean => items.at(-1)?.kind === 'caught-up';

for (const driver of eventStoreDrivers) {
  const suite = driver.skip === undefined ? describe : describe.skip;
  const reason = driver.skip === undefined ? '' : `, skipped: ${driver.skip}`;
  suite(`event store on ${driver.name}${reason}`, () => {
    let place: EventStoreUnderTest;
    let store: EventStore;
    let run: string;
    let start: Position | null = null;
    const named = (name: number | string): string => `payment-${run}-${name}`;
    beforeEach(async () => {
      place = await driver.make();
      store = await place.open();
      // A log that others have written to is as good as an empty one: each test has its own
      // streams, and looks at what comes after the place where it began.
      run = randomUUID();
      start = (await store.head(driver.shared === true ? start : null)).position;
    });
    afterEach(async () => {
      await store.close();
      await place.remove();
    });

    afterAll(async () => driver.end?.());

    describe('exact revisions', () => {
      test('appending at "no stream" to an existing stream fails and writes nothing', async () => {
        const stored = await store.append(named(1), 'none', batchOf(1));
        await expect(store.append(named(1), 'none', batchOf(2))).rejects.toThrow(RevisionConflict);
        expect(await store.readStream(named(1))).toEqual(stored);
        expect(await store.readAll(start, 10)).toEqual(stored);
      });

      test('a stale revision, one ahead of the stream and another hash fail and write nothing', async () => {
        const [first, second] = await store.append(named(1), 'none', batchOf(2));
        const wrong: Expected[] = [
          at(first),
          { revision: 2, hash: second?.hash ?? '' },
          { revision: 1, hash: first?.hash ?? '' },
        ];
        for (const expected of wrong) {
          const append = store.append(named(1), expected, [newEvent(captureRequested())]);
          await expect(append).rejects.toThrow(RevisionConflict);
        }
        expect(await store.readStream(named(1))).toHaveLength(2);
      });

      test('gaps §9: the last revision of a stream is told, null where there is none', async () => {
        expect(await store.lastRevision(named(1))).toBeNull();
        await store.append(named(1), 'none', batchOf(3));
        expect(await store.lastRevision(named(1))).toBe(2);
        expect(await store.lastRevision(named(2))).toBeNull();
      });

      test('gaps §8: of several values claimed under a key the first one stands', async () => {
        const claims = ['one', 'two', 'three'].map((value) =>
          store.claimMeta(`check-${run}`, value),
        );
        const [stands] = await Promise.all(claims);
        expect(new Set(await Promise.all(claims)).size).toBe(1);
        expect(await store.claimMeta(`check-${run}`, 'four')).toBe(stands);
        expect(await store.claimMeta(`other-${run}`, 'four')).toBe('four');
      });

      test('a revision expected of an unknown stream fails and makes no stream', async () => {
        const expected = { revision: 0, hash: 'a'.repeat(64) };
        await expect(store.append(named(1), expected, batchOf(1))).rejects.toThrow(
          RevisionConflict,
        );
        expect(await store.append(named(1), 'none', batchOf(1))).toHaveLength(1);
      });

      test.each(['none', 'a revision'])(
        'of 20 concurrent appends at %s exactly one wins',
        async (where) => {
          const [first] = where === 'none' ? [] : await store.append(named(1), 'none', batchOf(1));
          const expected = first === undefined ? 'none' : at(first);
          const appends = Array.from({ length: 20 }, () =>
            store.append(named(1), expected, [newEvent(created())]),
          );
          const results = await Promise.allSettled(appends);
          const lost = results.filter((result) => result.status === 'rejected');
          expect(lost).toHaveLength(19);
          for (const { reason } of lost) expect(reason).toBeInstanceOf(RevisionConflict);
          expect(await store.readStream(named(1))).toHaveLength(first === undefined ? 1 : 2);
        },
      );

      test('there is no "any" revision', async () => {
        await store.append(named(1), 'none', batchOf(1));
        for (const any of ['any', undefined, {}, { revision: 0 }]) {
          await expect(store.append(named(1), any as never, batchOf(1))).rejects.toThrow();
        }
        expect(await store.readStream(named(1))).toHaveLength(1);
      });
    });

    describe('batches', () => {
      test('a batch is stored whole: no reader ever sees a part of one', async () => {
        const appends = Array.from({ length: 40 }, (_, n) =>
          store.append(named(n), 'none', batchOf(3)),
        );
        const reads = Array.from({ length: 40 }, (_, n) => store.readStream(named(n)));
        for (const events of await Promise.all(reads)) expect([0, 3]).toContain(events.length);
        const all = (await Promise.all(appends)).flat();
        expect(new Set(all.map(({ position }) => position)).size).toBe(120);
      });

      test('what is refused leaves nothing behind: no event, an event beside its schema, an odd name', async () => {
        const odd = newEvent({ ...authorized(), data: { amount: -1 } } as never);
        const cases: [string, NewEvent[]][] = [
          [named(1), []],
          [named(1), [newEvent(created()), odd]],
          [named(1), [newEvent({ type: 'PaymentForgotten', data: {} } as never)]],
          [named(1), [{ ...newEvent(created()), id: 'not a uuid' }]],
          [named(1), [{ ...newEvent(created()), time: 'yesterday' }]],
          ['', batchOf(1)],
          ['$all', batchOf(1)],
          [`p${'x'.repeat(200)}`, batchOf(1)],
        ];
        for (const [stream, events] of cases) {
          await expect(store.append(stream, 'none', events)).rejects.toThrow(TypeError);
        }
        expect(await store.readAll(start, 10)).toEqual([]);
      });
    });

    describe('the same event ids again', () => {
      test('at the same expected revision succeed with what is stored, and store nothing twice', async () => {
        const batch = batchOf(2);
        const stored = await store.append(named(1), 'none', batch);
        expect(await store.append(named(1), 'none', batch)).toEqual(stored);
        const next = [newEvent(captureRequested()), newEvent(captured())];
        const later = await store.append(named(1), at(stored[1]), next);
        expect(await store.append(named(1), at(stored[1]), next)).toEqual(later);
        expect(await store.append(named(1), 'none', batch)).toEqual(stored);
        expect(await store.readAll(start, 10)).toEqual([...stored, ...later]);
      });

      test('sent twice at once are stored once', async () => {
        const batch = batchOf(2);
        const [one, other] = await Promise.all([
          store.append(named(1), 'none', batch),
          store.append(named(1), 'none', batch),
        ]);
        expect(other).toEqual(one);
        expect(await store.readAll(start, 10)).toHaveLength(2);
      });

      test('with a new one beside them, or at another revision, conflict', async () => {
        const batch = batchOf(1);
        const [first] = await store.append(named(1), 'none', batch);
        const more = [...batch, newEvent(authorized())];
        await expect(store.append(named(1), 'none', more)).rejects.toThrow(RevisionConflict);
        const [second] = await store.append(named(1), at(first), [newEvent(authorized())]);
        await expect(store.append(named(1), at(first), batch)).rejects.toThrow(RevisionConflict);
        expect(await store.readStream(named(1))).toEqual([first, second]);
      });
    });

    describe('reading', () => {
      test('an unknown stream and a log without anything new read as empty', async () => {
        expect(await store.readStream(named('unknown'))).toEqual([]);
        expect(await store.readAll(start, 10)).toEqual([]);
        expect(await store.head(start)).toEqual({
          position: start,
          eventsAfter: 0,
          oldestAfter: null,
        });
      });

      test('gaps §6: an event keeps its id, time, actor and all that led to it', async () => {
        const event = newEvent(created(), timeOf(7));
        const [stored] = await store.append(named(1), 'none', [event]);
        expect(stored).toMatchObject({ ...event, stream: named(1), revision: 0 });
        expect(stored).toMatchObject({ schemaVersion: 1, previousHash: '0'.repeat(64) });
        expect(await store.readStream(named(1))).toEqual([stored]);
      });

      test('unicode and large integers come back as they were', async () => {
        const descriptor = '\u0000\u001f"\\ 金额 🏦 e\u0301 \u2028 עברית';
        const details = { descriptor, merchantReference: '𝒳'.repeat(100) };
        const event = created({ amount: Number.MAX_SAFE_INTEGER, details });
        await store.append(named(1), 'none', [newEvent(event)]);
        expect((await store.readStream(named(1)))[0]?.event).toEqual(event);
      });

      test('gaps §9: append, stream, log and subscription hand back the same bytes', async () => {
        const { data } = created({ details: { source: { storeId: 's' }, descriptor: 'd' } });
        const reversed = Object.fromEntries(Object.entries(data).reverse());
        const event = newEvent({ type: 'PaymentCreated', data: reversed } as never);
        const appended = bytes(await store.append(named(1), 'none', [event]));
        expect(bytes(await store.readStream(named(1)))).toBe(appended);
        expect(bytes(await store.readAll(start, 10))).toBe(appended);
        expect(bytes(eventsOf(await collect(store, start, caughtUp)))).toBe(appended);
        await store.close();
        store = await place.open();
        expect(bytes(eventsOf(await collect(store, start, caughtUp)))).toBe(appended);
      });

      test('the log is read in pages, each after the position of the last event before it', async () => {
        for (let n = 0; n < 5; n++) await store.append(named(n), 'none', batchOf(2));
        const whole = await store.readAll(start, 100);
        expect(whole.map(({ stream, revision }) => `${stream}@${revision}`)).toEqual(
          [0, 1, 2, 3, 4].flatMap((n) => [`${named(n)}@0`, `${named(n)}@1`]),
        );
        const paged = [];
        let page = await store.readAll(start, 3);
        while (page.length > 0) {
          expect(page.length).toBeLessThanOrEqual(3);
          paged.push(...page);
          page = await store.readAll(page.at(-1)?.position ?? start, 3);
        }
        expect(paged).toEqual(whole);
      });

      test('the log begins with the events that came first, whoever wrote them', async () => {
        const [stored] = await store.append(named(1), 'none', batchOf(1));
        const [first] = await store.readAll(null, 1);
        expect(await store.readAll(null, 1)).toEqual([first]);
        if (start === null) expect(first).toEqual(stored);
        else expect(first).not.toEqual(stored);
        const [{ events: [seen] = [] } = {}] = (
          await collect(store, null, (items) => eventsOf(items).length > 0)
        ).filter((item) => item.kind === 'events');
        expect(seen).toEqual(first);
        expect((await store.head(null)).eventsAfter).toBeGreaterThan(0);
      });

      test('the hash at a position is that of its event, and of no other place', async () => {
        const events = await store.append(named(1), 'none', batchOf(3));
        for (const { position, hash } of events) expect(await store.hashAt(position)).toBe(hash);
        const beyond = (events.at(-1)?.position ?? '').replace(/\d+/g, '9000000000000000');
        expect(await store.hashAt(beyond)).toBeNull();
      });

      test('the head says how far a position is behind it, and since when', async () => {
        const [a, b, c] = await store.append(named(1), 'none', batchOf(3));
        const position = c?.position ?? null;
        for (const reopen of [false, true]) {
          if (reopen) {
            await store.close();
            store = await place.open();
          }
          const from = async (after: string | null) => store.head(after);
          expect(await from(start)).toEqual({ position, eventsAfter: 3, oldestAfter: a?.time });
          const behind = await from(a?.position ?? null);
          expect(behind).toEqual({ position, eventsAfter: 2, oldestAfter: b?.time });
          expect(await from(position)).toEqual({ position, eventsAfter: 0, oldestAfter: null });
        }
      });
    });

    describe('subscriptions', () => {
      test('from the start, with concurrent writers, give each stream in order and nothing twice', async () => {
        const enough = (items: SubscriptionItem[]) => eventsOf(items).length >= 60;
        const live = collect(store, start, enough);
        const writers = Array.from({ length: 60 }, (_, n) => appendWithRetry(store, named(n % 6)));
        await Promise.all(writers);
        const seen = eventsOf(await live);
        expect(seen).toEqual(await store.readAll(start, 100));
        for (let n = 0; n < 6; n++) {
          const own = seen.filter(({ stream }) => stream === named(n));
          expect(own.map(({ revision }) => revision)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
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

      test('say when they have caught up: at once on an empty log, and again after new events', async () => {
        const stop = new AbortController();
        const kinds: string[] = [];
        for await (const item of store.subscribe(start, stop.signal)) {
          kinds.push(item.kind);
          if (kinds.length === 1) await store.append(named(1), 'none', batchOf(2));
          if (kinds.length === 3) void store.append(named(2), 'none', batchOf(1));
          if (kinds.length === 5) stop.abort();
        }
        expect(kinds).toEqual(['caught-up', 'events', 'caught-up', 'events', 'caught-up']);
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

      test('end when they are told to, while they wait and before they begin', async () => {
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
          await place.dropConnections?.();
          await store.append(named(2), 'none', batchOf(2));
          expect(eventsOf(await live)).toEqual(await store.readAll(start, 10));
        },
      );
    });

    describe('closing', () => {
      test('ends after everything appended so far is durable; the next start finds it', async () => {
        const appends = Array.from({ length: 30 }, (_, n) =>
          store.append(named(n), 'none', batchOf(2)),
        );
        await store.close();
        const stored = (await Promise.all(appends)).flat();
        store = await place.open();
        const found = await store.readAll(start, 100);
        expect(new Set(found)).toEqual(new Set(stored));
        const [, last] = await store.readStream(named(0));
        const next = await store.append(named(0), at(last as RecordedEvent), batchOf(1));
        expect(next[0]).toMatchObject({ revision: 2, previousHash: last?.hash });
      });

      test('refuses what comes after it, ends its subscriptions and can be repeated', async () => {
        const live = collect(store, start, () => false);
        await Promise.all([store.close(), store.close()]);
        await expect(store.append(named(1), 'none', batchOf(1))).rejects.toThrow(StoreUnavailable);
        await expect(store.readStream(named(1))).rejects.toThrow(StoreUnavailable);
        expect(eventsOf(await live)).toEqual([]);
      });
    });
  });
}
