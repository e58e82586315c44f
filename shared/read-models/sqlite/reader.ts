/** Reading the SQLite file, and what is kept in memory of its documents (ADR-0112). */
import { bytesOfReadModel, type PaymentReadModel } from '../../payment/state.ts';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import { type DamageReports, NO_CHECK } from '../damage.ts';
import type {
  ComparedReadModels,
  ParkedPayment,
  PaymentDocument,
  ReadModelsReader,
  ReadModelsRebuild,
  UnresolvedPayment,
} from '../port.ts';
import type { CheckedRow, FileConnection } from './schema.ts';
import type { ServedFile } from './served-file.ts';

/** Some 3 kB each: the next event of most comes within milliseconds or much later (ADR-0112). */
const READ_MODELS_MAX = 128;
const READ_MODELS_BYTES_MAX = 32 * 1024 * 1024;

/** Documents are kept by their bytes: some 20,000 of a payment; once opened, one not in ASCII takes twice that. */
const DOCUMENTS_MAX = 32_768;
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
   * As last read, with its check verified; a write forgets it: most are never read, and keeping each would cost
   * more than it spares (ADR-0112). None says that it is parked: the file says that in another table.
   */
  const documents = createBoundedMap<PaymentDocument>(DOCUMENTS_MAX, {
    bytesMax: DOCUMENTS_BYTES_MAX,
    bytesOf: (document) => ENTRY_BYTES + bytesOfBody(document),
  });
  return {
    readModels,
    documents,
    clear: (): void => {
      readModels.clear();
      documents.clear();
    },
  };
};
export type Caches = ReturnType<typeof createCaches>;

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
    const isParked = document && at.anyParked && at.isParked.get(paymentId) !== undefined;
    return isParked ? { ...document, parked: true } : document;
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
