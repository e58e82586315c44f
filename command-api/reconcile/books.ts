/**
 * Both sides of a reconciliation as far as they have been read. An operation that was compared is
 * forgotten, and one that was never carried out is not kept: so memory holds what waits for a
 * counterpart, of which there is a bounded number (A5).
 */
import { isReadable } from '../../shared/event-store/codec.ts';
import { isOfPayment, type RecordedPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, LogEvent } from '../../shared/event-store/port.ts';
import { sumsCheck } from '../../shared/event-store/verify-sums.ts';
import { paymentOf } from '../../shared/payment/payment-events.ts';
import { isOtherProvider } from '../../shared/payment/payment-state.ts';
import type { LedgerEntry } from '../provider/port.ts';
import {
  DIFFERENCE_KINDS,
  type Difference,
  differenceKind,
  differenceOf,
  isAtProvider,
  isWhole,
  type Logged,
  ledgerIdOf,
  loggedAfter,
  mayHaveBounced,
} from './differences.ts';

/** An event that cannot be read; its payment's operations cannot be compared. */
export type UnreadableFinding = {
  paymentId: string;
  position: string;
  revision: number;
  reason: string;
};

const LISTED_MAX = 1000;

const createFindings = () => {
  const differences: Difference[] = [];
  const unreadableEvents: UnreadableFinding[] = [];
  const counts = { operations: 0, atOtherProviders: 0, entries: 0, unreadable: 0, more: 0 };
  const byKind = Object.fromEntries(DIFFERENCE_KINDS.map((kind) => [kind, 0])) as Record<
    Difference['kind'],
    number
  >;
  return {
    differences,
    unreadableEvents,
    counts,
    byKind,
    differ: (difference: Difference): void => {
      byKind[difference.kind] += 1;
      if (differences.length < LISTED_MAX) differences.push(difference);
      else counts.more += 1;
    },
    noteUnreadable: ({ position, revision }: LogEvent, paymentId: string, reason: string): void => {
      counts.unreadable += 1;
      if (unreadableEvents.length >= LISTED_MAX) return;
      unreadableEvents.push({ paymentId, position, revision, reason });
    },
  };
};

/**
 * Empty books; `stored` is the store's. `providers` are the names of the provider whose ledger it is: what
 * another one was sent has no entry there. Undefined: everything was sent to this one.
 */
export const createBooks = (
  { stored }: Pick<EventStore, 'stored'>,
  providers: readonly string[] | undefined,
) => {
  /** Of the log: operations without an outcome, or with one that the ledger has not shown yet. */
  const logged = new Map<string, Logged>();
  /** Of the ledger: entries that the log has not shown yet. */
  const entries = new Map<string, LedgerEntry>();
  const findings = createFindings();
  const sumsOf = sumsCheck(stored);

  /** True where another provider was sent it (ADR-0247). */
  const isElsewhere = (provider: string | undefined): boolean =>
    providers !== undefined && isOtherProvider(provider, providers);

  /** True where this provider's ledger has to have an entry. */
  const hasEntry = (own: Logged): boolean => isAtProvider(own) && !isElsewhere(own.provider);

  const compare = (own: Logged, entry: LedgerEntry): void => {
    logged.delete(own.operationId);
    entries.delete(own.operationId);
    const kind = differenceKind(own, entry);
    if (kind !== undefined) findings.differ(differenceOf(kind, own, entry));
  };

  /** As compare; what an event that comes later in the log may explain waits for its whole stream. */
  const compareSoFar = (own: Logged, entry: LedgerEntry): void => {
    if (mayHaveBounced(own, entry)) {
      logged.delete(own.operationId);
      entries.set(entry.operationId, entry);
    } else compare(own, entry);
  };

  const takeWhole = (own: Logged): void => {
    const entry = entries.get(own.operationId);
    if (entry !== undefined) compareSoFar(own, entry);
    else if (!hasEntry(own)) {
      // An entry that still comes finds the operation in its stream.
      logged.delete(own.operationId);
      if (own.reason !== undefined) findings.differ(differenceOf('AMOUNT_DIFFERS', own, undefined));
    }
  };

  const takePaymentEvent = (event: RecordedPaymentEvent, reason: string | undefined): void => {
    const operationId = ledgerIdOf(event.event);
    const known = logged.get(operationId);
    const own = loggedAfter(known, event);
    if (own === undefined) return;
    if (known === undefined) findings.counts.operations += 1;
    if (known === undefined && isElsewhere(own.provider)) findings.counts.atOtherProviders += 1;
    if (reason !== undefined) own.reason ??= reason;
    logged.set(operationId, own);
    if (isWhole(own)) takeWhole(own);
  };

  const takeEvent = async (event: LogEvent): Promise<void> => {
    const paymentId = paymentOf(event.stream);
    if (paymentId === undefined) return;
    const reason = await sumsOf(event);
    if (!isReadable(event)) findings.noteUnreadable(event, paymentId, event.unreadable);
    else if (isOfPayment(event)) takePaymentEvent(event, reason);
    else findings.noteUnreadable(event, paymentId, 'is not an event of a payment');
  };

  const takeEntry = (entry: LedgerEntry): void => {
    findings.counts.entries += 1;
    const own = logged.get(entry.operationId);
    if (own !== undefined && isWhole(own)) compareSoFar(own, entry);
    else entries.set(entry.operationId, entry);
  };

  return { ...findings, logged, entries, isElsewhere, hasEntry, compare, takeEvent, takeEntry };
};

/** See `createBooks`. */
export type Books = ReturnType<typeof createBooks>;
