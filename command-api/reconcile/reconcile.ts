/**
 * The provider's ledger against the log, operation by operation. Both are read once, page by page;
 * only what has no counterpart yet is kept, so that memory does not grow with the log.
 *
 * An intent is durable before the provider is called. So the log is read on past the end of the
 * ledger, and the ledger a last time past the end of the log: an operation that was carried out
 * meanwhile is not taken for a missing one.
 */
import { isOfPayment, type RecordedPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import type {
  EventStore,
  Position,
  RecordedEvent,
  UnreadableEvent,
} from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import type { LedgerEntry, Provider, ProviderOperationKind } from '../provider/port.ts';

/** What the log says about an operation; one without an outcome is unresolved. */
type Logged = {
  operationId: string;
  paymentId: string;
  kind: ProviderOperationKind;
  amount: number;
  currency: string;
  revision: number;
  outcome?: 'APPROVED' | 'DECLINED' | 'NOT_SENT' | 'FENCED';
};

export const DIFFERENCE_KINDS = [
  /** The log has an outcome that the provider does not know of. */
  'MISSING_AT_PROVIDER',
  /** The provider carried out what the log never asked for. */
  'MISSING_IN_LOG',
  /** The provider knows the outcome, the log does not (yet): recovery or `resolve` will record it. */
  'UNRESOLVED_IN_LOG',
  /** The log says that it was never carried out; the provider did. */
  'NEVER_SENT_IN_LOG',
  'OUTCOME_DIFFERS',
  'AMOUNT_DIFFERS',
  /** The operation has another kind or belongs to another payment there. */
  'OPERATION_DIFFERS',
] as const;

export type Difference = {
  kind: (typeof DIFFERENCE_KINDS)[number];
  operationId: string;
  paymentId: string;
  log?: Omit<Logged, 'operationId'>;
  provider?: Omit<LedgerEntry, 'operationId' | 'providerReference'>;
};

export type Reconciliation = {
  /** True when there is no difference. */
  ok: boolean;
  /** Operations in the log, entries in the ledger. */
  operations: number;
  entries: number;
  /** Events that could not be read, and so were compared with nothing. */
  unreadable: number;
  differences: Difference[];
  /** How many more there are than are listed. */
  more: number;
};

const PAGE = 500;
const LEDGER_PAGE = 100;
const LISTED_MAX = 1000;

const INTENTS: Record<string, ProviderOperationKind> = {
  PaymentCaptureRequested: 'CAPTURE',
  PaymentVoidRequested: 'VOID',
  PaymentRefundRequested: 'REFUND',
};
const APPROVALS = ['PaymentAuthorized', 'PaymentCaptured', 'PaymentVoided', 'PaymentRefunded'];

const intentOf = ({ event, revision, stream }: RecordedPaymentEvent): Logged | undefined => {
  const { type, data } = event;
  const created = type === 'PaymentCreated' ? (data.captureNow ? 'SALE' : 'AUTHORIZE') : undefined;
  const kind = created ?? INTENTS[type];
  if (kind === undefined) return undefined;
  const { operationId, amount, currency } = data;
  const paymentId = stream.slice(streamOf('').length);
  return { operationId, paymentId, kind, amount, currency, revision };
};

const outcomeOf = ({ event }: RecordedPaymentEvent): Logged['outcome'] => {
  if ('outcome' in event.data) return event.data.outcome;
  return APPROVALS.includes(event.type) ? 'APPROVED' : undefined;
};

const isMoney = (outcome: Logged['outcome']): boolean =>
  outcome === 'APPROVED' || outcome === 'DECLINED';

/** What is wrong between the two, if anything. */
const kindOf = (logged: Logged, entry: LedgerEntry): Difference['kind'] | undefined => {
  if (logged.kind !== entry.kind || logged.paymentId !== entry.paymentId) {
    return 'OPERATION_DIFFERS';
  }
  if (logged.outcome === undefined) return 'UNRESOLVED_IN_LOG';
  if (!isMoney(logged.outcome)) return 'NEVER_SENT_IN_LOG';
  if (logged.outcome !== entry.outcome) return 'OUTCOME_DIFFERS';
  const same = logged.amount === entry.amount && logged.currency === entry.currency;
  return same ? undefined : 'AMOUNT_DIFFERS';
};

const differenceOf = (
  kind: Difference['kind'],
  logged: Logged | undefined,
  entry: LedgerEntry | undefined,
): Difference => {
  const { operationId: _, ...log } = logged ?? { operationId: '' };
  const {
    operationId: __,
    providerReference: ___,
    ...provider
  } = entry ?? {
    operationId: '',
    providerReference: '',
  };
  return {
    kind,
    operationId: logged?.operationId ?? entry?.operationId ?? '',
    paymentId: logged?.paymentId ?? entry?.paymentId ?? '',
    ...(logged === undefined ? {} : { log: log as Omit<Logged, 'operationId'> }),
    ...(entry === undefined ? {} : { provider: provider as NonNullable<Difference['provider']> }),
  };
};

/** Both sides as far as they have been read, each without what has found its counterpart. */
const createBooks = () => {
  const logged = new Map<string, Logged>();
  const entries = new Map<string, LedgerEntry>();
  const differences: Difference[] = [];
  const counts = { operations: 0, entries: 0, unreadable: 0, more: 0 };

  const differ = (difference: Difference): void => {
    if (differences.length < LISTED_MAX) differences.push(difference);
    else counts.more += 1;
  };

  /** Compares what both sides know; an unresolved operation waits for its outcome. */
  const resolve = (operationId: string): void => {
    const own = logged.get(operationId);
    const entry = entries.get(operationId);
    if (own?.outcome === undefined || entry === undefined) return;
    logged.delete(operationId);
    entries.delete(operationId);
    const kind = kindOf(own, entry);
    if (kind !== undefined) differ(differenceOf(kind, own, entry));
  };

  const takeEvent = (event: RecordedEvent | UnreadableEvent): void => {
    if (!event.stream.startsWith(streamOf(''))) return;
    if ('unreadable' in event || !isOfPayment(event)) {
      counts.unreadable += 1;
      return;
    }
    const intent = intentOf(event);
    const { operationId } = event.event.data;
    if (intent !== undefined) {
      counts.operations += 1;
      logged.set(operationId, intent);
      return;
    }
    const own = logged.get(operationId);
    // A sale ends with two events; the first holds the outcome already.
    if (own === undefined || own.outcome !== undefined) return;
    const outcome = outcomeOf(event);
    if (outcome !== undefined) logged.set(operationId, { ...own, outcome });
    resolve(operationId);
  };

  const takeEntry = (entry: LedgerEntry): void => {
    counts.entries += 1;
    entries.set(entry.operationId, entry);
    resolve(entry.operationId);
  };

  return { logged, entries, differences, counts, differ, takeEvent, takeEntry };
};

type Books = ReturnType<typeof createBooks>;
type Sides = {
  store: Pick<EventStore, 'readAll' | 'readStream'>;
  provider: Pick<Provider, 'ledger'>;
};

/** Throws where the provider's next page is not a later one: its ledger would be read for ever. */
const onward = (requested: number, next: number | null): number | null => {
  if (next !== null && next <= requested) throw new Error("the provider's ledger does not go on");
  return next;
};

/** Reads ledger and log side by side to the end of the ledger, then the log to its own. */
const readBoth = async ({ store, provider }: Sides, books: Books): Promise<number> => {
  let after: Position | null = null;
  let sequence = 0;
  const readEvents = async (): Promise<boolean> => {
    const page: (RecordedEvent | UnreadableEvent)[] = await store.readAll(after, PAGE);
    for (const event of page) books.takeEvent(event);
    after = page.at(-1)?.position ?? after;
    return page.length === PAGE;
  };
  let next: number | null = 0;
  while (next !== null) {
    const page: Awaited<ReturnType<Provider['ledger']>> = await provider.ledger(next, LEDGER_PAGE);
    for (const entry of page.entries) books.takeEntry(entry);
    sequence = page.entries.at(-1)?.sequence ?? sequence;
    next = onward(next, page.next);
    await readEvents();
  }
  while (await readEvents());
  return sequence;
};

/** Outcomes that were recorded while the log was being read may be younger than the ledger was. */
const readTail = async ({ provider }: Sides, books: Books, from: number): Promise<void> => {
  let next: number | null = from;
  while (next !== null) {
    const page: Awaited<ReturnType<Provider['ledger']>> = await provider.ledger(next, LEDGER_PAGE);
    for (const entry of page.entries) {
      // What the log does not know of yet began after it was read.
      if (books.logged.has(entry.operationId)) books.takeEntry(entry);
    }
    next = onward(next, page.next);
  }
};

/** Operations that the log left unresolved: their outcome may stand in the stream by now. */
const askStreams = async ({ store }: Sides, books: Books): Promise<void> => {
  for (const entry of books.entries.values()) {
    const own = books.logged.get(entry.operationId);
    if (own === undefined) continue;
    for (const event of await store.readStream(streamOf(own.paymentId))) {
      if (!isOfPayment(event) || event.event.data.operationId !== own.operationId) continue;
      if (event.revision > own.revision) books.takeEvent(event);
    }
  }
};

/** Compares everything. Throws what the store throws, and Error when the ledger is out of reach. */
export const reconcile = async (sides: Sides): Promise<Reconciliation> => {
  const books = createBooks();
  await readTail(sides, books, await readBoth(sides, books));
  await askStreams(sides, books);
  for (const entry of books.entries.values()) {
    const own = books.logged.get(entry.operationId);
    const kind = own === undefined ? 'MISSING_IN_LOG' : (kindOf(own, entry) ?? 'UNRESOLVED_IN_LOG');
    books.differ(differenceOf(kind, own, entry));
    books.logged.delete(entry.operationId);
  }
  for (const own of books.logged.values()) {
    if (isMoney(own.outcome)) books.differ(differenceOf('MISSING_AT_PROVIDER', own, undefined));
  }
  const { differences, counts } = books;
  return { ok: differences.length === 0, ...counts, differences };
};
