/**
 * Makes the messages of events: CloudEvents 1.0, structured JSON. Pure: the same event gives the same bytes,
 * sent or computed from the log. `ce_` headers repeat the attributes, so consumers route without parsing.
 */
import type { RecordedPaymentEvent } from '../shared/event-store/fold-stream.ts';
import type { RecordedEvent } from '../shared/event-store/port.ts';
import { paymentDetails } from '../shared/payment/fields.ts';
import { adviceOf } from '../shared/payment/response.ts';
import type { SealEvent } from '../shared/payment/seal-events.ts';
import { intentsWithoutOutcome, type PaymentReadModel } from '../shared/payment/state.ts';
import { withoutCardNumbers } from '../shared/runtime/card-numbers.ts';
import { type FeedMessage, SEALS_KEY, type Topic } from './port.ts';
import {
  type CloudEvent,
  MESSAGE_VERSIONS,
  type MessageType,
  publicEventData,
  publicSealData,
  publicState,
} from './schemas.ts';

type Attributes = Omit<CloudEvent, 'data'>;

const CONTENT_TYPE = 'application/cloudevents+json';
/** Ten digits, because CloudEvents orders a `sequence` as text. */
const SEQUENCE_DIGITS = 10;

const ofPayment = ({ merchantId, paymentId }: PaymentReadModel) => ({
  source: `/payments/${encodeURIComponent(merchantId.toWellFormed())}`,
  subject: paymentId,
});

/** Percent-encodes all but visible ASCII (CloudEvents, Kafka binding). */
const headerValue = (value: string): string =>
  value
    .toWellFormed()
    .replace(/[^\x21\x23-\x24\x26-\x7e]/gu, (character) => encodeURIComponent(character));

const headersOf = (attributes: Attributes): Record<string, string> => {
  const headers: Record<string, string> = { 'content-type': CONTENT_TYPE };
  for (const [name, value] of Object.entries(attributes)) {
    if (name !== 'datacontenttype') headers[`ce_${name}`] = headerValue(String(value));
  }
  // By this name the clients of tracing tools find it.
  if (attributes.traceparent !== undefined) headers.traceparent = attributes.traceparent;
  return headers;
};

/** Masks card numbers in all texts inside (gaps §4, ADR-0124). */
const masked = (value: unknown): unknown => {
  if (typeof value === 'string') return withoutCardNumbers(value);
  if (Array.isArray(value)) return value.map(masked);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, masked(inner)]));
};

/** A merchant may have typed a card number in place of an order number. */
const withMaskedOrder = (data: CloudEvent['data']): CloudEvent['data'] => {
  const order = Object.keys(paymentDetails.shape).filter((name) => name in data);
  return { ...data, ...Object.fromEntries(order.map((name) => [name, masked(data[name])])) };
};

type Own = Pick<CloudEvent, 'id' | 'source' | 'subject' | 'partitionsequence' | 'data'> & {
  type: MessageType;
};

const messageOf = (
  topic: Topic,
  partition: number,
  event: RecordedEvent,
  { type, id, source, subject, data, ...numbered }: Own,
): FeedMessage => {
  const { time, context } = event;
  const attributes: Attributes = {
    specversion: '1.0',
    id,
    source,
    type: `payments.${type}.v${MESSAGE_VERSIONS[type]}`,
    subject,
    time,
    datacontenttype: 'application/json',
    dataschema: `urn:payments:schema:${type}:${MESSAGE_VERSIONS[type]}`,
    sequence: String(event.revision).padStart(SEQUENCE_DIGITS, '0'),
    ...numbered,
    globalposition: event.position,
    correlationid: context.correlationId,
    causationid: context.causationId,
    hash: event.hash,
    ...(context.traceparent !== undefined && { traceparent: context.traceparent }),
  };
  return {
    topic,
    partition,
    key: subject,
    value: JSON.stringify({ ...attributes, data: withMaskedOrder(data) }),
    headers: headersOf(attributes),
    timestampMs: Date.parse(time),
  };
};

/** `readModel` is the payment after the event; `number` counts the messages of the partition. */
export const eventMessage = (
  event: RecordedPaymentEvent,
  readModel: PaymentReadModel,
  { partition, number }: { partition: number; number: number },
): FeedMessage => {
  const { type, data } = event.event;
  // The schema lets through what it lists of the order, and no name or address.
  const order = 'details' in data ? data.details : {};
  const failure = 'failureCode' in data ? { advice: adviceOf(data) } : {};
  return messageOf('events', partition, event, {
    ...ofPayment(readModel),
    type,
    id: event.id,
    partitionsequence: String(number),
    data: publicEventData[type].parse({ ...order, ...data, ...failure }),
  });
};

/** A payment can have a thousand of them, and a message has to fit the broker (gaps §18). */
const TRANSACTIONS_MAX = 50;

/** The payment after the event. Its id differs from the event's: source and id together name one message. */
export const stateMessage = (
  event: RecordedPaymentEvent,
  readModel: PaymentReadModel,
  { partition }: { partition: number },
): FeedMessage => {
  const { transactions, paymentMethod, personal } = readModel;
  const data = publicState.parse({
    ...readModel,
    card: paymentMethod.card,
    personalDataErased: personal.erasedAt === undefined ? undefined : true,
    unresolvedOperations: intentsWithoutOutcome(readModel).length,
    transactionCount: transactions.length,
    transactions: transactions.slice(-TRANSACTIONS_MAX),
  });
  const own = { ...ofPayment(readModel), type: 'PaymentState', id: `${event.id}.state` } as const;
  return messageOf('state', partition, event, { ...own, data });
};

export const sealMessage = (event: RecordedEvent<SealEvent>, partition: number): FeedMessage => {
  const { type, data } = event.event;
  return messageOf('seals', partition, event, {
    type,
    id: event.id,
    source: `/${SEALS_KEY}`,
    subject: SEALS_KEY,
    data: publicSealData[type].parse(data),
  });
};

const SEED = 0x9747b28c;
const MULTIPLIER = 0x5bd1e995;

/** The hash of Kafka's Java client, as a signed 32-bit number. */
const murmur2 = (data: Uint8Array): number => {
  const bytes = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const wholeWords = data.length & ~3;
  let hash = SEED ^ data.length;
  for (let at = 0; at < wholeWords; at += 4) {
    let word = Math.imul(bytes.getInt32(at, true), MULTIPLIER);
    word = Math.imul(word ^ (word >>> 24), MULTIPLIER);
    hash = Math.imul(hash, MULTIPLIER) ^ word;
  }
  if (wholeWords < data.length) {
    let rest = 0;
    for (let at = data.length - 1; at >= wholeWords; at -= 1)
      rest = (rest << 8) | bytes.getUint8(at);
    hash = Math.imul(hash ^ rest, MULTIPLIER);
  }
  hash = Math.imul(hash ^ (hash >>> 13), MULTIPLIER);
  return hash ^ (hash >>> 15);
};

/** By the rule of Kafka's own clients: any other producer puts the same key into the same partition. */
export const partitionOf = (key: string, partitions: number): number =>
  (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions;
