/**
 * EventStoreDB over a stand-in: one for all tests, whose log others have written to and still do. And over
 * another that says "caught up" after each event, as KurrentDB 26 does.
 */
import { afterAll } from '@jest/globals';
import { openEventStoreDb } from '../../shared/event-store/eventstoredb/event-store.ts';
import { describeDriver } from '../support/describe-driver.ts';
import { administratorOf } from '../support/eventstoredb-administrator.ts';
import { type StandIn, startStandIn } from '../support/eventstoredb-stand-in.ts';
import { authorized, created, newEvent } from '../support/payment-events.ts';
import { describeEventStore } from './describe-event-store.ts';
import type { EventStoreDriver } from './opened.ts';
import { subscribingCases } from './subscribing.cases.ts';

const logger = { debug: () => undefined, warn: () => undefined };
// Low, so that few events are more than a page, and more than are counted.
const bounds = { pageEventsMax: 20, countedEventsMax: 4 };
// None of the cases shows a time-out: a busy machine must not reach one.
const callTimeoutMs = 30_000;
const open = ({ url }: StandIn) => openEventStoreDb({ url, logger, callTimeoutMs, ...bounds });

const startUsed = async (marksEachEvent: boolean): Promise<StandIn> => {
  const standIn = await startStandIn({ noisy: true, marksEachEvent });
  const store = await open(standIn);
  for (let n = 0; n < 10; n++) {
    standIn.foreign(`$stats-${n}`);
    standIn.foreign('orders-1');
    const stream = `payment-earlier-${n}`;
    await store.append(stream, 'none', [newEvent(created()), newEvent(authorized())]);
  }
  for (let n = 0; n < 150; n++) standIn.foreign('$stats-127.0.0.1:2113');
  await store.close();
  return standIn;
};

const standInDriver = (name: string, marksEachEvent: boolean): EventStoreDriver => {
  let used: Promise<StandIn> | undefined;
  return {
    name,
    countedEventsMax: bounds.countedEventsMax,
    make: async () => {
      used ??= startUsed(marksEachEvent);
      const standIn = await used;
      return {
        open: () => open(standIn),
        remove: async () => undefined,
        dropConnections: async () => standIn.drop('reset'),
      };
    },
    administrator: async () => administratorOf((await (used as Promise<StandIn>)).url),
    end: async () => (await used)?.close(),
  };
};

describeEventStore(standInDriver('eventstoredb (stand-in with a past)', false));

// The marks are of subscriptions alone.
const marking = standInDriver('eventstoredb (stand-in with a past that marks each event)', true);
describeDriver('event store', marking, () => {
  afterAll(async () => marking.end?.());
  subscribingCases(marking);
});
