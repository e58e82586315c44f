/**
 * Stripe's accounts as one ledger, oldest first. Stripe lists newest first and has no dense sequence, so
 * it is read in windows of creation time that are halved until one fits in memory. What happened to a
 * PaymentIntent stands at the time when it was opened, a refund at its own.
 */
import type { LedgerEntry, LedgerPage } from '../port.ts';
import {
  afterPlace,
  inOrder,
  intentEntries,
  type Place,
  placeOf,
  refundEntry,
} from './ledger-entries.ts';
import {
  type Book,
  CLOCKS_S_MAX,
  eachBook,
  FIRST_SECOND,
  intents,
  readPage,
  refunds,
  type Send,
} from './ledger-pages.ts';
import { listIntents, listRefunds, type StripeRequest, type Window } from './requests.ts';

/** Objects of one window that are held at once; about 5 MB. */
const WINDOW_MAX = 500;
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

/** The entries of a window in one account; undefined where it holds too much. */
const entriesOfBook = async (send: Send, window: Window): Promise<LedgerEntry[] | undefined> => {
  const [opened, made] = await Promise.all([
    readAll(send, (after) => listIntents(window, after), intents),
    readAll(send, (after) => listRefunds(window, after), refunds),
  ]);
  // A second that holds more than fits cannot be halved; Stripe takes 100 requests in it.
  if (opened === undefined || made === undefined) return undefined;
  return [...opened.flatMap(intentEntries), ...made.flatMap(refundEntry)];
};

/** The entries of a window in all accounts, oldest first; undefined where it holds too much. */
const entriesOf = async (
  books: readonly Book[],
  window: Window,
): Promise<LedgerEntry[] | undefined> => {
  const entries: LedgerEntry[] = [];
  for await (const read of eachBook(books, (send) => entriesOfBook(send, window))) {
    if (read === undefined) return undefined;
    entries.push(...read);
    if (entries.length > 2 * WINDOW_MAX && window.to - window.from > 1) return undefined;
  }
  return inOrder(entries);
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
