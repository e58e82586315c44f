/**
 * The EventStoreDB driver on a cluster that loses its leader (docs/eventstoredb.md): each call ends in its
 * time and says that the store is unavailable, no rejection is left unhandled, and all goes on by itself.
 */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { AppendOutcomeUnknown, StoreUnavailable } from '../../shared/event-store/errors.ts';
import {
  type EventStoreDb,
  openEventStoreDb,
} from '../../shared/event-store/eventstoredb/event-store.ts';
import { type StandIn, startStandIn } from '../support/eventstoredb-stand-in.ts';
import { authorized, created, newEvent } from '../support/payment-events.ts';
import { until } from '../support/until.ts';

const logger = { debug: () => undefined, warn: () => undefined };
const unhandled: unknown[] = [];
process.on('unhandledRejection', (error) => unhandled.push(error));

let standIn: StandIn;
let store: EventStoreDb;

beforeEach(async () => {
  standIn = await startStandIn();
  store = await openEventStoreDb({ url: standIn.clusterUrl, logger });
});
afterEach(async () => {
  await store.close();
  await standIn.close();
  expect(unhandled).toEqual([]);
});

test('without a leader each call says so, no rejection ends the process, and all goes on behind a leader', async () => {
  const stop = new AbortController();
  const seen: string[] = [];
  const following = (async () => {
    for await (const item of store.subscribe(null, stop.signal))
      if (item.kind === 'events') seen.push(...item.events.map(({ stream }) => stream));
  })();
  await store.append('payment-1', 'none', [newEvent(created()), newEvent(authorized())]);
  await until('the first events', () => seen.length === 2);
  standIn.elect(true);
  const { gossip } = standIn.calls;
  const reading = expect(store.readStream('payment-1')).rejects.toThrow(StoreUnavailable);
  await until('the client looks for a leader', () => standIn.calls.gossip > gossip);
  // A stream of the connection before ends while the client looks for the next leader.
  standIn.drop('not leader');
  await reading;
  const event = newEvent(created());
  // A call that was under way as the leader was lost may have been carried out.
  const appended = await store.append('payment-2', 'none', [event]).catch((error) => error);
  expect([StoreUnavailable, AppendOutcomeUnknown]).toContain(appended.constructor);
  standIn.elect(false);
  await until('the store is there again', () =>
    store.ping().then(
      () => true,
      () => false,
    ),
  );
  await store.append('payment-2', 'none', [event]);
  await until('the subscription goes on', () => seen.length === 3);
  expect(seen).toEqual(['payment-1', 'payment-1', 'payment-2']);
  stop.abort();
  await following;
});
