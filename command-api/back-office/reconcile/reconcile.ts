/**
 * Compares ledger and log, read in step so that little waits. An intent is durable before its call, so the log
 * is read past the ledger's end, then the ledger past the log's: calls made meanwhile are not missing.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { LedgerEntry, LedgerPage, Provider } from '../../../providers/port.ts';
import { UnreadableStream } from '../../../shared/event-store/errors.ts';
import { isOfPayment } from '../../../shared/event-store/fold-stream.ts';
import type { LogJob, LogReader } from '../../../shared/event-store/port.ts';
import { scanLog } from '../../../shared/event-store/scan-log.ts';
import { type PaymentEvent, streamOf } from '../../../shared/payment/events.ts';
import { onError } from '../../../shared/runtime/error-text.ts';
import { resultOf } from '../../../shared/runtime/jobs.ts';
import { fewAtOnce, slicesOf } from '../../../shared/runtime/scheduling.ts';
import { type Books, createBooks } from './books.ts';
import type { Reconciliation } from './contract.ts';
import { isComplete, type Logged, ledgerIdOf, loggedAfter } from './differences.ts';

export class LedgerUnavailable extends Error {
  override name = 'LedgerUnavailable';
}

export type ReconcileOptions = {
  store: LogReader;
  provider: Pick<Provider, 'ledger'>;
  /** In UTC: what began then or later; left out: everything. */
  since?: string | undefined;
  /** Of one that the ledger may list earlier. False: missing or different. Throws if the provider is silent. */
  agreesOn?: (own: Logged) => Promise<boolean>;
  signal?: AbortSignal;
  providers?: readonly string[] | undefined;
  waitingMax?: number;
};

const PAGE = 250;
/** As many as Stripe's driver reads at once. */
const LEDGER_PAGE = 1_000;
/** About 25 MB on each side. */
const WAITING_MAX = 50_000;

export const providerUnavailable = (error: Error): never => {
  throw new LedgerUnavailable(error.message, { cause: error });
};

const ledgerPages = async function* (
  { provider, signal, since }: ReconcileOptions,
  from: string | null,
): AsyncGenerator<LedgerPage> {
  let after = from;
  for (;;) {
    signal?.throwIfAborted();
    const page: LedgerPage = await provider
      .ledger(after, LEDGER_PAGE, since)
      .catch(providerUnavailable);
    const { entries, next } = page;
    // A ledger that repeats a page would be read for ever.
    if (next !== null && (next === after || entries.length === 0))
      throw new LedgerUnavailable("the provider's ledger does not go on");
    yield page;
    if (next === null) return;
    after = next;
  }
};

type Comparing = ReconcileOptions & Books;

/** Outcomes recorded while the log was read may be younger than the ledger was. */
const readTail = async (comparing: Comparing, from: string | null): Promise<void> => {
  for await (const { entries } of ledgerPages(comparing, from)) {
    for (const entry of entries) {
      // An operation that the log does not know yet began after it was read.
      if (comparing.logged.has(entry.operationId)) comparing.takeEntry(entry);
    }
  }
};

const lookUp = async (
  { store, signal }: ReconcileOptions,
  paymentId: string,
  isOfIt: (event: PaymentEvent) => boolean,
): Promise<Logged | 'unreadable' | undefined> => {
  signal?.throwIfAborted();
  const unreadable = onError(UnreadableStream, () => undefined);
  const events = await store.readStream(streamOf(paymentId)).catch(unreadable);
  if (events === undefined) return 'unreadable';
  let own: Logged | undefined;
  for (const event of events)
    if (isOfPayment(event) && isOfIt(event.event)) own = loggedAfter(own, event);
  return own;
};

const judge = async (comparing: Comparing, entry: LedgerEntry): Promise<void> => {
  const { logged, differ, compare } = comparing;
  const waiting = logged.get(entry.operationId);
  const paymentId = waiting?.paymentId ?? entry.paymentId;
  const isOfEntry = (event: PaymentEvent) => ledgerIdOf(event) === entry.operationId;
  const now = await lookUp(comparing, paymentId, isOfEntry);
  if (now === 'unreadable') {
    logged.delete(entry.operationId);
    differ('UNREADABLE_IN_LOG', waiting, entry);
  } else if (now === undefined) differ('MISSING_IN_LOG', undefined, entry);
  else compare(waiting?.reason === undefined ? now : { ...now, reason: waiting.reason }, entry);
};

/** Whether what has no entry in the ledger that was read is right all the same. */
const isRightWithout = async (comparing: Comparing, own: Logged): Promise<boolean> => {
  const { since, agreesOn } = comparing;
  // What was observed is the provider's own word; the comparison of everything looks for its entry.
  if (since !== undefined)
    return own.isObserved === true || (await agreesOn?.(own).catch(providerUnavailable)) === true;
  if (!own.isObserved) return false;
  const create = await lookUp(comparing, own.paymentId, ({ type }) => type === 'PaymentCreated');
  return typeof create === 'object' && comparing.isElsewhere(create.provider);
};

const judgeLogged = async (
  comparing: Comparing,
  waiting: readonly Logged[],
  keepsDeclines: boolean,
): Promise<void> => {
  const { signal, logged, hasEntry, differ } = comparing;
  const isMissing = async (own: Logged): Promise<boolean> => {
    signal?.throwIfAborted();
    const isKept = keepsDeclines || own.outcome !== 'DECLINED';
    return hasEntry(own) && isKept && !(await isRightWithout(comparing, own));
  };
  const missing = await fewAtOnce(waiting, isMissing);
  for (const [at, own] of waiting.entries()) {
    logged.delete(own.operationId);
    if (missing[at] === true) differ('MISSING_AT_PROVIDER', own);
    else if (own.reason !== undefined) differ('AMOUNT_DIFFERS', own);
  }
};

type Reading = { cursor: string | null; stopped: boolean; keepsDeclines: boolean };

const readBoth = async (comparing: Comparing): Promise<Reading> => {
  const { store, signal, since, waitingMax = WAITING_MAX, logged, entries } = comparing;
  let position = since === undefined ? null : await store.positionBefore(since);
  let logEnd = position;
  let cursor: string | null = null;
  let keepsDeclines = true;
  const isFull = () => Math.max(logged.size, entries.size) > waitingMax;
  /** False at the end of the log. */
  const readLog = async (): Promise<boolean> => {
    signal?.throwIfAborted();
    if (position === logEnd) logEnd = await store.end();
    const page = await store.readAll(position, PAGE, logEnd);
    for await (const slice of slicesOf(page))
      for (const event of slice) await comparing.takeEvent(event);
    position = page.at(-1)?.position ?? position;
    await turn();
    // Those that the ledger lists before the window would wait to the end.
    if (since !== undefined && logged.size > waitingMax)
      await judgeLogged(comparing, [...logged.values()].filter(isComplete), keepsDeclines);
    return page.length > 0;
  };
  for await (const page of ledgerPages(comparing, cursor)) {
    for (const entry of page.entries) comparing.takeEntry(entry);
    cursor = page.entries.at(-1)?.cursor ?? cursor;
    keepsDeclines &&= page.declines !== 'not kept';
    while (entries.size > logged.size && (await readLog())) if (isFull()) break;
    if (isFull()) break;
  }
  while (!isFull() && (await readLog()));
  return { cursor, stopped: isFull(), keepsDeclines };
};

/** Throws what the store throws, and LedgerUnavailable. */
export const reconcile = async (options: ReconcileOptions): Promise<Reconciliation> => {
  const { provider, since: wanted } = options;
  // Undefined where the ledger is read from the start: then everything is compared.
  const since = wanted && (await provider.ledger(null, 1, wanted).catch(providerUnavailable)).since;
  const books = createBooks(options.store, options.providers, since !== undefined);
  const comparing = { ...options, ...books, since };
  const { found, logged, entries } = books;
  const { cursor, stopped, keepsDeclines } = await readBoth(comparing);
  const notCompared = stopped ? logged.size + entries.size : 0;
  if (!stopped) {
    await readTail(comparing, cursor);
    for (const entry of entries.values()) await judge(comparing, entry);
    await judgeLogged(comparing, [...logged.values()], keepsDeclines);
  }
  const ok = found.differences.length === 0 && found.unreadable === 0 && notCompared === 0;
  return { ...found, ok, notCompared, ...(since !== undefined && { since }) };
};

type ReconcileArgs = Pick<ReconcileOptions, 'providers' | 'since'>;

type Agreeing = Required<Pick<ReconcileOptions, 'agreesOn'>>;
export type BesideOptions = ReconcileOptions & Agreeing;
type ProviderCalls = Pick<Provider, 'ledger'> & Agreeing;

export const reconcileLog: LogJob<ReconcileArgs, never, Reconciliation, ProviderCalls> = (
  store,
  args,
  { signal, calls },
) => reconcile({ ...args, store, provider: calls, agreesOn: calls.agreesOn, signal });

/** In another thread where the store has one; this thread calls the provider. */
export const reconcileBeside = async (options: BesideOptions): Promise<Reconciliation> => {
  const { store, provider, signal, agreesOn, providers, since } = options;
  const calls = { ledger: provider.ledger, agreesOn };
  try {
    return await resultOf(scanLog(store, reconcileLog, { providers, since }, { calls, signal }));
  } catch (error) {
    // An error of another thread keeps its class's name alone; the reason to stop is this thread's.
    signal?.throwIfAborted();
    const { name, message } = Object(error);
    throw name === 'LedgerUnavailable' ? new LedgerUnavailable(message) : error;
  }
};
