/** Writing the SQLite file: a batch and its checkpoint in one transaction. What was written is cached. */
import { bytesOfReadModel, type PaymentReadModel } from '../../payment/payment-response.ts';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import { columnsOf, type DamageReports, readModelOf, rowOf } from '../document-row.ts';
import { CheckpointMoved } from '../errors.ts';
import type { PaymentDocument, ReadModelChange, ReadModelsWriter } from '../port.ts';
import type { Connection } from './connection.ts';
import type { Checkpoints, ReplaceableFile } from './replaceable-file.ts';
import type { CheckedRow } from './schema.ts';

/** Some 3 kB each: the next event of most comes within milliseconds or much later (ADR-0112). */
const READ_MODELS_MAX = 128;
const READ_MODELS_BYTES_MAX = 32 * 1024 * 1024;

/** Documents are kept by their bytes: some 22,000 of an ordinary payment. */
const DOCUMENTS_MAX = 65_536;
const DOCUMENTS_BYTES_MAX = 40 * 1024 * 1024;
const ENTRY_BYTES = 250;

/** ASCII, as nearly all bodies are, takes one byte a character, and most others two. */
const bytesOfBody = ({ body }: PaymentDocument): number =>
  Buffer.byteLength(body) === body.length ? body.length : 2 * body.length;

/** By paymentId; neither ever holds what was not committed. */
export const createCaches = () => {
  /** As last written, not serialized, for the next event. */
  const readModels = createBoundedMap<PaymentReadModel>(READ_MODELS_MAX, {
    bytesMax: READ_MODELS_BYTES_MAX,
    bytesOf: bytesOfReadModel,
  });
  /**
   * As last read, with its check verified; forgotten once it is written again. Most documents are never
   * read, and keeping them on each write would cost more than it spares (ADR-0112). None says that it is
   * parked: the file says that in another table.
   */
  const documents = createBoundedMap<PaymentDocument>(DOCUMENTS_MAX, {
    bytesMax: DOCUMENTS_BYTES_MAX,
    bytesOf: (document) => ENTRY_BYTES + bytesOfBody(document),
  });
  return {
    readModels,
    documents,
    written: (readModel: PaymentReadModel): void => {
      const { paymentId } = readModel.response;
      readModels.set(paymentId, readModel);
      documents.delete(paymentId);
    },
    clear: (): void => {
      readModels.clear();
      documents.clear();
    },
  };
};
export type Caches = ReturnType<typeof createCaches>;

type Repair = ReadModelChange & { kind: 'repair' };

const checkedRowOf = ({ rowCheck }: Connection, readModel: PaymentReadModel): CheckedRow => {
  const row = rowOf(readModel);
  return { ...row, rowCheck: rowCheck.of(row) };
};

/** False when the file had the document at this revision already. */
const writeRow = (at: Connection, row: CheckedRow): boolean => {
  const { changes } = at.write.run(...columnsOf(row), row.rowCheck, row.body);
  if (at.anyParked) at.unpark.run(row.paymentId, row.revision);
  return changes === 1;
};

/** Removes what is stored of a payment, unless it has its check and is newer than what replaces it. */
const makeWay = (at: Connection, { paymentId, readModel }: Repair): void => {
  const row = at.document.get(paymentId) as CheckedRow | undefined;
  const isNewer = row !== undefined && row.revision > (readModel?.revision ?? row.revision);
  if (isNewer && at.rowCheck.holds(row, row.rowCheck)) return;
  at.remove.run(paymentId);
  at.unpark.run(paymentId, Number.MAX_SAFE_INTEGER);
};

const park = (at: Connection, change: ReadModelChange & { kind: 'park' }): void => {
  const { paymentId, revision, reason, time } = change;
  at.park.run(paymentId, revision, reason, time, paymentId, revision);
  at.anyParked = true;
};

/** Returns the read models that were written, not those that were skipped. */
const writeBatch = (
  at: Connection,
  ...[changes, from, to, hash]: Parameters<ReadModelsWriter['apply']>
): PaymentReadModel[] => {
  const written: PaymentReadModel[] = [];
  // Before the transaction, which keeps the file locked.
  const rows = changes.map((change) => {
    const readModel = change.kind === 'park' ? undefined : change.readModel;
    return readModel && { readModel, checked: checkedRowOf(at, readModel) };
  });
  at.begin.run();
  try {
    if (at.move.run(to, hash ?? null, from).changes !== 1)
      throw new CheckpointMoved(`the read models' checkpoint is no longer ${from}`);
    for (const [index, change] of changes.entries()) {
      if (change.kind === 'park') park(at, change);
      else if (change.kind === 'repair') makeWay(at, change);
      const row = rows[index];
      if (row !== undefined && writeRow(at, row.checked)) written.push(row.readModel);
    }
    at.commit.run();
    return written;
  } catch (error) {
    if (at.db.isTransaction) at.rollback.run();
    throw error;
  }
};

/** `onWritten` is called after the commit, once for each document. */
export const createWriter = (
  { run }: ReplaceableFile,
  caches: Caches,
  reports: DamageReports,
  checkpoints: Checkpoints,
  onWritten: (paymentId: string, revision: number) => void,
): ReadModelsWriter => {
  const forget = (paymentId: string): void => {
    caches.readModels.delete(paymentId);
    caches.documents.delete(paymentId);
    reports.written(paymentId);
  };

  return {
    // One process holds the data folder, and with it this file.
    lease: async () => 'free',
    release: async () => undefined,
    checkpoint: async () => run((at) => (at.checkpoint.get()?.position ?? null) as string | null),
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
        reports.report(paymentId);
        return undefined;
      });
    },
    apply: async (...batch) => {
      await checkpoints.underWay();
      const all = run((at) => {
        const written = writeBatch(at, ...batch);
        checkpoints.afterCommit(at);
        return written;
      });
      for (const change of batch[0]) if (change.kind === 'repair') forget(change.paymentId);
      for (const readModel of all) {
        caches.written(readModel);
        onWritten(readModel.response.paymentId, readModel.revision);
      }
    },
  };
};
