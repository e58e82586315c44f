/**
 * The message of an event: what an endpoint is sent, and what `payments listen --forward-to` forwards,
 * to the byte. A payment in it is the text that GET gives at that revision, so nothing leaves that
 * the merchant cannot read.
 */
import type { RecordedPaymentEvent } from '../event-store/fold-stream.ts';
import type { RecordedEvent } from '../event-store/port.ts';
import type { PaymentReadModel } from '../payment/payment-response.ts';
import { bodyOf } from '../payment/response.ts';
import type { WebhookEvent } from '../payment/webhook-events.ts';
import { DISABLED_TYPE, type MessageType, messageTypeOf, TEST_TYPE } from './message-types.ts';

/**
 * `id` is the event's, at every attempt: what a receiver deduplicates by. `traceparent` is the stored
 * one, so that every attempt sends the same.
 */
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

/**
 * The message of a payment's event; `readModel` is the payment right after it. Undefined for an event
 * that is not sent.
 */
export const paymentMessage = (
  recorded: RecordedPaymentEvent,
  readModel: PaymentReadModel,
): Message | undefined => {
  const type = messageTypeOf(recorded.event, readModel.response);
  if (type === undefined) return undefined;
  const { revision } = recorded;
  return message(type, recorded, `"revision":${revision},"payment":${bodyOf(readModel)}`);
};

/** An event that has a message of its own: a request for a test, or the end of another endpoint. */
export type EndpointNews = RecordedEvent<
  Extract<WebhookEvent, { type: 'WebhookTestRequested' | 'WebhookEndpointDisabled' }>
>;

/** The message of such an event. */
export const endpointMessage = (recorded: EndpointNews): Message => {
  const { type, data } = recorded.event;
  const endpoint = `"endpointId":"${data.endpointId}"`;
  return type === 'WebhookTestRequested'
    ? message(TEST_TYPE, recorded, endpoint)
    : message(DISABLED_TYPE, recorded, `${endpoint},"reason":"${data.reason}"`);
};
