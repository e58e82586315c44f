/** The drivers of the payment-read models port; test/contract/payment-read models.test.ts runs over them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { openSqliteReadModels } from '../../shared/read-models/sqlite/read-models.ts';
import { mongoServer } from './mongo-server.ts';

export type ReadModelStore = {
  /** Opens the same read models, as the next start of the service would. */
  open(): Promise<ReadModels>;
  /** Takes them away for good. */
  remove(): Promise<void>;
};

export type ReadModelDriver = {
  name: string;
  /** Why this driver cannot be tested here; printed in place of its tests. */
  skip?: string;
  /** Why only one may have the store open; printed in place of the tests of two. */
  alone?: string;
  /** How many runs of a property it gets, where a run takes its time; else the test's own number. */
  runsMax?: number;
  /** An empty store of its own. */
  make(): Promise<ReadModelStore>;
};

/** A folder below the system's own, gone at `remove`. */
export const temporaryFolder = (): { path: string; remove(): void } => {
  const path = mkdtempSync(join(tmpdir(), 'payments-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
};

/** So that the rebuild of a process that was killed is soon over. */
const REBUILD_MS = 900;

const mongo = await mongoServer();

export const readModelDrivers: ReadModelDriver[] = [
  {
    name: 'sqlite',
    alone: 'one process holds the folder',
    make: async () => {
      const folder = temporaryFolder();
      return {
        open: async () => openSqliteReadModels({ file: join(folder.path, 'read models.db') }),
        remove: async () => folder.remove(),
      };
    },
  },
  {
    name: 'mongodb',
    runsMax: 5,
    ...('skip' in mongo ? { skip: mongo.skip } : {}),
    make: async () => {
      if ('skip' in mongo) throw new Error(mongo.skip);
      const { openMongoReadModels } = await import(
        '../../shared/read-models/mongodb/read-models.ts'
      );
      const database = mongo.database();
      return {
        open: () => openMongoReadModels({ url: database.url, rebuildMs: REBUILD_MS }),
        remove: database.drop,
      };
    },
  },
];
