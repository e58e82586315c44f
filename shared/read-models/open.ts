/** Chooses the read models by the settings; a server's client is loaded only where it is used, for its cost. */
import type { Config } from '../runtime/config.ts';
import type { NewThread } from '../runtime/jobs.ts';
import type { Log } from '../runtime/log.ts';
import { databaseSpan, isTracing, withSpan } from '../runtime/tracing.ts';
import type { ReadModels } from './port.ts';
import { openSqliteReadModels } from './sqlite/read-models.ts';

/** Spans around the calls that a request waits for. */
const tracedReadModels = (readModels: ReadModels, system: string): ReadModels => {
  if (!isTracing()) return readModels;
  const { get, search } = readModels;
  return {
    ...readModels,
    get: (...args) => withSpan(databaseSpan(system, 'get', 'read payment'), () => get(...args)),
    search: (...args) =>
      withSpan(databaseSpan(system, 'search', 'search payments'), () => search(...args)),
  };
};

type ReadModelsOptions = {
  config: Pick<Config, 'mongoUrl'>;
  log: Log;
  fileOf(name: string): string;
  newThread: NewThread;
};

/** A server may still be out of reach. `secrets`: the idempotency secret, then the earlier one. */
export const openReadModels = async (
  options: ReadModelsOptions,
  secrets: readonly [string, ...string[]],
): Promise<ReadModels> => {
  const { config, log, fileOf, newThread } = options;
  if (config.mongoUrl === undefined) {
    const file = fileOf('read-models.sqlite');
    const readModels = await openSqliteReadModels({ file, secrets, logger: log, newThread });
    return tracedReadModels(readModels, 'sqlite');
  }
  const { openMongoReadModels } = await import('./mongodb/read-models.ts');
  const readModels = await openMongoReadModels({ url: config.mongoUrl, secrets });
  return tracedReadModels(readModels, 'mongodb');
};
