/** From a stream, which can hold any event, to the events of one payment. */
import { isPaymentEvent } from '../payment/events.ts';
import type { PaymentEvent } from '../payment/payment-events.ts';
import { UnreadableStream } from './errors.ts';
import type { RecordedEvent } from './port.ts';

export type RecordedPaymentEvent = RecordedEvent<PaymentEvent>;

/** Tells a payment's event from one of another family. */
export const isOfPayment = (recorded: RecordedEvent): recorded is RecordedPaymentEvent =>
  isPaymentEvent(recorded.event);

/** The event as a payment's. Throws where another family's stands in the stream of a payment. */
export const asPaymentEvent = (recorded: RecordedEvent): RecordedPaymentEvent => {
  if (isOfPayment(recorded)) return recorded;
  throw new Error(`${recorded.event.type} is not an event of a payment`);
};

/**
 * What `fold` makes of a payment's stream, which may be damaged: its events can read well and yet
 * not follow one another. Throws UnreadableStream where `fold` throws.
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
