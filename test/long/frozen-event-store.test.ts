/**
 * ADR-0007, docs/eventstoredb.md: an event store that stands still for 30 s. Every append ends in its time, a
 * process that starts meanwhile too; afterwards all goes on, and nothing is stored twice or lost.
 */
import { afterAll, expect, test } from '@jest/globals';
import { AppendOutcomeUnknown } from '../../shared/event-store/errors.ts';
import {
  type EventStoreDb,
  openEventStoreDb,
} from '../../shared/event-store/eventstoredb/event-store.ts';
import { type StandIn, startStandIn } from '../support/eventstoredb-stand-in.ts';
import { created, newEvent } from '../support/payment-events.ts';
import { ENDS_MS_MAX } from '../support/time-bounds.ts';
import { until, within } from '../support/until.ts';

const FROZEN_MS = 30_000;
const WRITERS = 32;
const logger = { debug: () => undefined, warn: () => undefined };
const closings: (() => Promise<void>)[] = [];
let standIn: StandIn;
let next = 0;

const open = async (): Promise<EventStoreDb> => {
  const store = await openEventStoreDb({ url: standIn.url, logger });
  closings.push(() => store.close());
  return store;
};

afterAll(async () => {
  standIn.freeze(false);
  for (const close of closings.splice(0)) await close();
  await standIn.close();
});

test('a server frozen for 30 s under 32 writers', async () => {
  standIn = await startStandIn({ noisy: true });
  const stores = [await open()];
  const acknowledged: string[] = [];
  let failed = 0;
  let isOver = false;

  const write = async (n: number): Promise<void> => {
    while (!isOver) {
      const store = stores[n % stores.length] as EventStoreDb;
      const stream = `payment-${next++}`;
      const event = newEvent(created());
      for (;;) {
        const error = await within(ENDS_MS_MAX, () =>
          store.append(stream, 'none', [event]).then(
            () => undefined,
            (reason: unknown) => reason,
          ),
        );
        if (error === undefined) break;
        expect(error).toBeInstanceOf(AppendOutcomeUnknown);
        failed += 1;
      }
      acknowledged.push(event.id);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const writing = Promise.all(Array.from({ length: WRITERS }, (_, n) => write(n)));
  await until('the writers are under way', () => acknowledged.length > 200);
  standIn.freeze(true);
  // A process that starts against a frozen server.
  stores.push(await open());
  await new Promise((resolve) => setTimeout(resolve, FROZEN_MS));
  const before = acknowledged.length;
  standIn.freeze(false);
  await until('the writers go on', () => acknowledged.length > before + 200);
  isOver = true;
  await writing;
  expect(failed).toBeGreaterThan(0);
  const counts = standIn.idCounts();
  expect(acknowledged.filter((id) => counts.get(id) !== 1)).toEqual([]);
  expect(Math.max(...counts.values())).toBe(1);
});
