/** The drivers of the read-models port, for test/contract/read-models and the projector. */
import { join } from 'node:path';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { openSqliteReadModels } from '../../shared/read-models/sqlite/read-models.ts';
import type { Driver } from './describe-driver.ts';
import { mongoServer } from './mongo-server.ts';
import { temporaryFolder } from './temporary-folder.ts';

export type ReadModelStore = {
  /** Opens the same read models, as the next start of the service would. */
  open(): Promise<ReadModels>;
  /** Takes them away for good. */
  remove(): Promise<void>;
};

export type ReadModelDriver = Driver & {
  /** Why only one may have the store open; printed in place of the tests of two. */
  alone?: string;
  /** How many runs of a property it gets, where a run takes its time; else the test's own number. */
  runsMax?: number;
  /** An empty store of its own. */
  make(): Promise<ReadModelStore>;
};

/** So that the rebuild of a process that was killed is soon over. */
const REBUILD_MS = 900;

const mongo = await mongoServer();

export const sqliteReadModels: ReadModelDriver = {
  name: 'sqlite',
  alone: 'one process holds the folder',
  make: async () => {
    const folder = temporaryFolder();
    return {
      open: async () => openSqliteReadModels({ file: join(folder.path, 'read models.db') }),
      remove: async () => folder.remove(),
    };
  },
};

export const mongoReadModels: ReadModelDriver = {
  name: 'mongodb',
  runsMax: 5,
  skip: 'skip' in mongo ? mongo.skip : undefined,
  make: async () => {
    if ('skip' in mongo) throw new Error(mongo.skip);
    const { openMongoReadModels } = await import('../../shared/read-models/mongodb/read-models.ts');
    const database = mongo.database();
    return {
      open: () => openMongoReadModels({ url: database.url, rebuildMs: REBUILD_MS }),
      remove: database.drop,
    };
  },
};

export const readModelDrivers = [sqliteReadModels, mongoReadModels];
