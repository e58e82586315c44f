/** EventStoreDB itself, where EVENTSTOREDB_URL names a server that answers. */
import { openEventStoreDb } from '../../shared/event-store/eventstoredb/event-store.ts';
import { administratorOf } from '../support/eventstoredb-administrator.ts';
import { describeEventStore } from './describe-event-store.ts';

const url = process.env.EVENTSTOREDB_URL?.trim() || undefined;
const logger = { debug: () => undefined, warn: () => undefined };
const open = () => openEventStoreDb({ url: url as string, logger });

/** Why the server cannot be used; undefined when it can. */
const unreachable = async (): Promise<string | undefined> => {
  if (url === undefined) return 'EVENTSTOREDB_URL is not set';
  const store = await open().catch((error: Error) => error);
  if (store instanceof Error) return store.message;
  const reason = await store.ping().then(
    () => undefined,
    (error: Error) => `EVENTSTOREDB_URL does not answer: ${error.message}`,
  );
  await store.close();
  return reason;
};

describeEventStore({
  name: 'eventstoredb (server)',
  skip: await unreachable(),
  connectionless: 'only the operator can drop its connections',
  administrator: async () => administratorOf(url as string),
  make: async () => ({ open, remove: async () => undefined }),
});
