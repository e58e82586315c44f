/**
 * Every text is a parameter, never SQL. A search reads a merchant's payments in slices, newest first, and gives
 * others a turn between two; for a rare text it ends after so many and says how far it came (ADR-0185).
 */
import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import type { RowCheck } from '../document-row.ts';
import { type Found, type Gathered, gather, gathered, newestOf, pageOf } from '../pages.ts';
import type { PaymentSearch, PaymentSearchPage } from '../port.ts';
import { type CheckedRow, HAS_INDEXED_STATUS, INDEXED_STATUSES, ROW } from './schema.ts';

/** It may be one that only reads. */
export type SearchConnection = { db: DatabaseSync; rowCheck: RowCheck };

/** Payments that one search looks at: at a time, and in all. */
export type SearchBounds = { sliceRows: number; rowsMax: number };

const BOUNDS: SearchBounds = { sliceRows: 500, rowsMax: 20_000 };
/** A look at the index alone costs so much less. */
const IN_INDEX = 10;
/** Each slice is so many times as large as the one before, up to the bound. */
const GROWTH = 4;

type Condition = [sql: string, ...values: (string | number)[]];
type Place = NonNullable<PaymentSearch['after']>;

const given = <T>(value: T | undefined, condition: (value: T) => Condition): Condition[] =>
  value === undefined ? [] : [condition(value)];

const NEWEST_FIRST = 'ORDER BY created_at DESC, payment_id DESC';
const whereOf = (conditions: Condition[]): string =>
  conditions.map(([sql]) => sql).join(' AND ') || 'TRUE';
const valuesOf = (conditions: Condition[]) => conditions.flatMap(([, ...values]) => values);

const beforePlace = (place: Place | undefined): Condition[] =>
  given(place, ({ createdAt, paymentId }) => [
    '(created_at, payment_id) < (?, ?)',
    createdAt,
    paymentId,
  ]);

/** `indexed`: by an index, in order; `covered`: at its end, no row is read; `checked`: each row. */
type Part = { indexed: Condition[]; covered: Condition[]; checked: Condition[] };

const foundOf = ({ rowCheck }: SearchConnection, row: CheckedRow & { parked: number }): Found => {
  const { paymentId, merchantId, revision, body, createdAt } = row;
  const found = { paymentId, merchantId, revision, body, createdAt, parked: row.parked === 1 };
  return rowCheck.holds(row, row.rowCheck) ? found : { ...found, damaged: true };
};

/** The reads all see the same rows. */
const inOneTransaction = <T>(db: DatabaseSync, read: () => T): T => {
  db.exec('BEGIN');
  try {
    return read();
  } finally {
    if (db.isTransaction) db.exec('COMMIT');
  }
};

/**
 * Gathers the found ones of the next `rows` payments. Returns the last place looked at where the page is
 * not full and there may be more. A row is read with its body only once the page has room for it.
 */
const readSlice = (
  at: SearchConnection,
  { indexed, covered, checked }: Part,
  { after, rows }: { after: Place | undefined; rows: number },
  page: Gathered,
  limit: number,
): Place | undefined => {
  const range = [...indexed, ...beforePlace(after)];
  const where = whereOf(range);
  const values = valuesOf(range);
  const found = at.db
    .prepare(
      `SELECT rowid AS id FROM payment
       WHERE rowid IN (
           SELECT id FROM (
             SELECT rowid AS id, last4, amount FROM payment WHERE ${where} ${NEWEST_FIRST} LIMIT ?
           ) WHERE ${whereOf(covered)}
         )
         AND ${whereOf(checked)}
       ${NEWEST_FIRST} LIMIT ?`,
    )
    .all(
      ...values,
      rows,
      ...valuesOf(covered),
      ...valuesOf(checked),
      limit + 1 - page.found.length,
    );
  const document = at.db.prepare(
    `SELECT ${ROW}, EXISTS (SELECT 1 FROM parked WHERE parked.payment_id = payment.payment_id) AS parked
     FROM payment WHERE rowid = ?`,
  );
  for (const { id } of found) {
    const row = document.get(id as number);
    gather(page, limit, foundOf(at, row as unknown as CheckedRow & { parked: number }));
    if (page.isFull) return undefined;
  }
  const end = at.db
    .prepare(
      `SELECT created_at AS createdAt, payment_id AS paymentId FROM payment
       WHERE ${where} ${NEWEST_FIRST} LIMIT 1 OFFSET ?`,
    )
    .get(...values, rows - 1);
  return end as Place | undefined;
};

/** `end` is given where `rowsMax` was reached before the last slice. */
const scan = async (
  at: SearchConnection,
  part: Part,
  after: Place | undefined,
  limit: number,
  { sliceRows, rowsMax }: SearchBounds,
): Promise<{ found: Found[]; end?: Place }> => {
  const page = gathered(limit);
  const { found } = page;
  let from = after;
  let rows = Math.min(limit + 1, sliceRows);
  for (let looked = rows; ; looked += rows) {
    const slice = { after: from, rows };
    const end = inOneTransaction(at.db, () => readSlice(at, part, slice, page, limit));
    if (end === undefined) return { found };
    if (looked >= rowsMax) return { found, end };
    from = end;
    rows = Math.min(rows * GROWTH, sliceRows);
    await turn();
  }
};

/** One step in the index for each merchant that has a payment. */
const MERCHANTS = `
  WITH RECURSIVE merchant (id) AS (
    SELECT min(merchant_id) FROM payment
    UNION ALL
    SELECT (SELECT min(merchant_id) FROM payment WHERE merchant_id > id)
    FROM merchant WHERE id IS NOT NULL
  )
  SELECT id FROM merchant WHERE id IS NOT NULL`;

const merchantsOf = (db: DatabaseSync): string[] =>
  db
    .prepare(MERCHANTS)
    .all()
    .map(({ id }) => id as string);

const INDEXED: readonly string[] = INDEXED_STATUSES;

/** By the index that the status has, if any (schema.ts). */
const ofMerchantIn = (
  status: string | undefined,
  merchantId: string,
): Pick<Part, 'indexed' | 'checked'> => {
  const ofMerchant: Condition = ['merchant_id = ?', merchantId];
  if (status === undefined) return { indexed: [ofMerchant], checked: [] };
  const is: Condition = ['status = ?', status];
  if (INDEXED.includes(status))
    return { indexed: [[HAS_INDEXED_STATUS], is, ofMerchant], checked: [] };
  if (status !== 'PENDING') return { indexed: [ofMerchant], checked: [is] };
  // The sign keeps SQLite from the index of the merchant, which holds the others as well.
  const unresolved: Condition[] = [
    ['unresolved_since IS NOT NULL'],
    ['+merchant_id = ?', merchantId],
  ];
  return { indexed: unresolved, checked: [is] };
};

/**
 * Each part has an index, as an OR over them would not: the three meanings of a text, and one merchant after
 * the other. Time has no index: each new payment would pay for it, and only an auditor's search would use it.
 */
const partsOf = (db: DatabaseSync, search: PaymentSearch): Part[] => {
  const { text, merchantReference } = search;
  const merchants = search.merchantId === undefined ? merchantsOf(db) : [search.merchantId];
  const inTime = [
    ...given(search.from, (from): Condition => ['created_at >= ?', from]),
    ...given(search.to, (to): Condition => ['created_at < ?', to]),
  ];
  const checked = given(search.status, (status): Condition => ['status = ?', status]);
  const amounts = [
    ...given(search.minAmount, (amount): Condition => ['amount >= ?', amount]),
    ...given(search.maxAmount, (amount): Condition => ['amount <= ?', amount]),
  ];
  const ofEach = (covered: Condition[]): Part[] =>
    merchants.map((id) => {
      const { indexed, checked } = ofMerchantIn(search.status, id);
      return { indexed: [...indexed, ...inTime], covered: [...covered, ...amounts], checked };
    });
  const byReference = (value: string, more: Condition[] = []): Part[] =>
    merchants.map((id) => ({
      indexed: [['merchant_reference = ?', value], ['merchant_id = ?', id], ...inTime],
      covered: [],
      checked: [...checked, ...amounts, ...more],
    }));
  const both = given(merchantReference, (value): Condition => ['merchant_reference = ?', value]);
  const last4 = given(text, (digits): Condition => ['last4 = ?', digits]);
  if (text === undefined)
    return merchantReference === undefined ? ofEach([]) : byReference(merchantReference);
  const ofMerchant = given(search.merchantId, (id): Condition => ['+merchant_id = ?', id]);
  // Other texts are no last digits of a card: that part would look at every payment.
  const isLast4 = /^[0-9]{4}$/.test(text);
  const byLast4 = (): Part[] =>
    merchantReference === undefined ? ofEach(last4) : byReference(merchantReference, last4);
  return [
    {
      indexed: [['payment_id = ?', text]],
      covered: amounts,
      checked: [...ofMerchant, ...inTime, ...checked, ...both],
    },
    ...byReference(text, both),
    ...(isLast4 ? byLast4() : []),
  ];
};

const isNewer = (a: Place, b: Place): boolean =>
  a.createdAt === b.createdAt ? a.paymentId > b.paymentId : a.createdAt > b.createdAt;

export const searchSqlite = async (
  at: SearchConnection,
  search: PaymentSearch,
  limit: number,
  bounds: SearchBounds = BOUNDS,
): Promise<PaymentSearchPage> => {
  const parts = partsOf(at.db, search);
  const share = Math.max(bounds.sliceRows, Math.floor(bounds.rowsMax / parts.length));
  let page = gathered(limit);
  let searchedTo: Place | undefined;
  for (const { indexed, covered, checked } of parts) {
    // Of the next merchant only payments as new as the oldest document that the page can have.
    const oldest = page.isFull ? page.found.at(-1)?.createdAt : undefined;
    const newer = given(oldest, (time): Condition => ['created_at >= ?', time]);
    const part = { indexed: [...indexed, ...newer], covered, checked };
    const factor = checked.length === 0 ? IN_INDEX : 1;
    const scanned = await scan(at, part, search.after, limit, {
      sliceRows: bounds.sliceRows * factor,
      rowsMax: share * factor,
    });
    page = newestOf([...page.found, ...scanned.found], limit);
    const { end } = scanned;
    if (end !== undefined && (searchedTo === undefined || isNewer(end, searchedTo)))
      searchedTo = end;
  }
  if (searchedTo === undefined) return pageOf(page);
  const place = searchedTo;
  // A part that was left has older payments than the place where it was left, and they come first.
  const searched = page.found.filter((one) => !isNewer(place, one));
  return pageOf(gathered(limit, searched), searchedTo);
};
