/** Reading a generation of read models; each kind of query has its own index. */
import { type DamageReports, NO_CHECK } from '../damage.ts';
import type { RowCheck } from '../document-row.ts';
import { documentsOf, type Found, gather, gathered, newestOf, pageOf } from '../pages.ts';
import type {
  ParkedPayment,
  ParkedPlace,
  PaymentDocument,
  ReadModelsReader,
  StoredDocument,
} from '../port.ts';
import { oneOf } from './batch-writes.ts';
import { type Database, type Generation, quick, type Served } from './database.ts';
import {
  filtersOf,
  foundOf,
  isParked,
  isWhole,
  rowIn,
  type StoredPayment,
  storedText,
} from './documents.ts';

export const SEARCH_MS_MAX = 5000;
/** Documents that the server sends at once: a page may be full after a few large ones. */
const SEARCH_BATCH = 32;
const NEWEST_FIRST = { createdAt: -1, _id: -1 } as const;

/** A row of the list has texts in these fields: pages go on from them. */
const SINCE = { since: { $gte: '' } };
const LISTED = { _id: { $gte: '' }, ...SINCE };

const afterPlace = (after: ParkedPlace | undefined): object => {
  if (after === undefined) return LISTED;
  const since = storedText(after.since);
  const later = {
    $or: [{ since: { $gt: since } }, { since, _id: { $gt: storedText(after.paymentId) } }],
  };
  return { ...LISTED, ...later };
};

export const parkedIn = async (
  { read }: Pick<Database, 'read'>,
  { parked }: Generation,
  limit: number,
  after?: ParkedPlace,
): Promise<ParkedPayment[]> => {
  const found = await read(() =>
    parked.find(afterPlace(after), quick).sort({ since: 1, _id: 1 }).limit(limit).toArray(),
  );
  return found.map(({ _id, ...rest }) => ({ paymentId: _id, ...rest }));
};

export const inspectIn = async (
  { read }: Pick<Database, 'read'>,
  { payments, parked }: Generation,
  paymentId: string,
  rowCheck: RowCheck,
): Promise<StoredDocument> => {
  const _id = storedText(paymentId);
  const [stored, parking] = await read(() =>
    Promise.all([payments.findOne({ _id }, quick), parked.findOne({ _id, ...SINCE }, quick)]),
  );
  const isListed = parking !== null;
  if (stored === null) return { row: undefined, whole: true, parked: isListed };
  return {
    row: rowIn(stored),
    whole: isWhole(stored, rowCheck),
    // GET goes by the mark, operators by the list: a document with one of them alone has to be told.
    parked: isListed && isParked(stored),
  };
};

/**
 * Look-ups share calls: a call costs more than all else of a GET, and hardly more for many ids. One is under
 * way at a time; those that come meanwhile share the next, and its failure, so each is read after it came.
 */
export const shareLookUps = <T extends { _id: string }>(
  findAll: (ids: string[]) => Promise<T[]>,
): ((id: string) => Promise<T | undefined>) => {
  let running: Promise<unknown> = Promise.resolve();
  let next: { ids: Set<string>; found: Promise<Map<string, T>> } | undefined;

  const begin = () => {
    const ids = new Set<string>();
    const found = running.then(async () => {
      // A look-up from now on could get a document that was read before it.
      next = undefined;
      return new Map((await findAll([...ids])).map((document) => [document._id, document]));
    });
    running = found.catch(() => undefined);
    return { ids, found };
  };

  return async (id) => {
    next ??= begin();
    next.ids.add(id);
    return (await next.found).get(id);
  };
};

type ReaderDeps = {
  served: Served['read'];
  rowCheck: RowCheck;
  reports: DamageReports;
};

export const createReader = (
  database: Database,
  { served, rowCheck, reports }: ReaderDeps,
): Omit<ReadModelsReader, 'waitForRevision'> => {
  const { call, control, read } = database;
  const readServed = <T>(step: (from: Generation) => Promise<T>): Promise<T> =>
    served((from) => read(() => step(from)));

  const documentOf = (stored: StoredPayment | undefined): PaymentDocument | undefined => {
    const [found] = stored === undefined ? [] : noteDamaged([foundOf(stored, rowCheck)]);
    return found === undefined || found.damaged ? undefined : documentsOf([found])[0];
  };
  const noteDamaged = (found: Found[]): Found[] => {
    for (const { paymentId, damaged } of found)
      reports.note(paymentId, damaged ? NO_CHECK : undefined);
    return found;
  };
  // By ids alone: FerretDB reads everything for a filter of more.
  const lookUp = shareLookUps<StoredPayment>((ids) => {
    // With one more than there can be, the server knows the end and keeps no cursor.
    const whole = { ...quick, batchSize: ids.length + 1 };
    return readServed(({ payments }) => payments.find({ _id: oneOf(ids) }, whole).toArray());
  });
  const getAny = async (paymentId: string): Promise<PaymentDocument | undefined> =>
    documentOf(await lookUp(storedText(paymentId)));

  return {
    get: async (paymentId, merchantId) => {
      const document = await getAny(paymentId);
      return document?.merchantId === merchantId ? document : undefined;
    },
    getAny,
    search: async (search, limit) => {
      const found = await served(({ payments }) =>
        call(SEARCH_MS_MAX, () =>
          Promise.all(
            filtersOf(search).map(async (filter) => {
              const page = gathered(limit);
              const options = { maxTimeMS: SEARCH_MS_MAX - 500, batchSize: SEARCH_BATCH };
              const cursor = payments
                .find(filter, options)
                .sort(NEWEST_FIRST)
                .limit(limit + 1);
              for await (const stored of cursor) {
                gather(page, limit, foundOf(stored, rowCheck));
                if (page.isFull) break;
              }
              return page.found;
            }),
          ),
        ),
      );
      return pageOf(newestOf(noteDamaged(found.flat()), limit));
    },
    unresolved: async (limit) => {
      const projection = { merchantId: 1, unresolvedSince: 1 };
      const found = await readServed(({ payments }) =>
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
    parked: (limit, after) => served((from) => parkedIn({ read }, from, limit, after)),
    inspect: async (paymentId) => {
      const stored = await served((from) => inspectIn(database, from, paymentId, rowCheck));
      reports.note(paymentId, stored.whole ? undefined : NO_CHECK);
      return stored;
    },
    filledTo: async () => {
      const stored = await readServed(({ checkpointId }) =>
        control.findOne({ _id: checkpointId }, quick),
      );
      return stored?.position ?? null;
    },
    idsAfter: async (paymentId, limit) => {
      // Of texts alone, also at first: no other id is a payment's.
      const filter = { _id: { $gt: storedText(paymentId ?? '') } };
      const found = await readServed(({ payments }) =>
        payments
          .find(filter, { ...quick, projection: { _id: 1 } })
          .sort({ _id: 1 })
          .limit(limit)
          .toArray(),
      );
      return found.map(({ _id }) => _id);
    },
    onDamage: reports.onDamage,
    damaged: reports.damaged,
  };
};
