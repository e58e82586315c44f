/**
 * Stripe's accounts as one ledger, oldest first. Stripe lists newest first and has no dense sequence, so
 * it is read in windows of creation time that are halved until one fits in memory. What happened to a
 * PaymentIntent stands at the time when it was opened, a refund at its own.
 */
import type { LedgerEntry, LedgerPage } from '../port.ts';
import type { StripeResponse } from './client.ts';
import { declinedBy, isRelease, wasCharged } from './read.ts';
import {
  ABANDONED,
  listIntents,
  listRefunds,
  type StripeRequest,
  type Window,
} from './requests.ts';
import {
  listOf,
  type PaymentIntent,
  paymentIntent,
  type RefundWithIntent,
  refundWithIntent,
} from './shapes.ts';

/** Objects of one window that are held at once; about 5 MB. */
const WINDOW_MAX = 500;
/** No PaymentIntent is older. */
const FIRST_SECOND = Date.UTC(2018, 0, 1) / 1_000;
/** An end that has nothing is looked for further back in steps that grow, this often at most. */
const STEPS_MAX = 60;

/** Stripe's clock may be ahead of ours by so much, and a window that ended so long ago is complete. */
const CLOCKS_S_MAX = 60;
/** How far back the end of the ledger is looked for first. */
const LOOK_BACK_S = 60;

type Send = (request: StripeRequest) => Promise<StripeResponse>;
/** The account that is read; `name` for what goes wrong with it. */
export type Book = { send: Send; name: string | undefined };
/** Accounts that are read at once. */
const BOOKS_AT_ONCE = 8;

/** `second.kind.id.part`: the entry after which the ledger goes on. */
type Place = { second: number; name: string };

const placeOf = (cursor: string | null): Place | undefined => {
  if (cursor === null) return undefined;
  const [second = '', ...name] = cursor.split('.');
  if (!/^[0-9]{1,12}$/.test(second)) throw new Error('the cursor is none of this ledger');
  return { second: Number(second), name: name.join('.') };
};

const readPage = async <T>(
  send: Send,
  request: StripeRequest,
  shape: { parse(body: unknown): T },
): Promise<T> => {
  const response = await send(request);
  if ('sent' in response) throw new Error(`the provider's ledger: ${response.reason}`);
  if (response.status !== 200) throw new Error(`the provider's ledger: status ${response.status}`);
  return shape.parse(response.body);
};

/** All objects of a window, oldest first; undefined where there are more than fit. */
const readAll = async <T extends { id: string }>(
  send: Send,
  pageOf: (after: string | undefined) => StripeRequest,
  shape: { parse(body: unknown): { data: T[]; has_more: boolean } },
): Promise<T[] | undefined> => {
  const all: T[] = [];
  for (;;) {
    const { data, has_more } = await readPage(send, pageOf(all.at(-1)?.id), shape);
    all.push(...data);
    if (!has_more || data.length === 0) return all.reverse();
    if (all.length >= WINDOW_MAX) return undefined;
  }
};

const intents = listOf(paymentIntent);
const refunds = listOf(refundWithIntent);

const base = (
  { metadata, currency, created, id }: PaymentIntent | RefundWithIntent,
  part: string,
) => ({
  cursor: `${created}.${part}.${id}`,
  paymentId: metadata?.paymentId ?? '',
  currency: currency.toUpperCase(),
  providerReference: id,
});

/** The create of a PaymentIntent as far as it moved money or was declined. */
const createEntry = (intent: PaymentIntent): LedgerEntry[] => {
  const operationId = intent.metadata?.operationId;
  // Made elsewhere, by the Dashboard for one.
  if (operationId === undefined) return [];
  const kind = intent.capture_method === 'manual' ? 'AUTHORIZE' : 'SALE';
  const entry = { ...base(intent, '0'), operationId, kind, amount: intent.amount } as const;
  const wasFenced = intent.cancellation_reason === ABANDONED;
  if (wasCharged(intent) && !wasFenced) return [{ ...entry, outcome: 'APPROVED' }];
  const { last_payment_error: error, status } = intent;
  if (status !== 'requires_payment_method' || error == null) return [];
  return [{ ...entry, ...declinedBy(error) }];
};

/** What became of it afterwards: a capture and a void exclude each other. */
const changeEntry = (intent: PaymentIntent): LedgerEntry[] => {
  const { captureOperationId, voidOperationId } = intent.metadata ?? {};
  const approved = { ...base(intent, '1'), outcome: 'APPROVED' } as const;
  if (intent.status === 'succeeded' && captureOperationId !== undefined) {
    const amount = intent.amount_received ?? intent.amount;
    return [{ ...approved, operationId: captureOperationId, kind: 'CAPTURE', amount }];
  }
  const isVoid = intent.status === 'canceled' && wasCharged(intent);
  if (!isVoid || voidOperationId === undefined) return [];
  return [{ ...approved, operationId: voidOperationId, kind: 'VOID', amount: intent.amount }];
};

/**
 * A refund of one of our payments that was made elsewhere: by Stripe's own id, as the log has it
 * (PaymentRefundObserved). Also one that failed since: the log keeps that it was made.
 */
const elsewhereEntry = (made: RefundWithIntent): LedgerEntry[] => {
  const { payment_intent: intent, id: operationId, amount } = made;
  if (typeof intent !== 'object' || intent === null || isRelease(made, intent)) return [];
  const { paymentId } = intent.metadata ?? {};
  if (paymentId === undefined) return [];
  const entry = { ...base(made, '2'), paymentId, operationId, kind: 'REFUND', amount } as const;
  return [{ ...entry, outcome: 'APPROVED' }];
};

const refundEntry = (made: RefundWithIntent): LedgerEntry[] => {
  const { operationId } = made.metadata ?? {};
  if (operationId === undefined) return elsewhereEntry(made);
  const entry = { ...base(made, '2'), operationId, kind: 'REFUND', amount: made.amount } as const;
  if (made.status === 'succeeded' || made.status === 'pending')
    return [{ ...entry, outcome: 'APPROVED' }];
  if (made.status !== 'failed' && made.status !== 'canceled') return [];
  return [{ ...entry, ...declinedBy({ code: made.failure_reason ?? 'refund_failed' }) }];
};

const secondOf = ({ cursor }: LedgerEntry): number => Number(cursor.split('.')[0]);

/** The entries of a window in one account; undefined where it holds too much. */
const entriesOfBook = async (
  { send, name }: Book,
  window: Window,
): Promise<LedgerEntry[] | undefined> => {
  try {
    const [opened, made] = await Promise.all([
      readAll(send, (after) => listIntents(window, after), intents),
      readAll(send, (after) => listRefunds(window, after), refunds),
    ]);
    // A second that holds more than fits cannot be halved; Stripe takes 100 requests in it.
    if (opened === undefined || made === undefined) return undefined;
    return [
      ...opened.flatMap((intent) => [...createEntry(intent), ...changeEntry(intent)]),
      ...made.flatMap(refundEntry),
    ];
  } catch (error) {
    throw name === undefined ? error : new Error(`${Object(error).message} (${name})`);
  }
};

/** The entries of a window in all accounts, oldest first; undefined where it holds too much. */
const entriesOf = async (
  books: readonly Book[],
  window: Window,
): Promise<LedgerEntry[] | undefined> => {
  const entries: LedgerEntry[] = [];
  for (let next = 0; next < books.length; next += BOOKS_AT_ONCE) {
    const some = books.slice(next, next + BOOKS_AT_ONCE);
    for (const read of await Promise.all(some.map((book) => entriesOfBook(book, window)))) {
      if (read === undefined) return undefined;
      entries.push(...read);
    }
    if (entries.length > 2 * WINDOW_MAX && window.to - window.from > 1) return undefined;
  }
  // A stable sort keeps the order of Stripe's own lists within a second.
  return entries.sort((a, b) => secondOf(a) - secondOf(b));
};

const afterPlace = (entries: LedgerEntry[], { second, name }: Place): LedgerEntry[] => {
  const at = entries.findIndex(({ cursor }) => cursor === `${second}.${name}`);
  return at < 0 ? entries.filter((entry) => secondOf(entry) >= second) : entries.slice(at + 1);
};

/**
 * What a reader remembers between two pages: how long a window fitted last, and the entries of the
 * last one, so that a page does not cost another search.
 */
export type LedgerMemory = { lengthS?: number; read?: { window: Window; entries: LedgerEntry[] } };

const isWithin = ({ from, to }: Window, { second }: Place): boolean =>
  second >= from && second < to;

/** The window that begins at a place, as long as the last one that fitted, or shorter. */
const readFrom = async (
  books: readonly Book[],
  memory: LedgerMemory,
  from: number,
  end: number,
): Promise<{ window: Window; entries: LedgerEntry[] }> => {
  let lengthS = memory.lengthS ?? end - from;
  for (;;) {
    const window = { from, to: Math.min(from + lengthS, end) };
    const entries = await entriesOf(books, window);
    if (entries !== undefined) {
      memory.lengthS = entries.length < WINDOW_MAX / 2 ? lengthS * 2 : lengthS;
      return { window, entries };
    }
    if (lengthS <= 1) throw new Error("the provider's ledger: too much at once");
    lengthS = Math.ceil((window.to - from) / 2);
  }
};

/** A page of the ledger after a cursor. Throws where Stripe cannot be read. */
export const readLedger = async (
  books: readonly Book[],
  memory: LedgerMemory,
  after: string | null,
  limit: number,
  nowMs: number,
): Promise<LedgerPage> => {
  const place = placeOf(after) ?? { second: FIRST_SECOND, name: '' };
  const end = Math.floor(nowMs / 1_000) + CLOCKS_S_MAX;
  let read = memory.read;
  // A window that reaches to now may have got more since.
  if (
    read === undefined ||
    !isWithin(read.window, place) ||
    read.window.to > end - 2 * CLOCKS_S_MAX
  ) {
    read = await readFrom(books, memory, place.second, end);
  }
  while (afterPlace(read.entries, place).length === 0 && read.window.to < end) {
    read = await readFrom(books, memory, read.window.to, end);
  }
  memory.read = read;
  const entries = afterPlace(read.entries, place);
  const page = entries.slice(0, limit);
  const next = read.window.to < end ? `${read.window.to}.` : null;
  return {
    entries: page,
    next: entries.length > limit ? (page.at(-1)?.cursor ?? null) : next,
    // A rejected capture, void or refund leaves nothing behind.
    declines: 'not kept',
  };
};

/** The last entries after a cursor, oldest first, at most `limit`. Throws where Stripe cannot be read. */
export const readLedgerEnd = async (
  books: readonly Book[],
  after: string | null,
  limit: number,
  nowMs: number,
): Promise<LedgerEntry[]> => {
  const place = placeOf(after);
  const first = place?.second ?? FIRST_SECOND;
  const end = Math.floor(nowMs / 1_000) + CLOCKS_S_MAX;
  // seeded bug: stripe-end-looks-back
  let lengthS = CLOCKS_S_MAX + LOOK_BACK_S;
  for (let step = 0; step < STEPS_MAX; step += 1) {
    const window = { from: Math.max(first, end - lengthS), to: end };
    const read = await entriesOf(books, window);
    if (read === undefined) {
      lengthS = Math.max(1, Math.floor(lengthS / 3));
      continue;
    }
    // What was made elsewhere is in no log until it is noticed: it does not make the log an older one.
    // seeded bug: stripe-ahead-by-dashboard
    const ours = read.filter((entry) => entry.operationId !== entry.providerReference);
    const entries = place === undefined ? ours : afterPlace(ours, place);
    if (entries.length > 0 || window.from === first) return entries.slice(-limit);
    lengthS *= 4;
  }
  throw new Error("the end of the provider's ledger was not found");
};
