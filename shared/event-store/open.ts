/** Chooses the event store by the settings; a server's client is loaded only where it is used, for its cost. */
import type { Config } from '../runtime/config.ts';
import type { NewThread } from '../runtime/jobs.ts';
import type { Log } from '../runtime/log.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { databaseSpan, isTracing, withSpan } from '../runtime/tracing.ts';
import { AppendOutcomeUnknown, StoreUnavailable } from './errors.ts';
import type { EventStore, Position } from './port.ts';
import { openSqliteEventStore } from './sqlite/event-store.ts';

const familyOf = (stream: string): string => stream.split('-', 1)[0] ?? '';

const tracedStore = (store: EventStore, system: string): EventStore => ({
  ...store,
  append: (stream, expected, events) =>
    withSpan(databaseSpan(system, 'append', `append ${familyOf(stream)}`), () =>
      store.append(stream, expected, events),
    ),
  readStream: (stream) =>
    withSpan(databaseSpan(system, 'read', `read ${familyOf(stream)}`), () =>
      store.readStream(stream),
    ),
});

export type OpenedStore = {
  store: EventStore;
  shared: boolean;
  lastPosition(): Position | null;
  /** Group commits since the start; undefined for a server. */
  commits(): number | undefined;
  ping(): Promise<void>;
};

type EventStoreOptions = {
  config: Pick<Config, 'eventStoreDbUrl'>;
  log: Log;
  metrics: Pick<Metrics, 'appendFailures'>;
  /** The path of a file in the data folder; not called where a server is set. */
  fileOf(name: string): string;
  onFatal(error: Error): void;
  /** For a file; a server needs none. */
  newThread: NewThread;
};

/** Counts the appends that failed, or whose outcome is unknown. */
const withFailuresCounted = (
  store: EventStore,
  { appendFailures }: Pick<Metrics, 'appendFailures'>,
): EventStore => ({
  ...store,
  append: async (...batch) => {
    try {
      return await store.append(...batch);
    } catch (error) {
      if (error instanceof StoreUnavailable || error instanceof AppendOutcomeUnknown)
        appendFailures.inc();
      throw error;
    }
  },
});

/** A server may still be out of reach. Throws StoreUnavailable for a file that cannot be used. */
export const openEventStore = async (options: EventStoreOptions): Promise<OpenedStore> => {
  const { config, log, fileOf, onFatal, metrics, newThread } = options;
  if (config.eventStoreDbUrl !== undefined) {
    const { openEventStoreDb } = await import('./eventstoredb/event-store.ts');
    const store = await openEventStoreDb({ url: config.eventStoreDbUrl, logger: log });
    return {
      store: withFailuresCounted(isTracing() ? tracedStore(store, 'eventstoredb') : store, metrics),
      shared: true,
      lastPosition: () => null,
      commits: () => undefined,
      ping: () => store.ping(),
    };
  }
  const store = await openSqliteEventStore({
    file: fileOf('events.sqlite'),
    logger: log,
    onFatal,
    newThread,
  });
  return {
    store: withFailuresCounted(isTracing() ? tracedStore(store, 'sqlite') : store, metrics),
    shared: false,
    lastPosition: () => store.lastPosition(),
    commits: () => store.commits(),
    ping: () => store.ping(),
  };
};
