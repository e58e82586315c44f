/** Chooses drivers by the settings; a server's client is loaded only where it is used, for its cost. */

import type { DeliveryStore } from '../webhooks/store/port.ts';
import { sqliteDeliveries } from '../webhooks/store/sqlite.ts';
import { AppendOutcomeUnknown, StoreUnavailable } from './event-store/errors.ts';
import type { EventStore, Position } from './event-store/port.ts';
import { openSqliteEventStore } from './event-store/sqlite/event-store.ts';
import type { ReadModels } from './read-models/port.ts';
import { openSqliteReadModels } from './read-models/sqlite/read-models.ts';
import type { Config } from './runtime/config.ts';
import type { NewThread } from './runtime/jobs.ts';
import type { Log } from './runtime/log.ts';
import type { Metrics } from './runtime/metrics.ts';
import { isTracing, withSpan } from './runtime/tracing.ts';

const familyOf = (stream: string): string => stream.split('-', 1)[0] ?? '';

const spanOf = (system: string, operation: string, name: string) => ({
  name,
  kind: 'CLIENT' as const,
  attributes: { 'db.system.name': system, 'db.operation.name': operation },
});

const tracedStore = (store: EventStore, system: string): EventStore => ({
  ...store,
  append: (stream, expected, events) =>
    withSpan(spanOf(system, 'append', `append ${familyOf(stream)}`), () =>
      store.append(stream, expected, events),
    ),
  readStream: (stream) =>
    withSpan(spanOf(system, 'read', `read ${familyOf(stream)}`), () => store.readStream(stream)),
});

/** Spans around the calls that a request waits for. */
const tracedReadModels = (readModels: ReadModels, system: string): ReadModels => ({
  ...readModels,
  get: (paymentId, merchantId) =>
    withSpan(spanOf(system, 'get', 'read payment'), () => readModels.get(paymentId, merchantId)),
  search: (search, limit) =>
    withSpan(spanOf(system, 'search', 'search payments'), () => readModels.search(search, limit)),
});

export type OpenedStore = {
  store: EventStore;
  shared: boolean;
  lastPosition(): Position | null;
  /** Group commits since the start; undefined for a server. */
  commits(): number | undefined;
  ping(): Promise<void>;
};

type DriverOptions = {
  config: Config;
  log: Log;
  /** The path of a file in the data folder; not called where a server is set. */
  fileOf(name: string): string;
  onFatal(error: Error): void;
  /** For files; a server needs none. */
  newThread: NewThread;
};

const withSpans = <T>(traced: (own: T, system: string) => T, own: T, system: string): T =>
  isTracing() ? traced(own, system) : own;

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
export const openEventStore = async (
  options: DriverOptions & { metrics: Pick<Metrics, 'appendFailures'> },
): Promise<OpenedStore> => {
  const { config, log, fileOf, onFatal, metrics, newThread } = options;
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
  const file = fileOf('events.sqlite');
  const store = await openSqliteEventStore({ file, logger: log, onFatal, newThread });
  return {
    store: withFailuresCounted(withSpans(tracedStore, store, 'sqlite'), metrics),
    shared: false,
    lastPosition: () => store.lastPosition(),
    commits: () => store.commits(),
    ping: () => store.ping(),
  };
};

/** A server may still be out of reach. `secrets`: the idempotency secret, then the earlier one. */
export const openReadModels = async (
  options: Pick<DriverOptions, 'config' | 'log' | 'fileOf' | 'newThread'>,
  secrets: readonly [string, ...string[]],
): Promise<ReadModels> => {
  const { config, log, fileOf, newThread } = options;
  if (config.mongoUrl === undefined) {
    const file = fileOf('read-models.sqlite');
    const readModels = await openSqliteReadModels({ file, secrets, logger: log, newThread });
    return withSpans(tracedReadModels, readModels, 'sqlite');
  }
  const { openMongoReadModels } = await import('./read-models/mongodb/read-models.ts');
  const readModels = await openMongoReadModels({ url: config.mongoUrl, secrets });
  return withSpans(tracedReadModels, readModels, 'mongodb');
};

/** `fileOf` gives a path in the data folder, and is not called for a server. */
type Place = { config: Pick<Config, 'mongoUrl'>; fileOf(name: string): string };

export const openDeliveries = async ({ config, fileOf }: Place): Promise<DeliveryStore> => {
  if (config.mongoUrl === undefined) return sqliteDeliveries(fileOf('webhook-deliveries.sqlite'));
  return (await import('../webhooks/store/mongodb.ts')).mongoDeliveries(config.mongoUrl);
};
