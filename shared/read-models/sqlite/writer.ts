/** Writing the read models of the SQLite file: a batch and its checkpoint in one transaction. */
import { bodyOf, type PaymentReadModel } from '../../payment/response.ts';
import { CheckpointMoved } from '../errors.ts';
import type { ReadModelChange, ReadModelsWriter } from '../port.ts';
import { type DocumentRow, intact, rowChecksum } from '../row-checksum.ts';
import type { Caches } from './caches.ts';
import type { Connection } from './connection.ts';
import type { ReplaceableFile } from './replaceable-file.ts';

type Written = { readModel: PaymentReadModel; body: string };

const readModelOf = (row: DocumentRow): PaymentReadModel => ({
  merchantId: row.merchantId,
  revision: row.revision,
  unresolved: row.unresolved === null ? [] : JSON.parse(row.unresolved),
  response: JSON.parse(row.body),
});

/** The document's text, or undefined when the file had the document at this revision already. */
const writeReadModel = (at: Connection, readModel: PaymentReadModel): string | undefined => {
  const body = bodyOf(readModel);
  const { merchantId, revision } = readModel;
  const { paymentId, status, createdAt, amount, merchantReference } = readModel.response;
  const first = readModel.unresolved[0];
  const unresolved = first === undefined ? null : JSON.stringify(readModel.unresolved);
  const { changes } = at.write.run(
    paymentId,
    merchantId,
    revision,
    status,
    createdAt,
    amount,
    readModel.response.paymentMethod.card.last4,
    merchantReference ?? null,
    first?.since ?? null,
    unresolved,
    rowChecksum(paymentId, { merchantId, revision, unresolved, body }),
    body,
  );
  if (at.anyParked) at.unpark.run(paymentId, revision);
  return changes === 1 ? body : undefined;
};

const park = (at: Connection, change: ReadModelChange & { kind: 'park' }): void => {
  const { paymentId, revision, reason, time } = change;
  at.park.run(paymentId, revision, reason, time, paymentId, revision);
  at.anyParked = true;
};

/** One transaction; gives the read models that were written, not those that were skipped. */
const writeBatch = (
  at: Connection,
  ...[changes, from, to, hash]: Parameters<ReadModelsWriter['apply']>
): Written[] => {
  const written: Written[] = [];
  at.begin.run();
  try {
    // seeded bug: checkpoint-compared
    if (at.move.run(to, hash ?? null, from).changes !== 1)
      throw new CheckpointMoved(`the read models' checkpoint is no longer ${from}`);
    for (const change of changes) {
      if (change.kind === 'park') park(at, change);
      else {
        const body = writeReadModel(at, change.readModel);
        if (body !== undefined) written.push({ readModel: change.readModel, body });
      }
    }
    at.commit.run();
    return written;
  } catch (error) {
    if (at.db.isTransaction) at.rollback.run();
    throw error;
  }
};

/** The writing half of the port; `onWritten` is called after the commit, once for each document. */
export const createWriter = (
  { run }: ReplaceableFile,
  caches: Caches,
  onWritten: (paymentId: string, revision: number) => void,
): ReadModelsWriter => {
  const remember = ({ readModel, body }: Written): void => {
    const { merchantId, revision, response } = readModel;
    caches.readModels.set(response.paymentId, readModel);
    caches.documents.set(response.paymentId, { merchantId, revision, body });
  };

  return {
    // One process holds the data folder, and with it this file.
    lease: async () => true,
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
        const row = at.document.get(paymentId) as DocumentRow | undefined;
        return row === undefined ? undefined : readModelOf(intact(paymentId, row));
      });
    },
    apply: async (...batch) => {
      for (const written of run((at) => writeBatch(at, ...batch))) {
        remember(written);
        onWritten(written.readModel.response.paymentId, written.readModel.revision);
      }
    },
  };
};
