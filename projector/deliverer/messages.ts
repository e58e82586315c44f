/** Makes the body that every attempt sends; bodies of events just read are kept for a while. */
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { foldInSlices, isOfPayment } from '../../shared/event-store/fold-stream.ts';
import { followPaymentStates } from '../../shared/event-store/payment-states.ts';
import type { EventStore, LogEvent, RecordedEvent } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { project } from '../../shared/payment/response.ts';
import { createBoundedMap } from '../../shared/runtime/bounded-map.ts';
import { type Endpoint, endpointStreamOf } from '../../shared/webhooks/endpoints.ts';
import {
  type EndpointNews,
  endpointMessage,
  type Message,
  messageAt,
  paymentMessage,
} from '../../shared/webhooks/message.ts';
import { isWanted } from '../../shared/webhooks/message-types.ts';
import type { Item } from './delivery.ts';

export class NoMessage extends Error {
  readonly code = 'EVENT_UNREADABLE';
  override name = 'NoMessage';
}

export type Messages = {
  /** For an event that was read in the order of the log. Throws StoreUnavailable. */
  keep(event: LogEvent): Promise<void>;
  /** Undefined where the endpoint does not want it. Throws NoMessage and StoreUnavailable. */
  of(item: Item, endpoint: Endpoint): Promise<Message | undefined>;
};

const KEPT_MAX = 20_000;
const KEPT_BYTES_MAX = 16 * 1024 * 1024;

const isNews = (recorded: RecordedEvent): recorded is EndpointNews =>
  recorded.event.type === 'WebhookTestRequested' ||
  recorded.event.type === 'WebhookEndpointDisabled';

const keyOf = (stream: string, revision: number): string => `${stream}@${revision}`;

/** Those before the first that cannot be read. */
export const readableEvents = async (
  store: Pick<EventStore, 'readStream'>,
  stream: string,
): Promise<RecordedEvent[]> => {
  try {
    return await store.readStream(stream);
  } catch (error) {
    if (error instanceof UnreadableStream) return error.before;
    throw error;
  }
};

export const createMessages = (store: Pick<EventStore, 'readStream'>): Messages => {
  const states = followPaymentStates(store);
  const kept = createBoundedMap<Message>(KEPT_MAX, {
    bytesMax: KEPT_BYTES_MAX,
    bytesOf: ({ body }) => body.length,
  });

  const ofPayment = async (paymentId: string, revision: number): Promise<Message | undefined> => {
    const stream = streamOf(paymentId);
    const made = kept.get(keyOf(stream, revision));
    if (made !== undefined) return made;
    const events = await readableEvents(store, stream);
    const event = events[revision];
    if (event === undefined || !isOfPayment(event)) throw new NoMessage(paymentId);
    try {
      const readModel = await foldInSlices(events.slice(0, revision + 1), project);
      return readModel && paymentMessage(event, readModel);
    } catch {
      throw new NoMessage(paymentId);
    }
  };

  return {
    keep: async (event) => {
      // `of` finds out when one cannot be made.
      const message = await messageAt(states, event);
      if (message !== undefined) kept.set(keyOf(event.stream, event.revision), message);
    },
    of: async (item, endpoint) => {
      if (item.kind !== 'single') {
        const message = await ofPayment(item.paymentId, item.revision);
        return message && isWanted(endpoint, message.type) ? message : undefined;
      }
      const { paymentId, revision } = item.single;
      // A resend by name also sends a type that the endpoint did not ask for.
      if (paymentId !== undefined) return ofPayment(paymentId, revision);
      const event = (await readableEvents(store, endpointStreamOf(endpoint.merchantId)))[revision];
      if (event === undefined || !isNews(event)) throw new NoMessage(item.single.id);
      return endpointMessage(event);
    },
  };
};
