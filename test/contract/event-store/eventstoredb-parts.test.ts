/**
 * A server that sends each event alone and says "caught up" after each, as KurrentDB 26 does: the driver
 * gathers them, so that a reader still writes once for many.
 */
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import {
  type EventStoreDb,
  openEventStoreDb,
} from '../../../shared/event-store/eventstoredb/event-store.ts';
import { type StandIn, startStandIn } from '../../support/eventstoredb-stand-in.ts';
import { batchOf } from './opened.ts';

jest.setTimeout(240_000);

const EVENTS = 300;
const ROUNDS_MAX = 25;

let standIn: StandIn;
let store: EventStoreDb;
beforeEach(async () => {
  standIn = await startStandIn({ marksEachEvent: true });
  const logger = { debug: () => undefined, warn: () => undefined };
  store = await openEventStoreDb({ url: standIn.url, logger });
});
afterEach(async () => {
  await store.close();
  await standIn.close();
});

/** How many batches and marks a live subscription gets for so many events, each of its own append. */
const itemsOfRound = async (round: number) => {
  const stop = new AbortController();
  const items = store.subscribe(await store.end(), stop.signal)[Symbol.asyncIterator]();
  expect((await items.next()).value).toEqual({ kind: 'caught-up' });
  const streams = Array.from({ length: EVENTS }, (_, n) => `payment-${round}-${n}`);
  const appends = streams.map((stream) => store.append(stream, 'none', batchOf(1)));
  const counts = { batches: 0, marks: 0 };
  for (let seen = 0; seen < EVENTS; ) {
    const { value: item } = await items.next();
    if (item.kind === 'events') seen += item.events.length;
    counts[item.kind === 'events' ? 'batches' : 'marks'] += 1;
  }
  stop.abort();
  await Promise.all(appends);
  return counts;
};

test('a reader gets several events in a batch from a server that sends each of them alone', async () => {
  const rounds: Awaited<ReturnType<typeof itemsOfRound>>[] = [];
  const isGathered = ({ batches, marks }: (typeof rounds)[number]): boolean =>
    batches < EVENTS * 0.85 && marks < EVENTS * 0.85;
  // On a machine that stands still between two events each of them comes too late for the other.
  while (rounds.length < ROUNDS_MAX && !rounds.some(isGathered))
    rounds.push(await itemsOfRound(rounds.length));
  expect(rounds.filter(isGathered)).toHaveLength(1);
});
