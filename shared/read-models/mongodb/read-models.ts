/**
 * The read models in MongoDB, or in a server that speaks its protocol; this folder alone imports the
 * client. One document changes as a whole; no transaction, aggregate or change stream is needed.
 */

import { createDamageReports, createRowCheck } from '../document-row.ts';
import { CheckpointMoved } from '../errors.ts';
import type { ReadModels } from '../port.ts';
import { byId, revisionsIn } from './batch-writes.ts';
import { createServed, openDatabase, SERVED } from './database.ts';
import { text } from './documents.ts';
import { createLeases } from './lease.ts';
import { createReader } from './reader.ts';
import { createRebuilds } from './rebuild.ts';
import { createRevisionPoller } from './revision-poller.ts';
import { createWriter } from './writer.ts';

type MongoReadModelsOptions = {
  /** `mongodb://…` with the database's name in its path. */
  url: string;
  /** The idempotency secret, and the earlier one during a rotation (document-row.ts). */
  secrets: readonly [string, ...string[]];
  /** A rebuild that no longer renews its lease is given up after so many milliseconds: 15 s. */
  rebuildMs?: number;
};

export type MongoReadModels = ReadModels & {
  /** For `payments doctor`. Throws ReadModelsUnavailable when the server does not answer. */
  ping(): Promise<void>;
};

const REBUILD_MS = 15_000;
const LEASE = 'lease';

/** Throws ReadModelsUnavailable for a bad address; later each call does, within its budget. */
export const openMongoReadModels = async ({
  url,
  secrets,
  rebuildMs = REBUILD_MS,
}: MongoReadModelsOptions): Promise<MongoReadModels> => {
  const database = openDatabase(url, () => poller.giveUp());
  const { db, read } = database;
  const rowCheck = createRowCheck(secrets);
  const reports = createDamageReports();
  const served = createServed(database, () => recent.clear());
  const leases = createLeases(database);
  const poller = createRevisionPoller({
    revisionsOf: async (ids) => {
      const { payments } = await served.now();
      return byId(await read(() => revisionsIn(payments, ids)));
    },
  });
  const { recent, writer } = createWriter({
    database,
    generation: served.now,
    check: ({ n }, found) => {
      const now = found.find(({ _id }) => _id === SERVED)?.generation ?? 1;
      if (now === n) return;
      served.set(now);
      throw new CheckpointMoved('another generation of the read models is served now');
    },
    rowCheck,
    reports,
    onWritten: poller.reached,
  });

  return {
    ...createReader(database, { served: served.read, rowCheck, reports }),
    ...createRebuilds({ database, served, leases, rowCheck, rebuildMs }),
    waitForRevision: async (paymentId, revision, timeoutMs) => {
      if (database.isDown()) return false;
      if ((recent.get(paymentId)?.revision ?? -1) >= revision) return true;
      return poller.wait(paymentId, revision, timeoutMs);
    },
    lease: async (holder, ttlMs) => leases.take(LEASE, text(holder), ttlMs),
    release: async (holder) => leases.release(LEASE, text(holder)),
    ...writer,
    ping: async () => void (await read(() => db.command({ ping: 1 }))),
    close: async () => {
      poller.close();
      recent.clear();
      await database.close();
    },
  };
};
