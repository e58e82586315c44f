/**
 * The provider's ledger against the log, read in step so that little waits for its counterpart. An
 * intent is durable before its call: so the log is read past the end of the ledger, then the ledger
 * past the end of the log, and an operation that was carried out meanwhile is not missing.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { isOfPayment } from '../../shared/event-store/fold-stream.ts';
import type { LogReader, Position } from '../../shared/event-store/port.ts';
import { type LogScan, scanLog } from '../../shared/event-store/scan-log.ts';
import { type PaymentEvent, streamOf } from '../../shared/payment/payment-events.ts';
import { resultOf } from '../../shared/runtime/scan.ts';
import { pauseAt } from '../../shared/runtime/slices.ts';
import type { LedgerEntry, LedgerPage, Provider } from '../provider/port.ts';
import { type Books, createBooks } from './books.ts';
import type { Reconciliation } from './contract.ts';
import { differenceOf, type Logged, ledgerIdOf, loggedAfter } from './differences.ts';

export class LedgerUnavailable extends Error {
  override name = 'LedgerUnavailable';
}

export type ReconcileOptions = {
  store: LogReader;
  provider: Pick<Provider, 'ledger'>;
  signal?: AbortSignal;
  providers?: readonly string[] | undefined;
  waitingMax?: number;
};

const PAGE = 250;
const LEDGER_PAGE = 100;
/** About 25 MB on each side. */
const WAITING_MAX = 50_000;

const unavailable = (error: Error): never => {
  throw new LedgerUnavailable(error.message, { cause: error });
};

const ledgerPages = async function* (
  { provider, signal }: ReconcileOptions,
  from: string | null,
): AsyncGenerator<LedgerPage> {
  let after = from;
  for (;;) {
    signal?.throwIfAborted();
    const page: LedgerPage = await provider.ledger(after, LEDGER_PAGE).catch(unavailable);
    const { entries, next } = page;
    // A ledger that repeats a page would be read for ever.
    if (next !== null && (next === after || entries.length === 0))
      throw new LedgerUnavailable("the provider's ledger does not go on");
    yield page;
    if (next === null) return;
    after = next;
  }
};

const logReader = ({ store, signal }: ReconcileOptions, books: Books) => {
  let after: Position | null = null;
  let end: Position | null = null;
  return async (): Promise<boolean> => {
    signal?.throwIfAborted();
    if (after === end) end = await store.end();
    const page = await store.readAll(after, PAGE, end);
    for (const [index, event] of page.entries()) {
      const pause = pauseAt(index);
      if (pause !== undefined) await pause;
      await books.takeEvent(event);
    }
    after = page.at(-1)?.position ?? after;
    await turn();
    return page.length > 0;
  };
};

type Reading = { end: string | null; stopped: boolean; keepsDeclines: boolean };

const readBoth = async (options: ReconcileOptions, books: Books): Promise<Reading> => {
  const { waitingMax = WAITING_MAX } = options;
  const readOn = logReader(options, books);
  const isFull = () => Math.max(books.logged.size, books.entries.size) > waitingMax;
  let end: string | null = null;
  let keepsDeclines = true;
  for await (const { entries, declines } of ledgerPages(options, null)) {
    for (const entry of entries) books.takeEntry(entry);
    end = entries.at(-1)?.cursor ?? end;
    keepsDeclines &&= declines !== 'not kept';
    while (books.entries.size > books.logged.size && (await readOn())) if (isFull()) break;
    if (isFull()) return { end, stopped: true, keepsDeclines };
  }
  while (await readOn()) if (isFull()) return { end, stopped: true, keepsDeclines };
  return { end, stopped: false, keepsDeclines };
};

/** Outcomes recorded while the log was read may be younger than the ledger was. */
const readTail = async (
  options: ReconcileOptions,
  books: Books,
  from: string | null,
): Promise<void> => {
  for await (const { entries } of ledgerPages(options, from)) {
    for (const entry of entries) {
      // An operation that the log does not know yet began after it was read.
      if (books.logged.has(entry.operationId)) books.takeEntry(entry);
    }
  }
};

const lookUp = async (
  { store, signal }: ReconcileOptions,
  paymentId: string,
  isOfIt: (event: PaymentEvent) => boolean,
): Promise<Logged | 'unreadable' | undefined> => {
  signal?.throwIfAborted();
  try {
    let own: Logged | undefined;
    for (const event of await store.readStream(streamOf(paymentId))) {
      if (!isOfPayment(event) || !isOfIt(event.event)) continue;
      own = loggedAfter(own, event);
    }
    return own;
  } catch (error) {
    if (error instanceof UnreadableStream) return 'unreadable';
    throw error;
  }
};

const judge = async (
  options: ReconcileOptions,
  books: Books,
  entry: LedgerEntry,
): Promise<void> => {
  const waiting = books.logged.get(entry.operationId);
  const paymentId = waiting?.paymentId ?? entry.paymentId;
  const isOfEntry = (event: PaymentEvent) => ledgerIdOf(event) === entry.operationId;
  const now = await lookUp(options, paymentId, isOfEntry);
  if (now === 'unreadable') {
    books.logged.delete(entry.operationId);
    books.differ(differenceOf('UNREADABLE_IN_LOG', waiting, entry));
    return;
  }
  if (now === undefined) return books.differ(differenceOf('MISSING_IN_LOG', undefined, entry));
  const { reason } = waiting ?? {};
  books.compare(reason === undefined ? now : { ...now, reason }, entry);
};

const isObservedElsewhere = async (
  options: ReconcileOptions,
  { isElsewhere }: Books,
  { isObserved, paymentId }: Logged,
): Promise<boolean> => {
  if (!isObserved) return false;
  const create = await lookUp(options, paymentId, ({ type }) => type === 'PaymentCreated');
  return typeof create === 'object' && isElsewhere(create.provider);
};

const judgeWaiting = async (
  options: ReconcileOptions,
  books: Books,
  keepsDeclines: boolean,
): Promise<void> => {
  for (const entry of books.entries.values()) await judge(options, books, entry);
  for (const own of books.logged.values()) {
    const isKept = keepsDeclines || own.outcome !== 'DECLINED';
    if (books.hasEntry(own) && isKept && !(await isObservedElsewhere(options, books, own)))
      books.differ(differenceOf('MISSING_AT_PROVIDER', own, undefined));
    else if (own.reason !== undefined) {
      books.differ(differenceOf('AMOUNT_DIFFERS', own, undefined));
    }
  }
};

/** Throws what the store throws, and LedgerUnavailable. */
export const reconcile = async (options: ReconcileOptions): Promise<Reconciliation> => {
  const books = createBooks(options.store, options.providers);
  const { end, stopped, keepsDeclines } = await readBoth(options, books);
  const notCompared = stopped ? books.logged.size + books.entries.size : 0;
  if (!stopped) {
    await readTail(options, books, end);
    await judgeWaiting(options, books, keepsDeclines);
  }
  const { differences, unreadableEvents, byKind, counts } = books;
  const ok = differences.length === 0 && counts.unreadable === 0 && notCompared === 0;
  return { ok, ...counts, unreadableEvents, notCompared, differences, byKind };
};

export const reconcileScan: LogScan<
  Pick<ReconcileOptions, 'waitingMax' | 'providers'>,
  never,
  Reconciliation
> = (store, args, { signal, call }) => {
  const ledger: Provider['ledger'] = async (after, limit) =>
    (await call('ledger', after, limit)) as LedgerPage;
  return reconcile({ ...args, store, provider: { ledger }, signal });
};

/** In another thread where the store has one; this thread calls the provider. */
export const reconcileBeside = async ({
  store,
  provider,
  signal,
  ...args
}: ReconcileOptions): Promise<Reconciliation> => {
  const { ledger } = provider;
  const order = { module: import.meta.url, job: 'reconcileScan', args, calls: { ledger }, signal };
  try {
    return await resultOf(scanLog<never, Reconciliation>(store, order));
  } catch (error) {
    // An error of another thread keeps its class's name alone; the reason to stop is this thread's.
    signal?.throwIfAborted();
    const { name, message } = Object(error);
    throw name === 'LedgerUnavailable' ? new LedgerUnavailable(message) : error;
  }
};
