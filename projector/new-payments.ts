/**
 * New payments that wait for their second event, so that their first document is the one with the
 * provider's outcome. Until then such a payment counts as behind: GET folds its stream.
 */
import type { LogEvent, Position } from '../shared/event-store/port.ts';
import { paymentOf } from '../shared/payment/payment-events.ts';
import type { PaymentReadModel } from '../shared/payment/payment-response.ts';
import { checkpointHashOf } from './log-check.ts';
import type { Folded } from './payment-folds.ts';

/** A place up to which the log is in the read models; without a hash where it is the stored one. */
export type Place = { position: Position | null; hash?: string };

/** The place of an event. */
export const placeOf = (event: LogEvent): Place => {
  const hash = checkpointHashOf(event);
  return hash === null ? { position: event.position } : { position: event.position, hash };
};

/** Some 5 MB, and 10 ms to write. Any beyond are written at once. */
const HELD_MAX = 1_000;

/** What an entry is left with: a table that the map has grown out of may hold it for long (ADR-0112). */
const NOTHING: Folded = { readModel: undefined };

type Held = { folded: Folded; before: Place; sinceMs: number };

/** What one projection holds. */
export const createNewPayments = () => {
  /** In the order of the log, so that the first one has the earliest place. */
  const held = new Map<string, Held>();

  const letGo = (paymentId: string): void => {
    const entry = held.get(paymentId);
    if (entry !== undefined) entry.folded = NOTHING;
    held.delete(paymentId);
  };

  return {
    /** The read model of a payment that is held. */
    readModel: (paymentId: string): PaymentReadModel | undefined =>
      held.get(paymentId)?.folded.readModel,
    has: (paymentId: string): boolean => held.has(paymentId),
    isEmpty: (): boolean => held.size === 0,
    /**
     * Takes out of the payments of a batch those that have their first event alone, and lets go of
     * those that have more. `end` is the place before the batch.
     */
    take(payments: Map<string, Folded>, events: readonly LogEvent[], end: Place): void {
      for (const [index, event] of events.entries()) {
        const paymentId = paymentOf(event.stream);
        const folded = paymentId === undefined ? undefined : payments.get(paymentId);
        if (paymentId !== undefined && folded !== undefined) {
          const isNew = folded.readModel?.revision === 0 && folded.poison === undefined;
          if (!isNew) letGo(paymentId);
          else if (held.has(paymentId)) payments.delete(paymentId);
          else if (held.size < HELD_MAX) {
            const previous = events[index - 1];
            const before = previous === undefined ? end : placeOf(previous);
            held.set(paymentId, { folded, before, sinceMs: performance.now() });
            payments.delete(paymentId);
          }
        }
      }
    },
    /** Those that have been held for `ms`; they stay held until `release`. */
    heldFor: (ms: number): Map<string, Folded> => {
      const untilMs = performance.now() - ms;
      const due = [...held].filter(([, { sinceMs }]) => sinceMs <= untilMs);
      return new Map(due.map(([paymentId, { folded }]) => [paymentId, folded]));
    },
    release(paymentIds: Iterable<string>): void {
      for (const paymentId of paymentIds) letGo(paymentId);
    },
    /** The place before the first one that is held and not among `released`; undefined without one. */
    before: (released?: ReadonlyMap<string, unknown>): Place | undefined => {
      for (const [paymentId, { before }] of held) if (!released?.has(paymentId)) return before;
      return undefined;
    },
    clear: (): void => held.clear(),
  };
};
