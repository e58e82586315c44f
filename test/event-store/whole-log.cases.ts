/**
 * The end of the log is a place, never a count (shared/event-store/port.ts). A reader of the
 * whole log gets all of it, from a driver that counts few events as from one that counts them all.
 */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { exportTexts, type LogRequest, pageText } from '../../audit/log.ts';
import { walkLog } from '../../audit/walk-log.ts';
import type { EventStore, Position, StoredForm } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { resultOf } from '../../shared/runtime/jobs.ts';
import { newEvent, wholeLife } from '../support/payment-events.ts';
import { batchOf, type EventStoreDriver, openForGroup, placed } from './opened.ts';

// More than one page of each reader.
const PAYMENTS = 50;
const EVENTS = 6 * PAYMENTS;
const noPayments = { getAny: async () => undefined };

const onFrom = (position: Position | null): LogRequest => ({
  from: position ?? 'start',
  fromTime: undefined,
  toTime: undefined,
});

export const wholeLogCases = (driver: EventStoreDriver): void => {
  describe('the end of the log', () => {
    let store: EventStore;
    let start: Position | null;
    const { named } = openForGroup(driver, (opened) => {
      ({ store, start } = opened);
    });

    test('is the place of the last event: no page goes beyond it, whatever is appended', async () => {
      const events = await placed(store, store.append(named(1), 'none', batchOf(5)));
      const end = await store.end();
      expect(end).toBe(events.at(-1)?.position);
      const later = await placed(store, store.append(named(2), 'none', batchOf(2)));
      for (const readAll of [store.readAll, store.stored.readAll]) {
        const placesIn = async (after: Position | null, limit: number, upTo?: Position | null) =>
          (await readAll(after, limit, upTo)).map(({ position }) => position);
        const [a, b, c, d, e] = events.map(({ position }) => position);
        expect(await placesIn(start, 100, end)).toEqual([a, b, c, d, e]);
        expect(await placesIn(b as string, 2, end)).toEqual([c, d]);
        expect(await placesIn(start, 100, b)).toEqual([a, b]);
        expect(await placesIn(end, 100, end)).toEqual([]);
        expect(await placesIn(c as string, 100, b)).toEqual([]);
        expect(await placesIn(start, 100, null)).toEqual([]);
        expect(await placesIn(end, 100)).toEqual(later.map(({ position }) => position));
      }
      expect(await store.end()).toBe(later.at(-1)?.position);
    });
  });

  describe(`a log of ${EVENTS} events`, () => {
    let store: EventStore;
    let start: Position | null;
    let run: string;
    openForGroup(
      driver,
      (opened) => {
        ({ store, start } = opened);
        run = opened.run.slice(0, 8);
      },
      beforeAll,
    );
    const deps = () => ({ store, readModels: noPayments });
    const isOwn = async ({ stream }: StoredForm): Promise<boolean> => stream.includes(run);
    beforeAll(async () => {
      const append = (_: unknown, n: number) => {
        const paymentId = `${run}${n}`;
        const life = wholeLife(paymentId).map((event) => newEvent(event));
        return store.append(streamOf(paymentId), 'none', life);
      };
      await Promise.all(Array.from({ length: PAYMENTS }, append));
    });

    test('a count that ended early says so', async () => {
      const { countedEventsMax: counted = EVENTS } = driver;
      const isExact = counted === EVENTS;
      expect(await store.head(start)).toMatchObject({ eventsAfter: counted, isExact });
    });

    test('a verification of the whole log sees every event', async () => {
      const { signal } = new AbortController();
      const { stored } = store;
      const end = await store.end();
      const walked = await resultOf(walkLog({ stored, includes: isOwn, end, signal }));
      const [last, breaks] = [{ position: end }, { count: 0 }];
      expect(walked).toMatchObject({ events: EVENTS, last, breaks });
    });

    test('an export has every line', async () => {
      const args = { requested: onFrom(start), only: undefined };
      const texts: string[] = [];
      await resultOf(exportTexts(deps(), args), (text) => texts.push(text));
      const lines = texts.join('').trimEnd().split('\n');
      const positions = lines.map((line) => JSON.parse(line).position);
      expect(positions).toHaveLength(EVENTS);
      expect(positions.at(-1)).toBe(await store.end());
    });

    test('pages hold every event, and the last page alone is at the end', async () => {
      const positions: string[] = [];
      const atEnd: boolean[] = [];
      while (atEnd.at(-1) !== true) {
        const requested = { ...onFrom(positions.at(-1) ?? start), limit: EVENTS / 3 };
        const page = JSON.parse(await pageText(deps(), { requested, only: undefined }));
        positions.push(...page.events.map(({ position }: StoredForm) => position));
        atEnd.push(page.atEnd);
      }
      expect(positions).toHaveLength(EVENTS);
      expect(new Set(positions).size).toBe(EVENTS);
      expect(atEnd).toEqual([false, false, true]);
    });
  });
};
