/** The drivers of the payment-views port; test/contract/payment-views.test.ts runs over them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PaymentViews } from '../../shared/read-models/port.ts';
import { openSqliteViews } from '../../shared/read-models/sqlite/read-models.ts';
import { mongoServer } from './mongo-server.ts';

export type ViewStore = {
  /** Opens the same views, as the next start of the service would. */
  open(): Promise<PaymentViews>;
  /** Takes them away for good. */
  remove(): Promise<void>;
};

export type ViewDriver = {
  name: string;
  /** Why this driver cannot be tested here; printed in place of its tests. */
  skip?: string;
  /** Why only one may have the store open; printed in place of the tests of two. */
  alone?: string;
  /** How many runs of a property it gets, where a run takes its time; else the test's own number. */
  runsMax?: number;
  /** An empty store of its own. */
  make(): Promise<ViewStore>;
};

/** A folder below the system's own, gone at `remove`. */
export const temporaryFolder = (): { path: string; remove(): void } => {
  const path = mkdtempSync(join(tmpdir(), 'payments-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
};

/** So that the rebuild of a process that was killed is soon over. */
const REBUILD_MS = 900;

const mongo = await mongoServer();

export const viewDrivers: ViewDriver[] = [
  {
    name: 'sqlite',
    alone: 'one process holds the folder',
    make: async () => {
      const folder = temporaryFolder();
      return {
        open: async () => openSqliteViews({ file: join(folder.path, 'views.db') }),
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
      const { openMongoViews } = await import('../../shared/read-models/mongodb/read-models.ts');
      const database = mongo.database();
      return {
        open: () => openMongoViews({ url: database.url, rebuildMs: REBUILD_MS }),
        remove: database.drop,
      };
    },
  },
];
