/** Writing the SQLite file: a batch and its checkpoint in one transaction. */
import type { PaymentReadModel } from '../../payment/payment-response.ts';
import { columnsOf, readModelOf, rowOf } from '../document-row.ts';
import { CheckpointMoved } from '../errors.ts';
import type { ReadModelChange, ReadModelsWriter } from '../port.ts';
import type { DamageReports } from '../row-check.ts';
import type { Caches } from './caches.ts';
import type { Connection } from './connection.ts';
import type { Checkpoints } from './file-threads.ts';
import type { ReplaceableFile } from './replaceable-file.ts';
import type { CheckedRow } from './schema.ts';

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
