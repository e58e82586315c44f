/** Oldest first: windows are halved until one fits. Operations have their intent's time, refunds their own. */
import { LedgerEndNotFound, type LedgerEntry, type LedgerPage } from '../port.ts';
import type { Send } from './client.ts';
import { type Book, eachBook, oursAs, type Page, pagesOf, readAll, TOO_MANY } from './lists.ts';
import {
  declinedBy,
  hasFailed,
  isFenced,
  isMade,
  isReleased,
  refundDeclinedBy,
  Undecided,
  wasCharged,
} from './read.ts';
import { listIntents, listRefunds, type PageOf, searchOurs, type Window } from './requests.ts';
import {
  type PaymentIntent,
  paymentIntent,
  type RefundWithIntent,
  refundWithIntent,
} from './shapes.ts';

/** `second.kind.id.part`: the entry after which the ledger goes on. */
type LedgerPlace = { second: number; name: string };

const placeOf = (cursor: string | null): LedgerPlace | undefined => {
  if (cursor === null) return undefined;
  const [second = '', ...name] = cursor.split('.');
  if (!/^[0-9]{1,12}$/.test(second)) throw new Error('the cursor is none of this ledger');
  return { second: Number(second), name: name.join('.') };
};

const secondOf = ({ cursor }: LedgerEntry): number => Number(cursor.split('.')[0]);

/** A stable sort keeps the order of Stripe's own lists within a second. */
const inOrder = (entries: readonly LedgerEntry[]): LedgerEntry[] =>
  entries.toSorted((a, b) => secondOf(a) - secondOf(b));

const afterPlace = (entries: LedgerEntry[], { second, name }: LedgerPlace): LedgerEntry[] => {
  const at = entries.findIndex(({ cursor }) => cursor === `${second}.${name}`);
  return at < 0 ? entries.filter((entry) => secondOf(entry) >= second) : entries.slice(at + 1);
};

const base = (
  { metadata, currency, created, id }: PaymentIntent | RefundWithIntent,
  part: string,
) => ({
  cursor: `${created}.${part}.${id}`,
  paymentId: metadata?.paymentId ?? '',
  currency: currency.toUpperCase(),
  providerReference: id,
});

/** Canceled since: what was declined is not left open. */
const DECLINED: readonly string[] = ['requires_payment_method', 'canceled'];

const createEntry = (intent: PaymentIntent): LedgerEntry[] => {
  const operationId = intent.metadata?.operationId;
  // Made elsewhere, by the Dashboard for one.
  if (operationId === undefined) return [];
  const kind = intent.capture_method === 'manual' ? 'AUTHORIZE' : 'SALE';
  const entry = { ...base(intent, '0'), operationId, kind, amount: intent.amount } as const;
  if (wasCharged(intent) && !isFenced(intent)) return [{ ...entry, outcome: 'APPROVED' }];
  const { last_payment_error: error, status } = intent;
  if (!DECLINED.includes(status) || error == null) return [];
  return [{ ...entry, ...declinedBy(error) }];
};

/** A capture and a void exclude each other. Made elsewhere it has the intent's id, as in the log. */
const changeEntry = (intent: PaymentIntent): LedgerEntry[] => {
  const { operationId: own, captureOperationId, voidOperationId } = intent.metadata ?? {};
  if (own === undefined || intent.capture_method !== 'manual') return [];
  const approved = { ...base(intent, '1'), outcome: 'APPROVED' } as const;
  if (intent.status === 'succeeded') {
    const amount = intent.amount_received ?? intent.amount;
    return [{ ...approved, operationId: captureOperationId ?? intent.id, kind: 'CAPTURE', amount }];
  }
  // A void that was named and never sent is not what Stripe's own cancel carried out.
  if (!isReleased(intent)) return [];
  const operationId = voidOperationId ?? (isFenced(intent) ? undefined : intent.id);
  if (operationId === undefined) return [];
  return [{ ...approved, operationId, kind: 'VOID', amount: intent.amount }];
};

const intentEntries = (intent: PaymentIntent): LedgerEntry[] => [
  ...createEntry(intent),
  ...changeEntry(intent),
];

/** One made elsewhere has Stripe's id, as in the log, also where it failed since: it was made. */
export const refundEntry = (made: RefundWithIntent): LedgerEntry[] => {
  const { operationId: own } = made.metadata ?? {};
  const intent = typeof made.payment_intent === 'object' ? made.payment_intent : undefined;
  const { paymentId } = (own === undefined ? intent : made)?.metadata ?? {};
  if (own === undefined && paymentId === undefined) return [];
  const about = { ...base(made, '2'), paymentId: paymentId ?? '', operationId: own ?? made.id };
  const entry = { ...about, kind: 'REFUND', amount: made.amount } as const;
  if (own === undefined || isMade(made)) return [{ ...entry, outcome: 'APPROVED' }];
  return hasFailed(made) ? [{ ...entry, ...refundDeclinedBy(made) }] : [];
};

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

const entriesOf = async (books: readonly Book[], window: Window) => {
  const entries: LedgerEntry[] = [];
  for await (const read of eachBook(books, (send) => entriesOfBook(send, window))) {
    if (read === undefined) return undefined;
    entries.push(...read);
    if (entries.length > 2 * WINDOW_MAX && window.to - window.from > 1) return undefined;
  }
  return inOrder(entries);
};

/** How long a window may be to fit, in seconds, as the last ones were. */
export type LedgerMemory = { lengthS?: number };

const readFrom = async (
  books: readonly Book[],
  memory: LedgerMemory,
  from: number,
  end: number,
): Promise<{ to: number; entries: LedgerEntry[] }> => {
  let lengthS = memory.lengthS ?? end - from;
  for (;;) {
    const to = Math.min(from + lengthS, end);
    const entries = await entriesOf(books, { from, to });
    if (entries !== undefined) {
      memory.lengthS = entries.length < WINDOW_MAX / 2 ? lengthS * 2 : lengthS;
      return { to, entries };
    }
    if (lengthS <= 1) throw new Error("the provider's ledger: too much at once");
    lengthS = Math.ceil((to - from) / 2);
  }
};

export const readStripeLedger = async (
  books: readonly Book[],
  memory: LedgerMemory,
  after: string | null,
  limit: number,
  nowMs: number,
): Promise<LedgerPage> => {
  const place = placeOf(after) ?? { second: FIRST_SECOND, name: '' };
  const end = Math.floor(nowMs / 1_000) + CLOCKS_S_MAX;
  let read = { to: place.second, entries: [] as LedgerEntry[] };
  while (read.entries.length === 0 && read.to < end) {
    const { to, entries } = await readFrom(books, memory, read.to, end);
    read = { to, entries: afterPlace(entries, place) };
  }
  const entries = read.entries.slice(0, limit);
  const isCut = read.entries.length > limit;
  const last = isCut ? entries.at(-1)?.cursor : undefined;
  const next = last ?? (read.to < end ? `${read.to}.` : null);
  // A rejected capture, void or refund leaves nothing behind.
  return { entries, next, declines: 'not kept' };
};

/** In a list that holds little of ours, so many pages of 100 take some seconds. */
const PAGES_MAX = 20;

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
