/** What every event store promises of its reads (shared/event-store/port.ts). */
import { describe, expect, test } from '@jest/globals';
import type { EventStore, Position } from '../../shared/event-store/port.ts';
import { created, newEvent, timeOf } from '../support/payment-events.ts';
import {
  batchOf,
  bytes,
  caughtUp,
  collect,
  type EventStoreDriver,
  eventsOf,
  openForGroup,
  placed,
} from './opened.ts';

export const readingCases = (driver: EventStoreDriver): void => {
  describe('reading', () => {
    let store: EventStore;
    let start: Position | null;
    const { named, reopen } = openForGroup(driver, (opened) => {
      ({ store, start } = opened);
    });

    test('an unknown stream and a log without anything new read as empty', async () => {
      expect(await store.readStream(named('unknown'))).toEqual([]);
      expect(await store.readAll(start, 10)).toEqual([]);
      expect(await store.head(start)).toEqual({
        position: start,
        eventsAfter: 0,
        isExact: true,
        oldestAfter: null,
      });
    });

    test('gaps §6: an event keeps its id, time, actor and all that led to it', async () => {
      const event = newEvent(created(), timeOf(7));
      const [stored] = await store.append(named(1), 'none', [event]);
      expect(stored).toMatchObject({ ...event, stream: named(1), revision: 0 });
      expect(stored).toMatchObject({ schemaVersion: 2, previousHash: '0'.repeat(64) });
      expect(await store.readStream(named(1))).toEqual([stored]);
    });

    test('unicode and large integers come back as they were', async () => {
      const descriptor = '\u0000\u001f"\\ 金额 🏦 e\u0301 \u2028 עברית';
      const source = { storeId: descriptor };
      const details = { source, merchantReference: '𝒳'.repeat(100) };
      const event = created({ amount: Number.MAX_SAFE_INTEGER, details });
      await store.append(named(1), 'none', [newEvent(event)]);
      expect((await store.readStream(named(1)))[0]?.event).toEqual(event);
    });

    test('gaps §9: append, stream, log and subscription hand back the same bytes', async () => {
      const { data } = created({ details: { source: { storeId: 's' }, goodsType: 'DIGITAL' } });
      const reversed = Object.fromEntries(Object.entries(data).reverse());
      const event = newEvent({ type: 'PaymentCreated', data: reversed } as never);
      const appended = bytes(await store.append(named(1), 'none', [event]));
      expect(bytes(await store.readStream(named(1)))).toBe(appended);
      expect(bytes(await store.readAll(start, 10))).toBe(appended);
      expect(bytes(eventsOf(await collect(store, start, caughtUp)))).toBe(appended);
      store = await reopen();
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

    test('gaps §28: a time has a place before its first event', async () => {
      const timed = (second: number) => newEvent(created(), `2090-01-01T00:00:0${second}.000Z`);
      const events = [timed(1), timed(2), timed(2), timed(4)];
      for (const [n, event] of events.entries()) await store.append(named(n), 'none', [event]);
      const from = async (second: number) => {
        const place = await store.positionBefore(`2090-01-01T00:00:0${second}.000Z`);
        return (await store.readAll(place, 100)).map(({ stream }) => stream).slice(-4);
      };
      const all = events.map((_, n) => named(n));
      expect(await from(2)).toEqual(all.slice(1));
      expect(await from(3)).toEqual(all.slice(3));
      expect(await from(5)).toEqual([]);
      expect(await from(1)).toEqual(all);
    });

    test('the log begins with its oldest event, whichever process wrote it', async () => {
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

    test('the hashes at a position are those of its event, and of no other place', async () => {
      const events = await placed(store, store.append(named(1), 'none', batchOf(3)));
      for (const { position, hash, logHash } of events) {
        expect(await store.hashAt(position)).toEqual({ hash, logHash });
        expect(logHash === undefined).toBe(store.stored.guarantee === 'stream');
      }
      const beyond = (events.at(-1)?.position ?? '').replace(/\d+/g, '9000000000000000');
      expect(await store.hashAt(beyond)).toBeNull();
    });

    test('a position has one form, also where a text pads it, and other texts name none', async () => {
      const events = await placed(store, store.append(named(1), 'none', batchOf(3)));
      for (const { position } of events) {
        const padded = position.replace(/\d+/g, (digits) => digits.padStart(15, '0'));
        expect([position, padded].map(store.positionOf)).toEqual([position, position]);
      }
      for (const text of ['', 'start', 'now', '-1', '1.5', '9'.repeat(30), `${'9'.repeat(19)}/1`])
        expect(() => store.positionOf(text)).toThrow(RangeError);
    });

    test('the head gives how many events follow a position, and the time of the first of them', async () => {
      const [a, b, c] = await placed(store, store.append(named(1), 'none', batchOf(3)));
      const position = c?.position ?? null;
      for (const reopened of [false, true]) {
        if (reopened) {
          store = await reopen();
        }
        const from = async (after: string | null) => store.head(after);
        const head = { position, isExact: true };
        expect(await from(start)).toEqual({ ...head, eventsAfter: 3, oldestAfter: a?.time });
        const behind = await from(a?.position ?? null);
        expect(behind).toEqual({ ...head, eventsAfter: 2, oldestAfter: b?.time });
        expect(await from(position)).toEqual({ ...head, eventsAfter: 0, oldestAfter: null });
      }
    });
  });
};
