/** Events of a payment, as they are stored, and the one append that stores them. */
import { expectedAfter, timeAfter } from '../shared/event-store/append-after.ts';
import { AppendOutcomeUnknown, StoreUnavailable } from '../shared/event-store/errors.ts';
import { asPaymentEvent, type RecordedPaymentEvent } from '../shared/event-store/fold-stream.ts';
import type { EventContext, EventStore, NewEvent } from '../shared/event-store/port.ts';
import { type PaymentEvent, streamOf } from '../shared/payment/payment-events.ts';
import { jittered, pause, WIDE_JITTER } from '../shared/runtime/back-off.ts';
import { newEventId } from '../shared/runtime/ids.ts';
import type { LoadedPayment } from './loaded-payment.ts';
import type { Budget } from './request-budget.ts';

/** A pause between attempts of one append, so that a store in trouble is not flooded. */
const PAUSE_MS = 50;

/** The decided events as they are stored; a payment's time never goes back. */
export const newEvents = (
  payment: LoadedPayment | undefined,
  decided: readonly PaymentEvent[],
  context: EventContext,
  nowMs: number,
): NewEvent[] => {
  const time = timeAfter(payment?.events.at(-1), nowMs);
  return decided.map((event) => ({ id: newEventId(), time, event, context }));
};

/**
 * The very same append again while its outcome is unknown: same ids, same expected revision. Throws
 * AppendOutcomeUnknown where that outlasts the budget, and what else the store throws.
 */
export const append = async (
  store: EventStore,
  paymentId: string,
  payment: LoadedPayment | undefined,
  events: NewEvent[],
  budget: Budget,
): Promise<RecordedPaymentEvent[]> => {
  const expected = expectedAfter(payment?.events.at(-1));
  let unknown: AppendOutcomeUnknown | undefined;
  for (;;) {
    try {
      return (await store.append(streamOf(paymentId), expected, events)).map(asPaymentEvent);
    } catch (error) {
      if (error instanceof AppendOutcomeUnknown) unknown = error;
      // That the store rejects this attempt says nothing of the attempt before it.
      else if (unknown === undefined || !(error instanceof StoreUnavailable)) throw error;
      if (budget.leftMs() === 0) throw unknown;
      await pause(jittered(PAUSE_MS, WIDE_JITTER));
    }
  }
};
