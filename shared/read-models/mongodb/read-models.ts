/** For MongoDB and its protocol: documents change whole; no transaction, aggregate or change stream is used. */
import { startTimer as startNodeTimer } from '../../runtime/back-off.ts';
import { createDamageReports } from '../damage.ts';
import { createRowCheck } from '../document-row.ts';
import { CheckpointMoved } from '../errors.ts';
import type { ReadModels } from '../port.ts';
import { createRevisionWaiters, type RevisionWaiters } from '../waiters.ts';
import { byId, revisionsIn } from './batch-writes.ts';
import { createServed, openMongoDatabase, SERVED } from './database.ts';
import { storedText } from './documents.ts';
import { createReader } from './reader.ts';
import { createGenerations } from './rebuild.ts';
import { createLeases, createWriter } from './writer.ts';

/** Between two looks for the revisions that are waited for. */
const PAUSE_MS = 10;
const IN_VAIN_MAX = 3;

/**
 * Waits for revisions of another process by one query for all (gaps §9). After some in vain, one at a time goes
 * on, and no request waits, until the projector moves again. `revisionsOf` leaves out what is not stored.
 */
export const createRevisionPoller = (
  revisionsOf: (paymentIds: string[]) => Promise<Map<string, number>>,
  startTimer = startNodeTimer,
): RevisionWaiters => {
  const waiters = createRevisionWaiters(startTimer);
  let polling = false;
  let inVain = 0;
  let probing = false;

  const poll = async (): Promise<void> => {
    const ids = waiters.waitingFor();
    // An error ends no wait: each has its own timeout.
    const stored = ids.length === 0 ? [] : await revisionsOf(ids).catch(() => []);
    for (const [paymentId, revision] of stored) waiters.reached(paymentId, revision);
    polling = false;
    pollWhileWaiting();
  };
  const pollWhileWaiting = (): void => {
    if (polling || waiters.waitingFor().length === 0) return;
    polling = true;
    startTimer(poll, PAUSE_MS);
  };

  return {
    ...waiters,
    wait: async (paymentId, revision, timeoutMs) => {
      const standsStill = inVain >= IN_VAIN_MAX;
      if (standsStill && probing) return false;
      const ended = waiters.wait(paymentId, revision, timeoutMs);
      pollWhileWaiting();
      probing = standsStill;
      const noted = ended.then((reached) => {
        inVain = reached ? 0 : inVain + 1;
        probing = false;
        return reached;
      });
      return standsStill ? false : noted;
    },
  };
};

type MongoReadModelsOptions = {
  /** `mongodb://…` with the database's name in its path. */
  url: string;
  /** The idempotency secret, and the earlier one during a rotation (document-row.ts). */
  secrets: readonly [string, ...string[]];
  /** A rebuild that no longer renews its lease is given up after so many milliseconds: 15 s. */
  rebuildMs?: number;
};

const REBUILD_MS = 15_000;
const LEASE = 'lease';

/** Throws ReadModelsUnavailable for a bad address; later each call does, within its budget. */
export const openMongoReadModels = async ({
  url,
  secrets,
  rebuildMs = REBUILD_MS,
}: MongoReadModelsOptions): Promise<ReadModels> => {
  const database = openMongoDatabase(url, () => poller.giveUp());
  const rowCheck = createRowCheck(secrets);
  const reports = createDamageReports();
  const served = createServed(database, () => {
    recent.clear();
    reports.clear();
  });
  const leases = createLeases(database);
  const poller = createRevisionPoller(async (ids) => {
    const { payments } = await served.now();
    return byId(await database.read(() => revisionsIn(payments, ids)));
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
    ...createGenerations({ database, served, leases, rowCheck, rebuildMs }),
    waitForRevision: async (paymentId, revision, timeoutMs) => {
      if (database.isDown()) return false;
      if ((recent.get(paymentId)?.revision ?? -1) >= revision) return true;
      return poller.wait(paymentId, revision, timeoutMs);
    },
    lease: async (holder, ttlMs) => leases.take(LEASE, storedText(holder), ttlMs),
    release: async (holder) => leases.release(LEASE, storedText(holder)),
    ...writer,
    close: async () => {
      poller.close();
      recent.clear();
      await database.close();
    },
  };
};
