/** The drivers of the event-store port; test/contract/event-store.test.ts runs over them. */
import { join } from 'node:path';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite.ts';
import { temporaryFolder } from './view-drivers.ts';

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
  /** An empty store of its own. */
  make(): Promise<EventStoreUnderTest>;
};

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
];
