/** Makes the message of an item from the log: the very body that every attempt at it sends. */
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { isOfPayment } from '../../shared/event-store/fold-stream.ts';
import type { PaymentStates } from '../../shared/event-store/payment-states.ts';
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { type Endpoint, endpointStreamOf } from '../../shared/webhooks/endpoints.ts';
import {
  type EndpointNews,
  endpointMessage,
  type Message,
  paymentMessage,
} from '../../shared/webhooks/message.ts';
import { isWanted } from '../../shared/webhooks/message-types.ts';
import type { Item } from './delivery.ts';

/** The message of a payment's revision is not to be had: its event cannot be read, or is gone. */
export class NoMessage extends Error {
  readonly code = 'EVENT_UNREADABLE';
  override name = 'NoMessage';
}

export type Messages = {
  /**
   * Undefined where the endpoint does not want it. Throws NoMessage where the event cannot be read,
   * and StoreUnavailable.
   */
  of(item: Item, endpoint: Endpoint): Promise<Message | undefined>;
};

const isNews = (recorded: RecordedEvent): recorded is EndpointNews =>
  recorded.event.type === 'WebhookTestRequested' ||
  recorded.event.type === 'WebhookEndpointDisabled';

export const createMessages = (
  store: Pick<EventStore, 'readStream'>,
  states: PaymentStates,
): Messages => {
  const readable = async (stream: string): Promise<RecordedEvent[]> => {
    try {
      return await store.readStream(stream);
    } catch (error) {
      if (error instanceof UnreadableStream) return error.before;
      throw error;
    }
  };

  const ofPayment = async (paymentId: string, revision: number): Promise<Message | undefined> => {
    const event = (await readable(streamOf(paymentId)))[revision];
    if (event === undefined || !isOfPayment(event)) throw new NoMessage(paymentId);
    try {
      return paymentMessage(event, await states.after(event));
    } catch (error) {
      if (Object(error).code === 'EVENT_STORE_UNAVAILABLE') throw error;
      throw new NoMessage(paymentId);
    }
  };

  return {
    of: async (item, endpoint) => {
      if (item.kind !== 'single') {
        const message = await ofPayment(item.paymentId, item.revision);
        return message && isWanted(endpoint, message.type) ? message : undefined;
      }
      const { paymentId, revision } = item.single;
      // Sent again by name: also a type that the endpoint did not ask for.
      if (paymentId !== undefined) return ofPayment(paymentId, revision);
      const event = (await readable(endpointStreamOf(endpoint.merchantId)))[revision];
      if (event === undefined || !isNews(event)) throw new NoMessage(item.single.id);
      return endpointMessage(event);
    },
  };
};
