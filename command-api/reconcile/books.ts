/** Memory holds only what waits for a counterpart, which is bounded (A5). */
import { isReadable } from '../../shared/event-store/codec.ts';
import { isOfPayment, type RecordedPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, LogEvent } from '../../shared/event-store/port.ts';
import { sumsCheck } from '../../shared/event-store/verify-log.ts';
import { paymentOf } from '../../shared/payment/payment-events.ts';
import { isOtherProvider } from '../../shared/payment/state.ts';
import type { LedgerEntry } from '../provider/port.ts';
import type { Reconciliation } from './contract.ts';
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

export const LISTED_MAX = 1000;

const createFindings = () => {
  const differences: Difference[] = [];
  const unreadableEvents: Reconciliation['unreadableEvents'] = [];
  const counts = { operations: 0, atOtherProviders: 0, entries: 0, unreadable: 0, more: 0 };
  const none = DIFFERENCE_KINDS.map((kind) => [kind, 0]);
  const byKind: Reconciliation['byKind'] = Object.fromEntries(none);
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
 * `providers` undefined: everything was sent to the provider whose ledger it is. `begunBefore` reads
 * what an operation was before an event, where only a part of the log is compared.
 */
export const createBooks = (
  { stored }: Pick<EventStore, 'stored'>,
  providers: readonly string[] | undefined,
  begunBefore?: (event: RecordedPaymentEvent) => Promise<Logged | undefined>,
) => {
  const logged = new Map<string, Logged>();
  const entries = new Map<string, LedgerEntry>();
  const findings = createFindings();
  const sumsOf = sumsCheck(stored);

  const isElsewhere = (provider: string | undefined): boolean =>
    providers !== undefined && isOtherProvider(provider, providers);

  const hasEntry = (own: Logged): boolean => isAtProvider(own) && !isElsewhere(own.provider);

  const compare = (own: Logged, entry: LedgerEntry): void => {
    logged.delete(own.operationId);
    entries.delete(own.operationId);
    const kind = differenceKind(own, entry);
    if (kind !== undefined) findings.differ(differenceOf(kind, own, entry));
  };

  /** A refund that may have bounced waits for its whole stream. */
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

  const takePaymentEvent = async (
    event: RecordedPaymentEvent,
    reason: string | undefined,
  ): Promise<void> => {
    const operationId = ledgerIdOf(event.event);
    const known = logged.get(operationId) ?? (await begunBefore?.(event));
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
    else if (isOfPayment(event)) await takePaymentEvent(event, reason);
    else findings.noteUnreadable(event, paymentId, 'is not an event of a payment');
  };

  const takeEntry = (entry: LedgerEntry): void => {
    findings.counts.entries += 1;
    const own = logged.get(entry.operationId);
    if (own !== undefined && isWhole(own)) compareSoFar(own, entry);
    else entries.set(entry.operationId, entry);
  };

  /** All entries so far have their operations in the log so far, and nothing differs. */
  const agreeSoFar = (): boolean => {
    const { differences, counts } = findings;
    return entries.size + differences.length + counts.unreadable === 0;
  };

  return {
    ...findings,
    agreeSoFar,
    logged,
    entries,
    isElsewhere,
    hasEntry,
    compare,
    takeEvent,
    takeEntry,
  };
};

export type Books = ReturnType<typeof createBooks>;
