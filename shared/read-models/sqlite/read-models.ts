/**
 * The read models in a SQLite file, read and written in the calling thread: a read takes a few
 * microseconds, less than a message to another thread. A search can take long, and has a thread of its
 * own.
 *
 * The file holds nothing that the event log does not: it may be deleted while the service is stopped. A
 * damaged file, or one of another version of this code, is thrown away and filled again by the
 * projector; it never keeps the service from starting.
 */

import { createDamageReports } from '../document-row.ts';
import { ReadModelsUnavailable, RebuildRunning } from '../errors.ts';
import type { NextGeneration, OpenGeneration, ReadModels } from '../port.ts';
import { createRevisionWaiters } from '../waiters.ts';
import { removeFile, type SqliteReadModelsOptions, unavailable } from './connection.ts';
import { createReader } from './reader.ts';
import { createCheckpoints, createFileThreads, openReplaceableFile } from './replaceable-file.ts';
import { createCaches, createWriter } from './writer.ts';

/**
 * Opens the file, or makes it (mode 0600); an unusable one is replaced by an empty one with a warning,
 * also while running. Throws ReadModelsUnavailable where the file can neither be opened nor made.
 */
export const openSqliteReadModels = (options: SqliteReadModelsOptions): ReadModels => {
  const waiters = createRevisionWaiters();
  const caches = createCaches();
  const reports = createDamageReports();
  const threads = createFileThreads(options);
  const checkpoints = createCheckpoints(threads.moveLog);
  const file = openReplaceableFile(options, checkpoints, () => {
    caches.clear();
    // Its connection is to the file that is gone.
    void threads.close();
  });

  const revisionOf = (paymentId: string): number =>
    caches.readModels.get(paymentId)?.revision ??
    file.run((at) => at.revision.get(paymentId)?.revision as number | undefined) ??
    -1;

  const writer = createWriter(file, caches, reports, checkpoints, waiters.reached);

  return {
    ...createReader(file, caches, reports, threads),
    waitForRevision: async (paymentId, revision, timeoutMs) => {
      try {
        if (revisionOf(paymentId) >= revision) return true;
      } catch {
        return false;
      }
      return waiters.wait(paymentId, revision, timeoutMs);
    },
    ...writer,
    openGeneration: createGenerations(options, file.isOpen, (next) =>
      threads.whileClosed(() => file.replaceBy(next)),
    ),
    close: async () => {
      waiters.close();
      caches.clear();
      await Promise.all([threads.close(), checkpoints.underWay()]);
      file.close();
    },
  };
};

/**
 * Fills a file beside the served one, which it then replaces by `replaceBy`. One generation at a time: see
 * ReadModelsRebuild.
 */
const createGenerations = (
  options: SqliteReadModelsOptions,
  isOpen: () => boolean,
  replaceBy: (file: string) => Promise<void>,
) => {
  const file = `${options.file}.next`;
  const args = { file, secrets: options.secrets } satisfies SqliteReadModelsOptions;
  const openNext = (): ReadModels => openSqliteReadModels({ ...options, file });
  let rebuilding = false;

  return async (): Promise<NextGeneration> => {
    if (rebuilding) throw new RebuildRunning('the read models are being rebuilt already');
    if (!isOpen()) throw new ReadModelsUnavailable('the read models are closed');
    rebuilding = true;
    let next: ReadModels;
    try {
      removeFile(file);
      next = openNext();
    } catch (error) {
      rebuilding = false;
      throw unavailable(error);
    }
    let ended = false;
    return {
      checkpoint: () => next.checkpoint(),
      load: (paymentId) => next.load(paymentId),
      apply: (...batch) => next.apply(...batch),
      parked: (...page) => next.parked(...page),
      inspect: (paymentId) => next.inspect(paymentId),
      checksum: () => next.checksum(),
      handOver: async (step) => {
        await next.close();
        try {
          return await step({ module: import.meta.url, args });
        } catch (error) {
          throw unavailable(error);
        } finally {
          next = openNext();
        }
      },
      serve: async () => {
        await next.close();
        await replaceBy(file);
      },
      end: async () => {
        if (ended) return;
        ended = true;
        await next.close();
        removeFile(file);
        rebuilding = false;
      },
    };
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
