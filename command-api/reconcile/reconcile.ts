/**
 * The provider's ledger against the log, read in step so that little waits for its counterpart. An
 * intent is durable before its call: so the log is read past the end of the ledger, then the ledger
 * past the end of the log, and an operation that was carried out meanwhile is not missing.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { isOfPayment, type RecordedPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import type { LogReader, Position } from '../../shared/event-store/port.ts';
import { type LogScan, scanLog } from '../../shared/event-store/scan-log.ts';
import { type PaymentEvent, paymentOf, streamOf } from '../../shared/payment/payment-events.ts';
import { resultOf } from '../../shared/runtime/scan.ts';
import { slicesOf } from '../../shared/runtime/scheduling.ts';
import type { LedgerEntry, LedgerPage, Provider } from '../provider/port.ts';
import { type Books, createBooks } from './books.ts';
import type { Reconciliation } from './contract.ts';
import { isOutcome, isWhole, type Logged, ledgerIdOf, loggedAfter } from './differences.ts';

export class LedgerUnavailable extends Error {
  override name = 'LedgerUnavailable';
}

/** A place in the log and one in the ledger; null is the start of either. */
export type Mark = { position: Position | null; cursor: string | null };

/** What lies after the mark, or what began at `since` or later and lies after `cursor` in the ledger. */
export type Part = Mark | { since: string; cursor: string };

export type Compared = {
  result: Reconciliation;
  /** Up to here both agree, as far as that is known. */
  mark?: Mark | undefined;
};

export type ReconcileOptions = {
  store: LogReader;
  /** Left out: everything is compared. */
  part?: Part | undefined;
  /**
   * Of an operation that the read part of the ledger does not list: its entry may be an older one.
   * False where it is missing or differs. Throws where the provider does not say.
   */
  agreesOn?: (own: Logged) => Promise<boolean>;
  provider: Pick<Provider, 'ledger'>;
  signal?: AbortSignal;
  providers?: readonly string[] | undefined;
  waitingMax?: number;
};

const PAGE = 250;
const LEDGER_PAGE = 100;
/** About 25 MB on each side. */
const WAITING_MAX = 50_000;

export const unavailable = (error: Error): never => {
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

/** As the processes' own clocks said: near the moment an operation may be on either side of it. */
const placeOf = async ({ store, signal, part }: ReconcileOptions): Promise<Position | null> => {
  if (part === undefined) return null;
  if ('position' in part) return part.position;
  let after: Position | null = null;
  for (;;) {
    signal?.throwIfAborted();
    const page = await store.readAll(after, PAGE);
    const at = page.findIndex((event) => 'time' in event && event.time >= part.since);
    if (at > 0) return page[at - 1]?.position ?? after;
    if (at === 0 || page.length === 0) return after;
    after = page.at(-1)?.position ?? after;
    await turn();
  }
};

/** Options and books of one comparison. */
type Comparing = ReconcileOptions & Books;

type Reading = {
  end: Mark;
  /** The last place where nothing differed, and no entry waited for its operation. */
  agreed: Mark | undefined;
  stopped: boolean;
  keepsDeclines: boolean;
};

const readBoth = async (comparing: Comparing): Promise<Reading> => {
  const { store, signal, waitingMax = WAITING_MAX, part, logged, entries } = comparing;
  let position = await placeOf(comparing);
  let logEnd = position;
  let cursor = part?.cursor ?? null;
  let agreed: Mark | undefined;
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
    if (comparing.agreeSoFar()) agreed = { position, cursor };
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
  return { end: { position, cursor }, agreed, stopped: isFull(), keepsDeclines };
};

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
  isOfIt: (event: PaymentEvent, revision: number) => boolean,
): Promise<Logged | 'unreadable' | undefined> => {
  signal?.throwIfAborted();
  try {
    let own: Logged | undefined;
    for (const event of await store.readStream(streamOf(paymentId))) {
      if (!isOfPayment(event) || !isOfIt(event.event, event.revision)) continue;
      own = loggedAfter(own, event);
    }
    return own;
  } catch (error) {
    if (error instanceof UnreadableStream) return 'unreadable';
    throw error;
  }
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

const isObservedElsewhere = async (
  comparing: Comparing,
  { isObserved, paymentId }: Logged,
): Promise<boolean> => {
  if (!isObserved) return false;
  const create = await lookUp(comparing, paymentId, ({ type }) => type === 'PaymentCreated');
  return typeof create === 'object' && comparing.isElsewhere(create.provider);
};

const AT_ONCE = 8;

/** Whether what has no entry in the ledger that was read is right all the same. */
const isListedEarlier = async (comparing: Comparing, own: Logged): Promise<boolean> => {
  const { part, agreesOn } = comparing;
  if (part === undefined) return isObservedElsewhere(comparing, own);
  // What was observed is the provider's own word; the comparison of everything looks for its entry.
  return own.isObserved === true || (await agreesOn?.(own).catch(unavailable)) === true;
};

const judgeWaiting = async (comparing: Comparing, keepsDeclines: boolean): Promise<void> => {
  const { signal, entries, logged, hasEntry, differ } = comparing;
  for (const entry of entries.values()) await judge(comparing, entry);
  const isMissing = async (own: Logged): Promise<boolean> => {
    signal?.throwIfAborted();
    const isKept = keepsDeclines || own.outcome !== 'DECLINED';
    return hasEntry(own) && isKept && !(await isListedEarlier(comparing, own));
  };
  const waiting = [...logged.values()];
  for (let next = 0; next < waiting.length; next += AT_ONCE) {
    const some = waiting.slice(next, next + AT_ONCE);
    const missing = await Promise.all(some.map(isMissing));
    for (const [at, own] of some.entries())
      if (missing[at] === true) differ('MISSING_AT_PROVIDER', own);
      else if (own.reason !== undefined) differ('AMOUNT_DIFFERS', own);
  }
};

/** Before an outcome; undefined where it had one already, so that another one is one too many. */
const begunBefore =
  (options: ReconcileOptions) =>
  async ({ event, revision, stream }: RecordedPaymentEvent): Promise<Logged | undefined> => {
    if (!isOutcome(event)) return undefined;
    const isBefore = (other: PaymentEvent, at: number) =>
      at < revision && ledgerIdOf(other) === ledgerIdOf(event);
    const own = await lookUp(options, paymentOf(stream) ?? '', isBefore);
    return own === undefined || own === 'unreadable' || isWhole(own) ? undefined : own;
  };

/** Throws what the store throws, and LedgerUnavailable. */
export const reconcile = async (options: ReconcileOptions): Promise<Compared> => {
  const { store, providers, part } = options;
  const before = part === undefined ? undefined : begunBefore(options);
  const comparing = { ...options, ...createBooks(store, providers, before) };
  const { found, logged, entries } = comparing;
  const { end, agreed, stopped, keepsDeclines } = await readBoth(comparing);
  const notCompared = stopped ? logged.size + entries.size : 0;
  if (!stopped) {
    await readTail(comparing, end.cursor);
    await judgeWaiting(comparing, keepsDeclines);
  }
  const { byKind } = found;
  const ok = found.differences.length === 0 && found.unreadable === 0 && notCompared === 0;
  // What the log has and the ledger lacks may lie before any place.
  const isKnown = byKind.MISSING_AT_PROVIDER + byKind.AMOUNT_DIFFERS === 0 && notCompared === 0;
  const result = { ...found, ok, notCompared };
  return { result, mark: ok ? end : isKnown ? agreed : undefined };
};

type ScanArgs = Pick<ReconcileOptions, 'providers' | 'part'>;

export const reconcileScan: LogScan<ScanArgs, never, Compared> = (
  store,
  args,
  { signal, call },
) => {
  const ledger: Provider['ledger'] = async (after, limit) =>
    (await call('ledger', after, limit)) as LedgerPage;
  const agreesOn = async (own: Logged) => (await call('agreesOn', own)) === true;
  return reconcile({ ...args, store, provider: { ledger }, agreesOn, signal });
};

/** In another thread where the store has one; this thread calls the provider. */
export const reconcileBeside = async ({
  store,
  provider,
  signal,
  agreesOn = async () => false,
  providers,
  part,
}: ReconcileOptions): Promise<Compared> => {
  const args: ScanArgs = { providers, part };
  const calls = { ledger: provider.ledger, agreesOn };
  const order = { module: import.meta.url, job: 'reconcileScan', args, calls, signal };
  try {
    return await resultOf(scanLog<never, Compared>(store, order));
  } catch (error) {
    // An error of another thread keeps its class's name alone; the reason to stop is this thread's.
    signal?.throwIfAborted();
    const { name, message } = Object(error);
    throw name === 'LedgerUnavailable' ? new LedgerUnavailable(message) : error;
  }
};
