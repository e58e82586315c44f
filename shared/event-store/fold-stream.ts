/** From a stream, which can hold any event, to the events of one payment. */
import { isPaymentEvent } from '../payment/events.ts';
import type { PaymentEvent } from '../payment/payment-events.ts';
import { UnreadableStream } from './errors.ts';
import type { RecordedEvent } from './port.ts';

/** A stored event of a payment. */
export type RecordedPaymentEvent = RecordedEvent<PaymentEvent>;

/** True for an event of a payment, false for one of another family. */
export const isOfPayment = (recorded: RecordedEvent): recorded is RecordedPaymentEvent =>
  isPaymentEvent(recorded.event);

/** The event, typed as a payment's. Throws Error for an event of another family. */
export const asPaymentEvent = (recorded: RecordedEvent): RecordedPaymentEvent => {
  if (isOfPayment(recorded)) return recorded;
  throw new Error(`${recorded.event.type} is not an event of a payment`);
};

/**
 * The result of `fold` over a payment's stream. Throws UnreadableStream where `fold` throws: in a
 * damaged stream each event can be readable, and yet one cannot follow another.
 */
export const foldStream = <T>(
  events: readonly RecordedEvent[],
  fold: (events: readonly RecordedPaymentEvent[]) => T,
): T => {
  try {
    return fold(events.map(asPaymentEvent));
  } catch (error) {
    throw new UnreadableStream(`${events[0]?.stream}: ${(error as Error).message}`);
  }
};
