/** From a stream, which can hold any event, to the events of one payment. */
import { isPaymentEvent } from '../payment/events.ts';
import type { PaymentEvent } from '../payment/payment-events.ts';
import { pauseAt } from '../runtime/slices.ts';
import { UnreadableStream } from './errors.ts';
import type { RecordedEvent } from './port.ts';

export type RecordedPaymentEvent = RecordedEvent<PaymentEvent>;

export const isOfPayment = (recorded: RecordedEvent): recorded is RecordedPaymentEvent =>
  isPaymentEvent(recorded.event);

/** The event, typed as a payment's. Throws Error for an event of another family. */
export const asPaymentEvent = (recorded: RecordedEvent): RecordedPaymentEvent => {
  if (isOfPayment(recorded)) return recorded;
  throw new Error(`${recorded.event.type} is not an event of a payment`);
};

const unreadable = (events: readonly RecordedEvent[], error: unknown): UnreadableStream =>
  new UnreadableStream(`${events[0]?.stream}: ${(error as Error).message}`, events.slice(0, 1));

/**
 * Whether a payment that cannot be read is this merchant's, as its first event says. Where that event
 * cannot be read either, it is no merchant's: to another merchant a payment does not exist (A2).
 */
export const isUnreadableOf = (
  { before: [first] }: UnreadableStream,
  merchantId: string,
): boolean => first?.event.type === 'PaymentCreated' && first.event.data.merchantId === merchantId;

/**
 * Throws UnreadableStream where `fold` throws: in a damaged stream each event can be readable, and yet one
 * cannot follow another.
 */
export const foldStream = <T>(
  events: readonly RecordedEvent[],
  fold: (events: readonly RecordedPaymentEvent[]) => T,
): T => {
  try {
    return fold(events.map(asPaymentEvent));
  } catch (error) {
    throw unreadable(events, error);
  }
};

/**
 * The fold of a payment's stream event by event, in slices: a long one does not hold up other work.
 * Undefined for an empty stream. Throws UnreadableStream as `foldStream` does.
 */
export const foldInSlices = async <T>(
  events: readonly RecordedEvent[],
  step: (before: T | undefined, event: RecordedPaymentEvent) => T,
): Promise<T | undefined> => {
  let folded: T | undefined;
  try {
    for (const [index, event] of events.entries()) {
      const pause = pauseAt(index);
      if (pause !== undefined) await pause;
      folded = step(folded, asPaymentEvent(event));
    }
    return folded;
  } catch (error) {
    throw unreadable(events, error);
  }
};
