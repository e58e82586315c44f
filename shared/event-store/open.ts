/** Chooses the event store by the settings; a server's client is loaded only where it is used, for its cost. */
import type { Config } from '../runtime/config.ts';
import type { NewThread } from '../runtime/jobs.ts';
import type { Log } from '../runtime/log.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { databaseSpan, isTracing, withSpan } from '../runtime/tracing.ts';
import type { EventStore } from './port.ts';
import { openSqliteEventStore } from './sqlite/event-store.ts';

const tracedStore = (store: EventStore, system: string): EventStore => {
  if (!isTracing()) return store;
  const spanOf = (operation: string, stream: string) =>
    databaseSpan(system, operation, `${operation} ${stream.split('-', 1)[0]}`);
  return {
    ...store,
    append: (...batch) => withSpan(spanOf('append', batch[0]), () => store.append(...batch)),
    readStream: (stream) => withSpan(spanOf('read', stream), () => store.readStream(stream)),
  };
};

type EventStoreOptions = {
  config: Pick<Config, 'eventStoreDbUrl'>;
  log: Log;
  metrics: Metrics;
  /** The path of a file in the data folder; not called where a server is set. */
  fileOf(name: string): string;
  onFatal(error: Error): void;
  /** For a file; a server needs none. */
  newThread: NewThread;
};

/** A server may still be out of reach. Throws StoreUnavailable for a file that cannot be used. */
export const openEventStore = async (options: EventStoreOptions) => {
  const { config, log, fileOf, onFatal, metrics, newThread } = options;
  const { eventStoreDbUrl: url } = config;
  if (url !== undefined) {
    const { openEventStoreDb } = await import('./eventstoredb/event-store.ts');
    const own = await openEventStoreDb({ url, logger: log, metrics });
    const store = tracedStore(own, 'eventstoredb');
    return { store, shared: true, lastPosition: () => null, ping: own.ping };
  }
  const file = fileOf('events.sqlite');
  const own = await openSqliteEventStore({ file, logger: log, onFatal, newThread, metrics });
  const store = tracedStore(own, 'sqlite');
  return { store, shared: false, lastPosition: own.lastPosition, ping: own.ping };
};
