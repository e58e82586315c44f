/**
 * The read models in a SQLite file, read and written in the calling thread: a read takes a few microseconds,
 * less than a message to another thread. A search can take long, and has a thread of its own.
 * The file may be deleted while the service is stopped, since the log holds all of it. A damaged one, or of
 * another version, never prevents a start: it is thrown away and filled again by the projector.
 */
import type { PaymentReadModel } from '../../payment/state.ts';
import { newThreadHere } from '../../runtime/jobs.ts';
import { inTransaction } from '../../runtime/sqlite.ts';
import { createDamageReports, type DamageReports, NO_CHECK, WHOLE_FILE } from '../damage.ts';
import { columnsOf, readModelOf, rowOf } from '../document-row.ts';
import { CheckpointMoved, ReadModelsUnavailable, RebuildRunning } from '../errors.ts';
import type {
  NextGeneration,
  Parking,
  ReadModels,
  ReadModelsFile,
  ReadModelsWriter,
} from '../port.ts';
import { createRevisionWaiters } from '../waiters.ts';
import { type Caches, createCaches, createReader } from './reader.ts';
import type { CheckedRow, FileConnection } from './schema.ts';
import {
  fileUnavailable,
  openServedFile,
  removeFile,
  type ServedFile,
  type SqliteReadModelsOptions,
} from './served-file.ts';

const checkedRowOf = ({ rowCheck }: FileConnection, readModel: PaymentReadModel): CheckedRow => {
  const row = rowOf(readModel);
  return { ...row, rowCheck: rowCheck.of(row) };
};

const writeRow = (at: FileConnection, row: CheckedRow): boolean => {
  const { changes } = at.write.run(...columnsOf(row), row.rowCheck, row.body);
  if (at.anyParked) at.unpark.run(row.paymentId, row.revision);
  return changes === 1;
};

const park = (at: FileConnection, change: Parking): void => {
  const { paymentId, revision, reason, time } = change;
  at.park.run(paymentId, revision, reason, time, paymentId, revision);
  at.anyParked = true;
};

const writeBatch = (
  at: FileConnection,
  ...[changes, from, to, hash]: Parameters<ReadModelsWriter['apply']>
): PaymentReadModel[] => {
  // Before the transaction, which keeps the file locked.
  const rows = changes.map((change) =>
    change.kind === 'readModel' ? checkedRowOf(at, change.readModel) : undefined,
  );
  return inTransaction(at.db, () => {
    if (at.move.run(to, hash ?? null, from).changes !== 1)
      throw new CheckpointMoved(`the read models' checkpoint is no longer ${from}`);
    const written: PaymentReadModel[] = [];
    for (const [index, change] of changes.entries()) {
      const row = rows[index];
      if (change.kind === 'park') park(at, change);
      else if (change.kind === 'unpark') at.unpark.run(change.paymentId, Number.MAX_SAFE_INTEGER);
      else if (row !== undefined && writeRow(at, row)) written.push(change.readModel);
    }
    return written;
  });
};

/** `onWritten` is called after the commit, once for each document. */
export const createWriter = (
  { run, logMoved, moveLogWhenDue }: ServedFile,
  caches: Caches,
  { note }: DamageReports,
  onWritten: (paymentId: string, revision: number) => void,
): Omit<ReadModelsWriter, 'checkpoint'> => {
  return {
    // One process holds the data folder, and with it this file.
    lease: async () => 'free',
    release: async () => undefined,
    checkpointHash: async (position) =>
      run((at) => {
        const stored = at.checkpoint.get();
        return stored?.position === position ? (stored.hash as string | null) : null;
      }),
    load: async (paymentId) => {
      const readModel = caches.readModels.get(paymentId);
      if (readModel !== undefined) return readModel;
      return run((at) => {
        const row = at.document.get(paymentId) as CheckedRow | undefined;
        if (row === undefined) return undefined;
        if (at.rowCheck.holds(row, row.rowCheck)) return readModelOf(row);
        note(paymentId, NO_CHECK);
        return undefined;
      });
    },
    apply: async (...batch) => {
      await logMoved();
      const written = run((at) => writeBatch(at, ...batch));
      for (const readModel of written) {
        const { paymentId, revision } = readModel;
        caches.readModels.set(paymentId, readModel);
        caches.documents.delete(paymentId);
        onWritten(paymentId, revision);
      }
      run(moveLogWhenDue);
    },
  };
};

/** Opens or makes the file (0600); empties an unusable one with a warning. Throws ReadModelsUnavailable. */
export const openSqliteReadModels = (
  options: SqliteReadModelsOptions,
): ReadModels & { letGo(): Promise<void> } => {
  const waiters = createRevisionWaiters();
  const caches = createCaches();
  const reports = createDamageReports();
  const file = openServedFile(options, {
    onLost: (reason) => reports.note(WHOLE_FILE, reason),
    onReplaced: () => {
      caches.clear();
      reports.clear();
    },
  });

  const revisionOf = (paymentId: string): number =>
    caches.readModels.get(paymentId)?.revision ??
    file.run((at) => at.revision.get(paymentId)?.revision as number | undefined) ??
    -1;

  const reader = createReader(file, caches, reports);

  return {
    ...reader,
    waitForRevision: async (paymentId, revision, timeoutMs) => {
      try {
        if (revisionOf(paymentId) >= revision) return true;
      } catch {
        return false;
      }
      return waiters.wait(paymentId, revision, timeoutMs);
    },
    ...createWriter(file, caches, reports, waiters.reached),
    checkpoint: reader.filledTo,
    compareElsewhere: (step) =>
      file.read(() => step({ file: options.file, secrets: options.secrets })),
    openGeneration: createGenerations(options, file),
    /** For another thread that writes the file; the next call opens it again. */
    letGo: async () => {
      caches.clear();
      await file.letGo();
    },
    close: async () => {
      waiters.close();
      caches.clear();
      await file.close();
    },
  };
};

/** Fills a file next to the served one, and replaces that one by it. One at a time: see ReadModelsRebuild. */
const createGenerations = (options: SqliteReadModelsOptions, { isOpen, replaceBy }: ServedFile) => {
  const file = `${options.file}.next`;
  let rebuilding = false;

  return async (): Promise<NextGeneration> => {
    if (rebuilding) throw new RebuildRunning('the read models are being rebuilt already');
    if (!isOpen()) throw new ReadModelsUnavailable('the read models are closed');
    rebuilding = true;
    let next: ReturnType<typeof openSqliteReadModels>;
    try {
      removeFile(file);
      next = openSqliteReadModels({ ...options, file });
    } catch (error) {
      rebuilding = false;
      throw fileUnavailable(error);
    }
    let ended = false;
    return {
      ...next,
      handOver: async (step) => {
        await next.letGo();
        return step({ file, secrets: options.secrets }).catch((error: unknown) => {
          throw fileUnavailable(error);
        });
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

export const openSqliteGeneration = (file: ReadModelsFile): ReadModels =>
  openSqliteReadModels({
    ...file,
    newThread: newThreadHere,
    checkpointInCommitAtPages: CHECKPOINT_AT_PAGES,
  });
