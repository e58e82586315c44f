/** The drivers of the event-store port; test/contract/event-store.test.ts runs over them. */
import { join } from 'node:path';
import { openEventStoreDb } from '../../shared/event-store/eventstoredb/event-store.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { type StandIn, startStandIn } from './eventstoredb-stand-in.ts';
import { authorized, created, newEvent } from './payment-events.ts';
import { temporaryFolder } from './read-model-drivers.ts';

export type EventStoreUnderTest = {
  /** Opens the same store, as the next start of the service would. */
  open(): Promise<EventStore>;
  /** Takes it away for good. */
  remove(): Promise<void>;
  /** Breaks the running subscriptions' connections, which the driver has to make anew. */
  dropConnections?(): Promise<void>;
};

export type EventStoreDriver = {
  name: string;
  /** Why this driver cannot be tested here; printed in place of its tests. */
  skip?: string;
  /** Why no connection of it can be dropped; printed in place of that test. */
  connectionless?: string;
  /** Every test opens the same log. */
  shared?: boolean;
  /** A store to open; whether others have written to it does not matter. */
  make(): Promise<EventStoreUnderTest>;
  /** Called once after the last test. */
  end?(): Promise<void>;
};

const quiet = { debug: () => undefined, warn: () => undefined };
const openAt = (url: string) => openEventStoreDb({ url, logger: quiet });

const overStandIn = (standIn: StandIn, remove: () => Promise<void>): EventStoreUnderTest => ({
  open: () => openAt(standIn.url),
  remove,
  dropConnections: async () => standIn.drop('reset'),
});

let used: StandIn | undefined;

/** One stand-in for all tests, whose log others have written to and still do. */
const usedStandIn = async (): Promise<StandIn> => {
  if (used !== undefined) return used;
  used = await startStandIn({ noisy: true });
  const store = await openAt(used.url);
  for (let n = 0; n < 10; n++) {
    used.foreign(`$stats-${n}`);
    used.foreign('orders-1');
    const stream = `payment-earlier-${n}`;
    await store.append(stream, 'none', [newEvent(created()), newEvent(authorized())]);
  }
  for (let n = 0; n < 150; n++) used.foreign('$stats-127.0.0.1:2113');
  await store.close();
  return used;
};

const realUrl = process.env.EVENTSTOREDB_URL?.trim() || undefined;

/** Why the server of EVENTSTOREDB_URL cannot be used; undefined when it can. */
const unreachable = async (url: string | undefined): Promise<string | undefined> => {
  if (url === undefined) return 'EVENTSTOREDB_URL is not set';
  const store = await openAt(url).catch((error: Error) => error);
  if (store instanceof Error) return store.message;
  const reason = await store.ping().then(
    () => undefined,
    (error: Error) => `EVENTSTOREDB_URL does not answer: ${error.message}`,
  );
  await store.close();
  return reason;
};
const noServer = await unreachable(realUrl);
if (noServer !== undefined)
  process.stderr.write(`event store on EventStoreDB skipped: ${noServer}\n`);

export const eventStoreDrivers: EventStoreDriver[] = [
  {
    name: 'sqlite',
    connectionless: 'a file in the same process',
    make: async () => {
      const folder = temporaryFolder();
      return {
        open: () => openSqliteEventStore({ file: join(folder.path, 'events.db') }),
        remove: async () => folder.remove(),
      };
    },
  },
  {
    name: 'eventstoredb (stand-in with a past)',
    shared: true,
    make: async () => overStandIn(await usedStandIn(), async () => undefined),
    end: async () => used?.close(),
  },
  {
    name: 'eventstoredb (server)',
    shared: true,
    connectionless: 'only the operator can drop its connections',
    ...(noServer === undefined ? {} : { skip: noServer }),
    make: async () => ({ open: () => openAt(realUrl as string), remove: async () => undefined }),
  },
];
