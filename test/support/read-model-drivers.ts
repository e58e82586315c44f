/** The drivers of the read-models port, for test/read-models and the projector. */
import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Collection } from 'mongodb';
import type { ReadModels } from '../../shared/read-models/port.ts';
import type { Driver } from './describe-driver.ts';
import { mongoServer } from './mongo-server.ts';
import { READ_MODEL_SECRETS, readModelsAt } from './read-models-here.ts';
import { temporaryFolder } from './temporary-folder.ts';

type Secrets = readonly [string, ...string[]];
export type ForgedField = keyof typeof COLUMNS;

/** The field of a document in MongoDB, and its column in SQLite. */
const COLUMNS = {
  merchantId: 'merchant_id',
  revision: 'revision',
  status: 'status',
  createdAt: 'created_at',
  amount: 'amount',
  last4: 'last4',
  merchantReference: 'merchant_reference',
  unresolvedSince: 'unresolved_since',
  unresolved: 'unresolved',
  body: 'body',
  check: 'row_check',
} as const;

export type ReadModelStore = {
  /** Opens the same read models, as the next start of the service would. */
  open(secrets?: Secrets): Promise<ReadModels>;
  /** Sets a field of a payment's document behind the driver's back; `check` is that of the row. */
  forge(paymentId: string, field: ForgedField, value: string | number): Promise<void>;
  /** Removes a payment's document in the same way. */
  removeDocument(paymentId: string): Promise<void>;
  /** Opens what a process that is killed now leaves behind; the one that runs is not disturbed. */
  openLeft(): Promise<ReadModels>;
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
    const file = join(folder.path, 'read models.db');
    let copies = 0;
    return {
      open: async (secrets = READ_MODEL_SECRETS) => readModelsAt(file, { secrets }),
      forge: async (paymentId, field, value) => {
        const db = new DatabaseSync(file, { timeout: 5000 });
        const set = `UPDATE payment SET ${COLUMNS[field]} = ? WHERE payment_id = ?`;
        db.prepare(set).run(value, paymentId);
        db.close();
      },
      removeDocument: async (paymentId) => {
        using db = new DatabaseSync(file, { timeout: 5000 });
        db.prepare('DELETE FROM payment WHERE payment_id = ?').run(paymentId);
      },
      openLeft: async () => {
        copies += 1;
        const copy = join(folder.path, `left ${copies}.db`);
        for (const end of ['', '-wal'])
          if (existsSync(file + end)) copyFileSync(file + end, copy + end);
        return readModelsAt(copy);
      },
      remove: async () => folder.remove(),
    };
  },
};

export const mongoReadModels: ReadModelDriver = {
  name: mongo.name,
  runsMax: 5,
  skip: 'skip' in mongo ? mongo.skip : undefined,
  make: async () => {
    if ('skip' in mongo) throw new Error(mongo.skip);
    const { openMongoReadModels } = await import('../../shared/read-models/mongodb/read-models.ts');
    const database = mongo.database();
    const inPayments = async (
      change: (payments: Collection<{ _id: string }>) => Promise<unknown>,
    ): Promise<void> => {
      const { MongoClient } = await import('mongodb');
      const { FORM } = await import('../../shared/read-models/mongodb/documents.ts');
      const client = await new MongoClient(database.url).connect();
      await change(client.db().collection<{ _id: string }>(`${FORM}_1_payments`));
      await client.close();
    };
    return {
      open: (secrets = READ_MODEL_SECRETS) =>
        openMongoReadModels({ url: database.url, secrets, rebuildMs: REBUILD_MS }),
      forge: (paymentId, field, value) =>
        inPayments((payments) =>
          payments.updateOne({ _id: paymentId }, { $set: { [field]: value } }),
        ),
      removeDocument: (paymentId) =>
        inPayments((payments) => payments.deleteOne({ _id: paymentId })),
      openLeft: () => openMongoReadModels({ url: database.url, secrets: READ_MODEL_SECRETS }),
      remove: database.drop,
    };
  },
};

export const readModelDrivers = [sqliteReadModels, mongoReadModels];
