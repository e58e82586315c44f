/** Memory holds only what waits for a counterpart, which is bounded (A5). */
import { sumsCheck } from '../../../audit/walk-log.ts';
import type { LedgerEntry } from '../../../providers/port.ts';
import { isReadable } from '../../../shared/event-store/codec.ts';
import { isOfPayment, type RecordedPaymentEvent } from '../../../shared/event-store/fold-stream.ts';
import type { EventStore, LogEvent } from '../../../shared/event-store/port.ts';
import { paymentOf } from '../../../shared/payment/events.ts';
import { isOtherProvider } from '../../../shared/payment/state.ts';
import type { Reconciliation } from './contract.ts';
import {
  DIFFERENCE_KINDS,
  type Difference,
  differenceKind,
  differenceOf,
  isAtProvider,
  isComplete,
  isOutcome,
  type Logged,
  ledgerIdOf,
  loggedAfter,
  mayHaveBounced,
} from './differences.ts';

export const LISTED_MAX = 1000;

const nothingFound = (): Reconciliation => ({
  ok: true,
  operations: 0,
  atOtherProviders: 0,
  entries: 0,
  unreadable: 0,
  more: 0,
  unreadableEvents: [],
  notCompared: 0,
  differences: [],
  byKind: Object.fromEntries(DIFFERENCE_KINDS.map((kind) => [kind, 0])) as Reconciliation['byKind'],
});

/** No `providers`: all went to this one. `isWindow`: what began earlier is compared only if it is listed. */
export const createBooks = (
  { stored }: Pick<EventStore, 'stored'>,
  providers: readonly string[] | undefined,
  isWindow: boolean,
) => {
  const logged = new Map<string, Logged>();
  const entries = new Map<string, LedgerEntry>();
  const found = nothingFound();
  const sumsOf = sumsCheck(stored);

  const differ = (kind: Difference['kind'], own?: Logged, entry?: LedgerEntry): void => {
    found.byKind[kind] += 1;
    if (found.differences.length < LISTED_MAX)
      found.differences.push(differenceOf(kind, own, entry));
    else found.more += 1;
  };

  const isElsewhere = (provider: string | undefined): boolean =>
    providers !== undefined && isOtherProvider(provider, providers);

  const hasEntry = (own: Logged): boolean => isAtProvider(own) && !isElsewhere(own.provider);

  const compare = (own: Logged, entry: LedgerEntry): void => {
    logged.delete(own.operationId);
    entries.delete(own.operationId);
    const kind = differenceKind(own, entry);
    if (kind !== undefined) differ(kind, own, entry);
  };

  /** A refund that may have bounced waits for its whole stream. */
  const compareSoFar = (own: Logged, entry: LedgerEntry): void => {
    if (mayHaveBounced(own, entry)) {
      logged.delete(own.operationId);
      entries.set(entry.operationId, entry);
    } else compare(own, entry);
  };

  const takePaymentEvent = (event: RecordedPaymentEvent, reason: string | undefined): void => {
    const operationId = ledgerIdOf(event.event);
    const known = logged.get(operationId);
    // The sums know an outcome that no intent asked for from one whose intent lies before the window.
    if (isWindow && known === undefined && reason === undefined && isOutcome(event.event)) return;
    const own = loggedAfter(known, event);
    if (own === undefined) return;
    if (known === undefined) found.operations += 1;
    if (known === undefined && isElsewhere(own.provider)) found.atOtherProviders += 1;
    if (reason !== undefined) own.reason = reason;
    logged.set(operationId, own);
    if (!isComplete(own)) return;
    const entry = entries.get(operationId);
    if (entry !== undefined) compareSoFar(own, entry);
    else if (!hasEntry(own)) {
      // An entry that still comes finds the operation in its stream.
      logged.delete(operationId);
      if (own.reason !== undefined) differ('AMOUNT_DIFFERS', own);
    }
  };

  const takeEvent = async (event: LogEvent): Promise<void> => {
    const paymentId = paymentOf(event.stream);
    if (paymentId === undefined) return;
    const sums = await sumsOf(event);
    if (isReadable(event) && isOfPayment(event)) return takePaymentEvent(event, sums);
    found.unreadable += 1;
    if (found.unreadableEvents.length >= LISTED_MAX) return;
    const { position, revision } = event;
    const reason = isReadable(event) ? 'is not an event of a payment' : event.unreadable;
    found.unreadableEvents.push({ paymentId, position, revision, reason });
  };

  const takeEntry = (entry: LedgerEntry): void => {
    found.entries += 1;
    const own = logged.get(entry.operationId);
    if (own !== undefined && isComplete(own)) compareSoFar(own, entry);
    else entries.set(entry.operationId, entry);
  };

  return { found, logged, entries, isElsewhere, hasEntry, differ, compare, takeEvent, takeEntry };
};

export type Books = ReturnType<typeof createBooks>;
