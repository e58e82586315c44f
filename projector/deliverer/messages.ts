/** Makes the message that every attempt at an item sends. */
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { foldInSlices, isOfPayment } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { project } from '../../shared/payment/response.ts';
import { type Endpoint, endpointStreamOf } from '../../shared/webhooks/endpoints.ts';
import {
  endpointMessage,
  isWanted,
  type Message,
  paymentMessage,
} from '../../shared/webhooks/message.ts';
import type { Item } from './delivery.ts';

type Store = Pick<EventStore, 'readStream'>;

/** Those before the first that cannot be read. */
export const readableEvents = async (store: Store, stream: string): Promise<RecordedEvent[]> => {
  try {
    return await store.readStream(stream);
  } catch (error) {
    if (error instanceof UnreadableStream) return error.before;
    throw error;
  }
};

type Made = Message | 'unwanted' | 'unreadable';

const ofPayment = async (store: Store, paymentId: string, revision: number): Promise<Made> => {
  const events = await readableEvents(store, streamOf(paymentId));
  const event = events[revision];
  if (event === undefined || !isOfPayment(event)) return 'unreadable';
  try {
    const readModel = await foldInSlices(events.slice(0, revision + 1), project);
    return (readModel && paymentMessage(event, readModel)) ?? 'unwanted';
  } catch {
    return 'unreadable';
  }
};

/** Throws StoreUnavailable. */
export const messageFor = async (
  store: Store,
  { kind, paymentId, revision }: Item,
  endpoint: Endpoint,
): Promise<Made> => {
  if (paymentId === undefined) {
    const events = await readableEvents(store, endpointStreamOf(endpoint.merchantId));
    const event = events[revision];
    return (event && endpointMessage(event)) ?? 'unreadable';
  }
  const made = await ofPayment(store, paymentId, revision);
  // A resend by name also sends a type that the endpoint did not ask for.
  if (kind === 'resend' || typeof made === 'string') return made;
  return isWanted(endpoint, made.type) ? made : 'unwanted';
};
