/** What is kept in memory of the served file's documents (ADR-0112). */
import { bytesOfReadModel, type PaymentReadModel } from '../../payment/state.ts';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import type { PaymentDocument } from '../port.ts';

/** Some 3 kB each: the next event of most comes within milliseconds or much later (ADR-0112). */
const READ_MODELS_MAX = 128;
const READ_MODELS_BYTES_MAX = 32 * 1024 * 1024;

/** Documents are kept by their bytes: some 22,000 of an ordinary payment. */
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
