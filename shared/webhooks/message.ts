/** The message of an event, to the byte. A payment in it is the text that GET gives at that revision. */
import { StoreUnavailable } from '../event-store/errors.ts';
import { isOfPayment, type RecordedPaymentEvent } from '../event-store/fold-stream.ts';
import type { PaymentStates } from '../event-store/payment-states.ts';
import type { LogEvent, RecordedEvent } from '../event-store/port.ts';
import type { PaymentReadModel } from '../payment/payment-response.ts';
import { bodyOf } from '../payment/response.ts';
import { DISABLED_TYPE, type MessageType, messageTypeOf, TEST_TYPE } from './message-types.ts';

/** Both the same at every attempt: the event's `id`, to deduplicate by, and its stored `traceparent`. */
export type Message = {
  id: string;
  type: MessageType;
  body: string;
  traceparent?: string | undefined;
};

const message = (
  type: MessageType,
  { id, time, context: { traceparent } }: Pick<RecordedEvent, 'id' | 'time' | 'context'>,
  rest: string,
): Message => ({
  id,
  type,
  ...(traceparent !== undefined && { traceparent }),
  body: `{"type":"${type}","timestamp":"${time}","data":{"eventId":"${id}",${rest}}}`,
});

/** `readModel` is the payment right after the event. Undefined for an event that is not sent. */
export const paymentMessage = (
  recorded: RecordedPaymentEvent,
  readModel: PaymentReadModel,
): Message | undefined => {
  const type = messageTypeOf(recorded.event, readModel.response);
  if (type === undefined) return undefined;
  const { revision } = recorded;
  return message(type, recorded, `"revision":${revision},"payment":${bodyOf(readModel)}`);
};

/** Undefined also where the payment's events cannot be read (P5). Throws StoreUnavailable. */
export const messageAt = async (
  states: PaymentStates,
  event: LogEvent,
): Promise<Message | undefined> => {
  if ('unreadable' in event || !isOfPayment(event)) return undefined;
  try {
    return paymentMessage(event, await states.after(event));
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    return undefined;
  }
};

/** For a request for a test, and the end of another endpoint; undefined for other events. */
export const endpointMessage = (recorded: RecordedEvent): Message | undefined => {
  const { type, data } = recorded.event;
  if (type === 'WebhookTestRequested')
    return message(TEST_TYPE, recorded, `"endpointId":"${data.endpointId}"`);
  if (type !== 'WebhookEndpointDisabled') return undefined;
  const { endpointId, reason } = data;
  return message(DISABLED_TYPE, recorded, `"endpointId":"${endpointId}","reason":"${reason}"`);
};
