/**
 * The read models in a SQLite file, read and written in the calling thread: a read takes a few
 * microseconds, less than a message to another thread. A search can take long, and has a thread of its
 * own.
 *
 * The file holds nothing that the event log does not: it may be deleted while the service is stopped. A
 * damaged file, or one of another version of this code, is thrown away and filled again by the
 * projector; it never keeps the service from starting.
 */

import type { OpenGeneration, ReadModels } from '../port.ts';
import { createDamageReports } from '../row-check.ts';
import { createRevisionWaiters } from '../waiters.ts';
import { createCaches } from './caches.ts';
import type { SqliteReadModelsOptions } from './connection.ts';
import { createGenerations } from './next-generation.ts';
import { createReader } from './reader.ts';
import { openReplaceableFile } from './replaceable-file.ts';
import { createCheckpoints, createSearches } from './search-thread.ts';
import { createWriter } from './writer.ts';

/**
 * Opens the file, or makes it (mode 0600); an unusable one is replaced by an empty one with a warning,
 * also while running. Throws ReadModelsUnavailable where the file can neither be opened nor made.
 */
export const openSqliteReadModels = (options: SqliteReadModelsOptions): ReadModels => {
  const waiters = createRevisionWaiters();
  const caches = createCaches();
  const reports = createDamageReports();
  const searches = createSearches(options);
  const checkpoints = createCheckpoints(searches.moveLog);
  const file = openReplaceableFile(options, checkpoints, () => {
    caches.clear();
    // Its connection is to the file that is gone.
    void searches.close();
  });

  const revisionOf = (paymentId: string): number =>
    caches.readModels.get(paymentId)?.revision ??
    file.run((at) => at.revision.get(paymentId)?.revision as number | undefined) ??
    -1;

  const writer = createWriter(file, caches, reports, checkpoints, waiters.reached);

  return {
    ...createReader(file, caches, reports, searches),
    waitForRevision: async (paymentId, revision, timeoutMs) => {
      try {
        if (revisionOf(paymentId) >= revision) return true;
      } catch {
        return false;
      }
      return waiters.wait(paymentId, revision, timeoutMs);
    },
    ...writer,
    openGeneration: createGenerations({
      file: `${options.file}.next`,
      elsewhere: (next) => ({
        module: import.meta.url,
        args: { file: next, secrets: options.secrets } satisfies SqliteReadModelsOptions,
      }),
      open: (next) => openSqliteReadModels({ ...options, file: next }),
      isOpen: file.isOpen,
      replaceBy: (next) => searches.whileClosed(() => file.replaceBy(next)),
    }),
    close: async () => {
      waiters.close();
      caches.clear();
      await Promise.all([searches.close(), checkpoints.underWay()]);
      file.close();
    },
  };
};

/** SQLite's own default: in a thread that fills a file no request waits for a commit. */
const CHECKPOINT_AT_PAGES = 1_000;

/** Opens the next generation in the thread that fills it. */
export const open: OpenGeneration = (args) =>
  openSqliteReadModels({
    ...(args as SqliteReadModelsOptions),
    checkpointInCommitAtPages: CHECKPOINT_AT_PAGES,
  });
