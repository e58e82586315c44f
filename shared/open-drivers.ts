/** Chooses drivers by the settings; a server's client is loaded only where it is used, for its cost. */

import type { DeliveryStore } from '../webhooks/store/port.ts';
import { sqliteDeliveries } from '../webhooks/store/sqlite.ts';
import { AppendOutcomeUnknown, StoreUnavailable } from './event-store/errors.ts';
import type { EventStore } from './event-store/port.ts';
import { openSqliteEventStore, type SqliteEventStore } from './event-store/sqlite/event-store.ts';
import type { ReadModels } from './read-models/port.ts';
import { openSqliteReadModels } from './read-models/sqlite/read-models.ts';
import type { Config } from './runtime/config.ts';
import type { Log } from './runtime/log.ts';
import type { Metrics } from './runtime/metrics.ts';
import { isTracing, withSpan } from './runtime/tracing.ts';

const familyOf = (stream: string): string => stream.split('-', 1)[0] ?? '';

const spanOf = (system: string, operation: string, name: string) => ({
  name,
  kind: 'CLIENT' as const,
  attributes: { 'db.system.name': system, 'db.operation.name': operation },
});

/** Counts the appends that failed, or whose outcome is unknown; makes spans where there are traces. */
const watchedStore = (
  store: EventStore,
  system: string,
  { appendFailures }: Pick<Metrics, 'appendFailures'>,
): EventStore => {
  const { append, readStream } = store;
  const appendTraced: EventStore['append'] = (stream, ...batch) =>
    withSpan(spanOf(system, 'append', `append ${familyOf(stream)}`), () =>
      append(stream, ...batch),
    );
  const appended = isTracing() ? appendTraced : append;
  const counted = (error: unknown): never => {
    if (error instanceof StoreUnavailable || error instanceof AppendOutcomeUnknown)
      appendFailures.inc();
    throw error;
  };
  return {
    ...store,
    append: (...batch) => appended(...batch).catch(counted),
    ...(isTracing() && {
      readStream: (stream) =>
        withSpan(spanOf(system, 'read', `read ${familyOf(stream)}`), () => readStream(stream)),
    }),
  };
};

/** Spans around the calls that a request waits for. */
const tracedReadModels = (readModels: ReadModels, system: string): ReadModels => {
  if (!isTracing()) return readModels;
  const { get, search } = readModels;
  return {
    ...readModels,
    get: (...args) => withSpan(spanOf(system, 'get', 'read payment'), () => get(...args)),
    search: (...args) =>
      withSpan(spanOf(system, 'search', 'search payments'), () => search(...args)),
  };
};

type DriverOptions = {
  config: Config;
  log: Log;
  /** The path of a file in the data folder; not called where a server is set. */
  fileOf(name: string): string;
  onFatal(error: Error): void;
};

/** Group commits of a file. */
const countCommits = (
  { commits }: SqliteEventStore,
  { appendBatches, beforeScrape }: Pick<Metrics, 'appendBatches' | 'beforeScrape'>,
): void => {
  let seen = 0;
  beforeScrape(() => {
    appendBatches.inc(commits() - seen);
    seen = commits();
  });
};

/** A server may still be out of reach. Throws StoreUnavailable for a file that cannot be used. */
export const openEventStore = async (options: DriverOptions & { metrics: Metrics }) => {
  const { config, log, fileOf, onFatal, metrics } = options;
  const { eventStoreDbUrl: url } = config;
  if (url !== undefined) {
    const { openEventStoreDb } = await import('./event-store/eventstoredb/event-store.ts');
    const own = await openEventStoreDb({ url, logger: log });
    const store = watchedStore(own, 'eventstoredb', metrics);
    return { store, shared: true, lastPosition: () => null, ping: own.ping };
  }
  const own = await openSqliteEventStore({ file: fileOf('events.sqlite'), logger: log, onFatal });
  countCommits(own, metrics);
  const store = watchedStore(own, 'sqlite', metrics);
  return { store, shared: false, lastPosition: own.lastPosition, ping: own.ping };
};

/** A server may still be out of reach. `secrets`: the idempotency secret, then the earlier one. */
export const openReadModels = async (
  options: Pick<DriverOptions, 'config' | 'log' | 'fileOf'>,
  secrets: readonly [string, ...string[]],
): Promise<ReadModels> => {
  const { config, log, fileOf } = options;
  if (config.mongoUrl === undefined) {
    const file = fileOf('read-models.sqlite');
    const readModels = await openSqliteReadModels({ file, secrets, logger: log });
    return tracedReadModels(readModels, 'sqlite');
  }
  const { openMongoReadModels } = await import('./read-models/mongodb/read-models.ts');
  const readModels = await openMongoReadModels({ url: config.mongoUrl, secrets });
  return tracedReadModels(readModels, 'mongodb');
};

/** `fileOf` gives a path in the data folder, and is not called for a server. */
type Place = { config: Pick<Config, 'mongoUrl'>; fileOf(name: string): string };

export const openDeliveries = async ({ config, fileOf }: Place): Promise<DeliveryStore> => {
  if (config.mongoUrl === undefined) return sqliteDeliveries(fileOf('webhook-deliveries.sqlite'));
  return (await import('../webhooks/store/mongodb.ts')).mongoDeliveries(config.mongoUrl);
};
