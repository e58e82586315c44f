/**
 * The engines that the settings name, each behind its port: which driver runs is decided here. A
 * server's client is loaded only where it is used: it takes longer than the whole embedded start.
 */
import { AppendOutcomeUnknown, StoreUnavailable } from './event-store/errors.ts';
import type { EventStore, Position } from './event-store/port.ts';
import { openSqliteEventStore } from './event-store/sqlite/event-store.ts';
import { tracedStore } from './event-store/traced.ts';
import type { ReadModels } from './read-models/port.ts';
import { openSqliteReadModels } from './read-models/sqlite/read-models.ts';
import { tracedReadModels } from './read-models/traced.ts';
import type { Config } from './runtime/config.ts';
import type { Log } from './runtime/log.ts';
import type { Metrics } from './runtime/metrics.ts';
import { isTracing } from './runtime/tracing.ts';

/** The event store, and what differs between its drivers. */
export type OpenedStore = {
  store: EventStore;
  /** Other processes append to it as well. */
  shared: boolean;
  /** The last position this process knows of, for the banner and the metrics. */
  lastPosition(): Position | null;
  /** Group commits since the start; undefined where the store's server commits. */
  commits(): number | undefined;
  /** Resolves when the store answers. Throws StoreUnavailable. */
  ping(): Promise<void>;
};

/** What opening a driver needs. */
type DriverOptions = {
  config: Config;
  log: Log;
  /** The path of an embedded engine's file in the data folder; not called where a server is set. */
  fileOf(name: string): string;
  /** The store can take no more events, and the process must end. */
  onFatal(error: Error): void;
};

const withSpans = <T>(traced: (own: T, system: string) => T, own: T, system: string): T =>
  isTracing() ? traced(own, system) : own;

/** Counts the appends that the store did not take, or did not say so. */
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

/**
 * Opens the event store. A server may still be out of reach: its calls throw StoreUnavailable until
 * it is there. Throws StoreUnavailable for a file that cannot be used, one line for the operator.
 */
export const openEventStore = async (
  options: DriverOptions & { metrics: Pick<Metrics, 'appendFailures'> },
): Promise<OpenedStore> => {
  const { config, log, fileOf, onFatal, metrics } = options;
  if (config.eventStoreDbUrl !== undefined) {
    const { openEventStoreDb } = await import('./event-store/eventstoredb/event-store.ts');
    const store = await openEventStoreDb({ url: config.eventStoreDbUrl, logger: log });
    return {
      store: withFailuresCounted(withSpans(tracedStore, store, 'eventstoredb'), metrics),
      shared: true,
      lastPosition: () => null,
      commits: () => undefined,
      ping: () => store.ping(),
    };
  }
  const store = await openSqliteEventStore({ file: fileOf('events.sqlite'), logger: log, onFatal });
  return {
    store: withFailuresCounted(withSpans(tracedStore, store, 'sqlite'), metrics),
    shared: false,
    lastPosition: () => store.lastPosition(),
    commits: () => store.stats().commits,
    ping: () => store.ping(),
  };
};

/**
 * Opens the read models. A server may still be out of reach: calls throw ReadModelsUnavailable.
 * `secrets` are the idempotency secret and the earlier one: the check of each document is made with
 * them, so they are the same in every process (gaps §8).
 */
export const openReadModels = async (
  options: Pick<DriverOptions, 'config' | 'log' | 'fileOf'>,
  secrets: readonly [string, ...string[]],
): Promise<ReadModels> => {
  const { config, log, fileOf } = options;
  if (config.mongoUrl === undefined) {
    const file = fileOf('read-models.sqlite');
    const readModels = await openSqliteReadModels({ file, secrets, logger: log });
    return withSpans(tracedReadModels, readModels, 'sqlite');
  }
  const { openMongoReadModels } = await import('./read-models/mongodb/read-models.ts');
  const readModels = await openMongoReadModels({ url: config.mongoUrl, secrets });
  return withSpans(tracedReadModels, readModels, 'mongodb');
};
