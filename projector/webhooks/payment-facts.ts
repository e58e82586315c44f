/** What the deliverer has to know of an event of the log to find the endpoints that want it. */

import { UnreadableStream } from '../../shared/event-store/errors.ts';
import type { EventStore, LogEvent } from '../../shared/event-store/port.ts';
import { isPaymentEvent } from '../../shared/payment/events.ts';
import { paymentOf } from '../../shared/payment/payment-events.ts';
import { createBoundedMap } from '../../shared/runtime/bounded-map.ts';
import { type MessageType, messageTypeOf } from '../../shared/webhooks/message-types.ts';
import { checkpointHashOf } from '../log-check.ts';
import type { Wanted } from './delivery.ts';

/** An event of a payment that has a message; the type is undefined where the event cannot be read. */
export type PaymentFact = Wanted & { merchantId: string; type: MessageType | undefined };

type First = { merchantId: string; captureNow: boolean };

export type PaymentFacts = {
  /** In the order of the events; those without a message are left out. Throws StoreUnavailable. */
  of(events: readonly LogEvent[]): Promise<PaymentFact[]>;
};

const PAYMENTS_KNOWN_MAX = 50_000;

const firstOf = (event: LogEvent | undefined): First | undefined =>
  event !== undefined && 'event' in event && event.event.type === 'PaymentCreated'
    ? event.event.data
    : undefined;

/** What else is done with each event of a payment, in their order; `merchantId` is the payment's. */
export type OnPaymentEvent = (event: LogEvent, merchantId: string) => Promise<void> | undefined;

/** Keeps the merchants of the last payments in memory. */
export const followPaymentFacts = (
  store: Pick<EventStore, 'readStream'>,
  onEvent: OnPaymentEvent,
): PaymentFacts => {
  const known = createBoundedMap<First>(PAYMENTS_KNOWN_MAX);

  const keep = (stream: string, first: First | undefined): First | undefined => {
    if (first !== undefined)
      known.set(stream, { merchantId: first.merchantId, captureNow: first.captureNow });
    return first;
  };

  /** Undefined where the first event cannot be read: nobody can be told whose it is. */
  const lookUp = async (stream: string): Promise<First | undefined> => {
    try {
      return firstOf((await store.readStream(stream))[0]);
    } catch (error) {
      if (error instanceof UnreadableStream) return firstOf(error.before[0]);
      throw error;
    }
  };

  const first = async (event: LogEvent): Promise<First | undefined> => {
    const { stream } = event;
    const here = event.revision === 0 ? firstOf(event) : known.get(stream);
    return keep(stream, here ?? (await lookUp(stream)));
  };

  const factOf = async (event: LogEvent): Promise<PaymentFact | undefined> => {
    const paymentId = paymentOf(event.stream);
    const created = paymentId === undefined ? undefined : await first(event);
    if (paymentId === undefined || created === undefined) return undefined;
    const { position, revision } = event;
    const { merchantId } = created;
    await onEvent(event, merchantId);
    const place = { position, hash: checkpointHashOf(event) };
    const fact = { place, paymentId, revision, merchantId };
    if (!('event' in event)) return { ...fact, atMs: 0, type: undefined };
    if (!isPaymentEvent(event.event)) return undefined;
    const type = messageTypeOf(event.event, created);
    return type === undefined ? undefined : { ...fact, atMs: Date.parse(event.time), type };
  };

  return {
    of: async (events) => {
      const facts: PaymentFact[] = [];
      for (const event of events) {
        const fact = await factOf(event);
        if (fact !== undefined) facts.push(fact);
      }
      return facts;
    },
  };
};
