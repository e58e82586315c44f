/** Oldest first: Stripe lists newest first, so windows are halved until one fits in memory. */
import { LedgerEndNotFound, type LedgerEntry, type LedgerPage } from '../port.ts';
import type { Send } from './client.ts';
import {
  afterPlace,
  inOrder,
  intentEntries,
  type LedgerPlace,
  placeOf,
  refundEntry,
  secondOf,
} from './ledger-entries.ts';
import { type Book, eachBook, oursAs, type Page, pagesOf, readAll, TOO_MANY } from './lists.ts';
import { Undecided } from './read.ts';
import {
  LIST_PAGE,
  listIntents,
  listRefunds,
  type PageOf,
  searchOurs,
  type Window,
} from './requests.ts';
import { paymentIntent, refundWithIntent } from './shapes.ts';

/** No PaymentIntent is older. In seconds since 1970. */
const FIRST_SECOND = Date.UTC(2018, 0, 1) / 1_000;
/** Stripe's clock may be ahead by so much, and a window that ended so long ago is complete. */
const CLOCKS_S_MAX = 60;

/** Objects of one window; about 5 MB. */
const WINDOW_MAX = 500;
const intentOfOurs = oursAs(paymentIntent);
const refundOfOurs = oursAs(refundWithIntent);

/** Undefined for more than a window may hold. */
const entriesOfBook = async (send: Send, window: Window): Promise<LedgerEntry[] | undefined> => {
  try {
    const [opened, made] = await Promise.all([
      readAll(send, listIntents(window), intentOfOurs, WINDOW_MAX),
      readAll(send, listRefunds(window), refundOfOurs, WINDOW_MAX),
    ]);
    return [...opened.reverse().flatMap(intentEntries), ...made.reverse().flatMap(refundEntry)];
  } catch (error) {
    // A second that holds more than fits cannot be halved; Stripe takes 100 requests in it.
    if (error instanceof Undecided && error.outcome === TOO_MANY) return undefined;
    throw error;
  }
};

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

export type LedgerMemory = { lengthS?: number; read?: { window: Window; entries: LedgerEntry[] } };

const isWithin = ({ from, to }: Window, { second }: LedgerPlace): boolean =>
  second >= from && second < to;

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

export const readLedger = async (
  books: readonly Book[],
  memory: LedgerMemory,
  after: string | null,
  limit: number,
  nowMs: number,
): Promise<LedgerPage> => {
  const place = placeOf(after) ?? { second: FIRST_SECOND, name: '' };
  const end = Math.floor(nowMs / 1_000) + CLOCKS_S_MAX;
  if (place.second >= end) return { entries: [], next: null, declines: 'not kept' };
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

/** In a list that holds little of ours, so many pages take some seconds. */
const PAGES_MAX = 2_000 / LIST_PAGE;

/** Oldest first; complete for the last `limit` entries from the second `from` on. */
type End = { entries: LedgerEntry[]; from: number };

/** A refund from elsewhere is in no log until it is noticed: it does not make the log older. */
const isOurs = (entry: LedgerEntry): boolean => entry.operationId !== entry.providerReference;

const endOfList = async <T>(
  pages: AsyncGenerator<Page<T>>,
  entriesIn: (object: T) => LedgerEntry[],
  { from, limit, pagesMax }: { from: number; limit: number; pagesMax: number },
): Promise<End> => {
  // Not the objects, of which there may be 20 MB in each account.
  const entries: LedgerEntry[] = [];
  let count = 0;
  for await (const { objects, last, more } of pages) {
    entries.unshift(...objects.reverse().flatMap(entriesIn).filter(isOurs));
    if (!more || entries.length >= limit) break;
    count += 1;
    // The last second that was read may go on on the next page.
    if (count === pagesMax) return { entries, from: (last?.created ?? from) + 1 };
  }
  return { entries, from };
};

const endOfBook = async (send: Send, window: Window, limit: number): Promise<End> => {
  const { from } = window;
  const openedIn = (pageOf: PageOf, pagesMax: number): Promise<End> =>
    endOfList(pagesOf(send, pageOf, intentOfOurs), intentEntries, { from, limit, pagesMax });
  const listed = await openedIn(listIntents(window), PAGES_MAX);
  const isHidden = listed.entries.length === 0 && listed.from > from;
  // A minute behind, and an account may have no search.
  const searched = isHidden ? await openedIn(searchOurs, 1).catch(() => undefined) : undefined;
  const opened = searched ?? listed;
  // Before the last `limit` entries of PaymentIntents no refund is among the last of both.
  const oldest = opened.entries.at(-limit);
  const since = { ...window, from: oldest === undefined ? opened.from : secondOf(oldest) };
  const within = { from: opened.from, limit, pagesMax: PAGES_MAX };
  const refunds = pagesOf(send, listRefunds(since), refundOfOurs);
  const made = await endOfList(refunds, refundEntry, within);
  const entries = inOrder([...opened.entries, ...made.entries]);
  return { entries, from: Math.max(opened.from, made.from) };
};

/** Throws LedgerEndNotFound where none of an account's last 2,000 objects is ours, and Error where Stripe fails. */
export const readLedgerEnd = async (
  books: readonly Book[],
  after: string | null,
  limit: number,
  nowMs: number,
): Promise<LedgerEntry[]> => {
  const place = placeOf(after);
  const first = place?.second ?? FIRST_SECOND;
  const window = { from: first, to: Math.floor(nowMs / 1_000) + CLOCKS_S_MAX };
  const all: LedgerEntry[] = [];
  let from = first;
  for await (const end of eachBook(books, (send) => endOfBook(send, window, limit))) {
    all.push(...end.entries);
    from = Math.max(from, end.from);
  }
  const whole = inOrder(all).filter((entry) => secondOf(entry) >= from);
  const entries = place === undefined ? whole : afterPlace(whole, place);
  if (entries.length === 0 && from > first) throw new LedgerEndNotFound(`${window.to}.`);
  return entries.slice(-limit);
};
