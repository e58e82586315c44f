/** Reading a generation of read models; each kind of query has its own index. */
import { documentsOf, newestOf } from '../found.ts';
import type { ParkedPayment, ReadModelsReader } from '../port.ts';
import { type Database, type Generation, quick } from './database.ts';
import { filtersOf, foundOf, type StoredPayment, text } from './documents.ts';

/** Timeout of reading a page of documents. */
export const SEARCH_MS_MAX = 5000;
const NEWEST_FIRST = { createdAt: -1, _id: -1 } as const;

const documentOf = (stored: StoredPayment | null) =>
  stored === null ? undefined : documentsOf([foundOf(stored)])[0];

/** The parked payments of a generation, oldest first. */
export const parkedIn = async (
  { read }: Pick<Database, 'read'>,
  { parked }: Generation,
  limit: number,
): Promise<ParkedPayment[]> => {
  const found = await read(() =>
    parked.find({}, quick).sort({ since: 1, _id: 1 }).limit(limit).toArray(),
  );
  return found.map(({ _id, ...rest }) => ({ paymentId: _id, ...rest }));
};

/** Reads from the generation that `now` returns. */
export const createReader = (
  { call, read }: Database,
  now: () => Promise<Generation>,
): Omit<ReadModelsReader, 'waitForRevision'> => {
  const find = async (filter: object): Promise<StoredPayment | null> => {
    const { payments } = await now();
    return read(() => payments.findOne(filter, quick));
  };

  return {
    get: async (paymentId, merchantId) =>
      documentOf(await find({ _id: text(paymentId), merchantId: text(merchantId) })),
    getAny: async (paymentId) => documentOf(await find({ _id: text(paymentId) })),
    search: async (search, limit) => {
      const { payments } = await now();
      const found = await call(SEARCH_MS_MAX, () =>
        Promise.all(
          filtersOf(search).map((filter) =>
            payments
              .find(filter, { maxTimeMS: SEARCH_MS_MAX - 500 })
              .sort(NEWEST_FIRST)
              .limit(limit)
              .toArray(),
          ),
        ),
      );
      return documentsOf(newestOf(found.flat().map(foundOf), limit));
    },
    unresolved: async (limit) => {
      const { payments } = await now();
      const projection = { merchantId: 1, unresolvedSince: 1 };
      const found = await read(() =>
        payments
          .find({ unresolvedSince: { $gt: '' } }, { ...quick, projection })
          .sort({ unresolvedSince: 1, _id: 1 })
          .limit(limit)
          .toArray(),
      );
      return found.map(({ _id, merchantId, unresolvedSince = '' }) => ({
        paymentId: _id,
        merchantId,
        since: unresolvedSince,
      }));
    },
    parked: async (limit) => parkedIn({ read }, await now(), limit),
  };
};
