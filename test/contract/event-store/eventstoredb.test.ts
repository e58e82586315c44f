/**
 * EventStoreDB over a stand-in: one for all tests, whose log others have written to and still do. And over
 * another that says "caught up" after each event, as KurrentDB 26 does.
 */
import { openEventStoreDb } from '../../../shared/event-store/eventstoredb/event-store.ts';
import { administratorOf } from '../../support/eventstoredb-administrator.ts';
import { type StandIn, startStandIn } from '../../support/eventstoredb-stand-in.ts';
import { authorized, created, newEvent } from '../../support/payment-events.ts';
import { describeEventStore } from './describe-event-store.ts';

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

const describeStandIn = (name: string, marksEachEvent: boolean): void => {
  let used: Promise<StandIn> | undefined;
  describeEventStore({
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
  });
};

describeStandIn('eventstoredb (stand-in with a past)', false);
describeStandIn('eventstoredb (stand-in with a past that marks each event)', true);
