/** Reading the SQLite file, and the documents that are cached from it. */
import { type DamageReports, NO_CHECK } from '../damage.ts';
import type {
  ComparedReadModels,
  ParkedPayment,
  PaymentDocument,
  ReadModelsReader,
  ReadModelsRebuild,
  UnresolvedPayment,
} from '../port.ts';
import type { Caches } from './caches.ts';
import type { CheckedRow } from './schema.ts';
import type { FileConnection, ServedFile } from './served-file.ts';

const START = { since: '', paymentId: '' };

/** Reads past every cache, by the connection that `run` gives. */
export const createUncachedReads = (
  run: ServedFile['run'],
  note: DamageReports['note'] = () => undefined,
): ComparedReadModels => ({
  filledTo: async () => run((at) => (at.checkpoint.get()?.position ?? null) as string | null),
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
      const whole = stored === undefined || at.rowCheck.holds(stored, stored.rowCheck);
      note(paymentId, whole ? undefined : NO_CHECK);
      if (stored === undefined) return { row: undefined, whole, parked };
      const { rowCheck: _, ...row } = stored;
      return { row, whole, parked };
    }),
  idsAfter: async (paymentId, limit) =>
    run((at) => at.idsAfter.all(paymentId ?? '', limit).map((row) => row.paymentId as string)),
});

/** The reading half of the port; `waitForRevision` needs the writer's process as well. */
export const createReader = (
  { run, search, checksum }: ServedFile,
  { documents }: Caches,
  { note, onDamage, damaged }: DamageReports,
): Omit<ReadModelsReader, 'waitForRevision'> & Pick<ReadModelsRebuild, 'checksum'> => {
  const read = (at: FileConnection, paymentId: string): PaymentDocument | undefined => {
    const row = at.document.get(paymentId) as CheckedRow | undefined;
    if (row === undefined) return undefined;
    const isWhole = at.rowCheck.holds(row, row.rowCheck);
    note(paymentId, isWhole ? undefined : NO_CHECK);
    if (!isWhole) return undefined;
    const { merchantId, revision, body } = row;
    // The row's text of the id: the request's may be a part of a longer text, and keeps that in memory.
    const document = { paymentId: row.paymentId, merchantId, revision, body, parked: false };
    documents.set(row.paymentId, document);
    return document;
  };

  const documentAt = (at: FileConnection, paymentId: string): PaymentDocument | undefined => {
    const document = documents.get(paymentId) ?? read(at, paymentId);
    if (document === undefined || !at.anyParked) return document;
    return { ...document, parked: at.isParked.get(paymentId) !== undefined };
  };
  const documentOf = (paymentId: string): PaymentDocument | undefined =>
    run((at) => documentAt(at, paymentId));

  return {
    ...createUncachedReads(run, note),
    get: async (paymentId, merchantId) => {
      const document = documentOf(paymentId);
      return document?.merchantId === merchantId ? document : undefined;
    },
    getAny: async (paymentId) => documentOf(paymentId),
    search: async (...request) => {
      const page = await search(...request);
      for (const { paymentId, damaged } of page.documents)
        note(paymentId, damaged ? NO_CHECK : undefined);
      return page;
    },
    unresolved: async (limit) =>
      run((at) => at.unresolved.all(limit).map((row) => ({ ...row }) as UnresolvedPayment)),
    onDamage,
    damaged,
    checksum,
  };
};
