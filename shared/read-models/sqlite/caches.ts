/** Read models and documents that were written or read lately, kept to spare look-ups in the file. */
import { bytesOfReadModel } from '../../payment/memory.ts';
import type { PaymentReadModel } from '../../payment/response.ts';
import { type BoundedMap, createBoundedMap } from '../../runtime/bounded-map.ts';
import type { PaymentDocument } from '../port.ts';

/** How many payments each cache keeps (some 3 kB each), and how many bytes: of large ones it keeps fewer. */
const CACHED_PAYMENTS_MAX = 4096;
const CACHED_BYTES_MAX = 32 * 1024 * 1024;

/** A document without `parked`, which the file says in another table. */
export type CachedDocument = Pick<PaymentDocument, 'merchantId' | 'revision' | 'body'>;

/** Both by paymentId; neither ever holds what was not committed. */
export type Caches = {
  /** Read models as last written, not serialized, for the next event. */
  readModels: BoundedMap<PaymentReadModel>;
  /** Documents as last written or read: a look-up here costs a tenth of one in the file. */
  documents: BoundedMap<CachedDocument>;
  /** Forgets both, because another file takes the place of this one. */
  clear(): void;
};

/** Empty caches for one set of read models. */
export const createCaches = (): Caches => {
  const readModels = createBoundedMap<PaymentReadModel>(CACHED_PAYMENTS_MAX, {
    bytesMax: CACHED_BYTES_MAX,
    bytesOf: bytesOfReadModel,
  });
  const documents = createBoundedMap<CachedDocument>(CACHED_PAYMENTS_MAX, {
    bytesMax: CACHED_BYTES_MAX,
    // A text takes one or two bytes for each character.
    bytesOf: ({ body }) => 500 + 2 * body.length,
  });
  return {
    readModels,
    documents,
    clear: () => {
      readModels.clear();
      documents.clear();
    },
  };
};
