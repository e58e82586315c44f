import { isPaymentEvent, type PaymentEvent, streamOf } from '../payment/events.ts';
import { jsonFieldsOf } from '../runtime/json.ts';
import { slicesOf } from '../runtime/scheduling.ts';
import { beforeIn, formReason, previousReason, revisionReason, storedCheck } from './chain.ts';
import { allReadable, decode, isReadable, unreadableAt } from './codec.ts';
import { StreamNotWhole, UnreadableStream } from './errors.ts';
import type { LogEvent, RecordedEvent, StoredForm, StoredForms, UnreadableEvent } from './port.ts';

/** Never throws. */
export function decodeForm(form: StoredForm): RecordedEvent | UnreadableEvent {
  const event = decode(form);
  if (!isReadable(event)) return event;
  // A changed text can read well: another amount, another card.
  const reason = formReason(form);
  return reason === undefined ? event : unreadableAt(form, reason);
}

/**
 * Decodes a log in its order, from any place on. Where others may write to it, an event that is not ours, or
 * does not follow in its stream, is unreadable (gaps §29). Throws StoreUnavailable: then ask again.
 */
export const decodeInOrder = (stored: Pick<StoredForms, 'guarantee' | 'readStream'>) => {
  const check = storedCheck(beforeIn(stored), 'stream');
  return async (form: StoredForm): Promise<LogEvent> => {
    // The service alone writes that log.
    if (stored.guarantee === 'log') return decodeForm(form);
    const named = jsonFieldsOf(form.text);
    const reason = await check(form, named);
    return reason === undefined ? decode(form, named) : unreadableAt(form, reason);
  };
};

/** Throws StreamNotWhole (its start is gone) and UnreadableStream: no command works on a changed stream. */
export const wholeStream = (
  events: readonly (RecordedEvent | UnreadableEvent)[],
): RecordedEvent[] => {
  const [first] = events;
  if (first !== undefined && first.revision > 0)
    throw new StreamNotWhole(first.stream, `begins at revision ${first.revision}`);
  let end: RecordedEvent | undefined;
  const followed = events.map((event) => {
    if (!isReadable(event)) return event;
    const { revision, previousHash } = event;
    const reason = revisionReason(revision, end) ?? previousReason(previousHash, end?.hash);
    end = event;
    return reason === undefined ? event : unreadableAt(event, reason);
  });
  return allReadable(followed);
};

export type RecordedPaymentEvent = RecordedEvent<PaymentEvent>;

/** Another writer can have copied it into this stream (gaps §29). */
export const isOfOther = ({ stream, event }: Pick<RecordedEvent, 'stream' | 'event'>): boolean =>
  event.type === 'PaymentCreated' && streamOf(event.data.paymentId) !== stream;

export const isOfPayment = (recorded: RecordedEvent): recorded is RecordedPaymentEvent =>
  isPaymentEvent(recorded.event) && !isOfOther(recorded);

/** Throws Error for an event of another family, or of another payment. */
export const asPaymentEvent = (recorded: RecordedEvent): RecordedPaymentEvent => {
  if (isOfPayment(recorded)) return recorded;
  const which = isOfOther(recorded) ? 'this' : 'a';
  throw new Error(`${recorded.event.type} is not an event of ${which} payment`);
};

const unreadable = (events: readonly RecordedEvent[], error: unknown): UnreadableStream =>
  new UnreadableStream(`${events[0]?.stream}: ${(error as Error).message}`, events.slice(0, 1));

/** By its first event. If that is unreadable too, no merchant has the payment: it does not exist (A2). */
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
    for await (const slice of slicesOf(events))
      for (const event of slice) folded = step(folded, asPaymentEvent(event));
    return folded;
  } catch (error) {
    throw unreadable(events, error);
  }
};
