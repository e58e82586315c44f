/**
 * The end of Stripe's ledger, for the comparison at the start: Stripe lists newest first, so the last
 * entries stand on the first pages of its lists.
 */
import type { LedgerEntry } from '../port.ts';
import {
  afterPlace,
  inOrder,
  intentEntries,
  placeOf,
  refundEntry,
  secondOf,
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
import {
  LIST_PAGE,
  listIntents,
  listRefunds,
  type StripeRequest,
  type Window,
} from './requests.ts';

/** Of a list in which little is ours; one after the other, they take some seconds. */
const PAGES_MAX = 2_000 / LIST_PAGE;

/**
 * Oldest first. `from`: in seconds since 1970, from then on none of the last `limit` entries of the list is
 * missing.
 */
type End = { entries: LedgerEntry[]; from: number };

/** What was made elsewhere is in no log until it is noticed: it does not make the log an older one. */
const isOurs = (entry: LedgerEntry): boolean => entry.operationId !== entry.providerReference;

/** The last entries of one list: `limit` of them or more, or all since `from`. */
const endOfList = async <T extends { id: string; created: number }>(
  send: Send,
  pageOf: (after: string | undefined) => StripeRequest,
  shape: { parse(body: unknown): { data: T[]; has_more: boolean } },
  entriesOf: (object: T) => LedgerEntry[],
  { from, limit }: { from: number; limit: number },
): Promise<End> => {
  // Not the objects, of which there may be 20 MB in each account.
  let last: Pick<T, 'id' | 'created'> | undefined;
  const entries: LedgerEntry[] = [];
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { data, has_more } = await readPage(send, pageOf(last?.id), shape);
    last = data.at(-1) ?? last;
    entries.unshift(...data.toReversed().flatMap(entriesOf).filter(isOurs));
    if (!has_more || data.length === 0 || entries.length >= limit) return { entries, from };
  }
  // The last second that was read may go on on the next page.
  return { entries, from: (last?.created ?? from) + 1 };
};

const endOfBook = async (send: Send, window: Window, limit: number): Promise<End> => {
  const opened = await endOfList(
    send,
    (after) => listIntents(window, after),
    intents,
    intentEntries,
    { from: window.from, limit },
  );
  // Before the last `limit` entries of PaymentIntents no refund is among the last of both.
  const oldest = opened.entries.at(-limit);
  const since = { ...window, from: oldest === undefined ? opened.from : secondOf(oldest) };
  const made = await endOfList(send, (after) => listRefunds(since, after), refunds, refundEntry, {
    from: opened.from,
    limit,
  });
  const entries = inOrder([...opened.entries, ...made.entries]);
  return { entries, from: Math.max(opened.from, made.from) };
};

/**
 * The last entries after a cursor, oldest first, at most `limit`. Throws Error where Stripe cannot be
 * read, and where none of the last 2,000 objects of an account is ours.
 */
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
  if (entries.length === 0 && from > first)
    throw new Error("the end of the provider's ledger was not found");
  return entries.slice(-limit);
};
