import { isPaymentEvent } from '../payment/events.ts';
import type { PaymentEvent } from '../payment/payment-events.ts';
import { pauseAt } from '../runtime/slices.ts';
import { UnreadableStream } from './errors.ts';
import type { RecordedEvent } from './port.ts';

export type RecordedPaymentEvent = RecordedEvent<PaymentEvent>;

export const isOfPayment = (recorded: RecordedEvent): recorded is RecordedPaymentEvent =>
  isPaymentEvent(recorded.event);

/** Throws Error for an event of another family. */
export const asPaymentEvent = (recorded: RecordedEvent): RecordedPaymentEvent => {
  if (isOfPayment(recorded)) return recorded;
  throw new Error(`${recorded.event.type} is not an event of a payment`);
};

const unreadable = (events: readonly RecordedEvent[], error: unknown): UnreadableStream =>
  new UnreadableStream(`${events[0]?.stream}: ${(error as Error).message}`, events.slice(0, 1));

/** By its first event. Unreadable too, the payment is no merchant's: it does not exist (A2). */
export const isUnreadableOf = (
  { before: [first] }: UnreadableStream,
  merchantId: string,
): boolean => first?.event.type === 'PaymentCreated' && first.event.data.merchantId === merchantId;

/** Throws UnreadableStream where `fold` throws: readable events can still not follow each other. */
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

/** In slices, so that a long stream does not hold up other work. Throws as `foldStream`. */
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
