/** Reading the SQLite file, and the documents that are cached from it. */

import type { DamageReports } from '../document-row.ts';
import { ReadModelsUnavailable } from '../errors.ts';
import type {
  ParkedPayment,
  PaymentDocument,
  ReadModelsReader,
  ReadModelsRebuild,
  UnresolvedPayment,
} from '../port.ts';
import type { Connection } from './connection.ts';
import type { Caches, FileThreads, ReplaceableFile } from './replaceable-file.ts';
import type { CheckedRow } from './schema.ts';

/** An index that does not lead to the payment's row, though it has to. */
const unlistedBy = (at: Connection, paymentId: string): string | undefined => {
  const rowid = Number(at.rowid.get(paymentId)?.rowid);
  const counts = at.indexChecks().counts(rowid - 1, rowid);
  return counts.find(({ rows, found }) => rows !== found)?.index;
};

const START = { since: '', paymentId: '' };

/** The reading half of the port; `waitForRevision` needs the writer's process as well. */
export const createReader = (
  { run, isOpen }: ReplaceableFile,
  { documents }: Caches,
  { report, onDamage }: DamageReports,
  threads: FileThreads,
): Omit<ReadModelsReader, 'waitForRevision'> & Pick<ReadModelsRebuild, 'checksum'> => {
  const read = (at: Connection, paymentId: string): PaymentDocument | undefined => {
    const row = at.document.get(paymentId) as CheckedRow | undefined;
    if (row === undefined) return undefined;
    if (!at.rowCheck.holds(row, row.rowCheck)) {
      report(paymentId);
      return undefined;
    }
    const { merchantId, revision, body } = row;
    // The row's text of the id: the request's may be a part of a longer text, and keeps that in memory.
    const document = { paymentId: row.paymentId, merchantId, revision, body, parked: false };
    documents.set(row.paymentId, document);
    return document;
  };

  const documentAt = (at: Connection, paymentId: string): PaymentDocument | undefined => {
    const document = documents.get(paymentId) ?? read(at, paymentId);
    if (document === undefined || !at.anyParked) return document;
    return { ...document, parked: at.isParked.get(paymentId) !== undefined };
  };
  const documentOf = (paymentId: string): PaymentDocument | undefined =>
    run((at) => documentAt(at, paymentId));

  /** Reads in the thread. Throws ReadModelsUnavailable, having replaced a file that it found damaged. */
  const elsewhere = async <T>(read: () => Promise<T>): Promise<T> => {
    if (!isOpen()) throw new ReadModelsUnavailable('the read models are closed');
    return read().catch((error: unknown) =>
      run(() => {
        throw error;
      }),
    );
  };

  return {
    get: async (paymentId, merchantId) => {
      const document = documentOf(paymentId);
      return document?.merchantId === merchantId ? document : undefined;
    },
    getAny: async (paymentId) => documentOf(paymentId),
    search: async (search, limit) => {
      const page = await elsewhere(() => threads.search(search, limit));
      for (const { paymentId, damaged } of page.documents) if (damaged) report(paymentId);
      return page;
    },
    unresolved: async (limit) =>
      run((at) => at.unresolved.all(limit).map((row) => ({ ...row }) as UnresolvedPayment)),
    parked: async (limit, after = START) =>
      run((at) =>
        at.parked
          .all(after.since, after.paymentId, limit)
          .map((row) => ({ ...row }) as ParkedPayment),
      ),
    inspect: async (paymentId) =>
      run((at) => {
        const stored = at.document.get(paymentId) as CheckedRow | undefined;
        const parked = at.isParked.get(paymentId) !== undefined;
        if (stored === undefined) return { row: undefined, whole: true, parked };
        const { rowCheck, ...row } = stored;
        const unlisted = unlistedBy(at, paymentId);
        return { row, whole: at.rowCheck.holds(row, rowCheck), parked, unlisted };
      }),
    indexDamage: (signal) => elsewhere(() => threads.indexDamage(signal)),
    idsAfter: async (paymentId, limit) =>
      run((at) => at.idsAfter.all(paymentId ?? '', limit).map((row) => row.paymentId as string)),
    onDamage,
    checksum: () => elsewhere(threads.checksum),
  };
};
