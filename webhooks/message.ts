/** The messages of endpoints, to the byte. A payment in one is the text that GET gives at that revision. */
import { StoreUnavailable, UnreadableStream } from '../shared/event-store/errors.ts';
import {
  foldInSlices,
  isOfPayment,
  type RecordedPaymentEvent,
} from '../shared/event-store/fold-stream.ts';
import type { PaymentStates } from '../shared/event-store/payment-states.ts';
import type { EventStore, LogEvent, RecordedEvent } from '../shared/event-store/port.ts';
import { type PaymentEvent, type PaymentEventType, streamOf } from '../shared/payment/events.ts';
import { project } from '../shared/payment/fold.ts';
import { bodyOf } from '../shared/payment/response.ts';
import { type OpenText, openPersonal, type PaymentReadModel } from '../shared/payment/state.ts';
import { onError } from '../shared/runtime/error-text.ts';
import type { Single } from './delivery/delivery-row.ts';
import { type Endpoint, endpointStreamOf } from './endpoints/endpoints.ts';

/** Undefined: nothing is sent, as GET shows the payment unchanged. */
const TYPE_OF = {
  PaymentCreated: 'payment.created',
  PaymentAuthorized: 'payment.authorized',
  PaymentCaptured: 'payment.captured',
  PaymentVoided: 'payment.voided',
  PaymentRefunded: 'payment.refunded',
  PaymentFailed: 'payment.failed',
  PaymentCaptureDeclined: 'payment.capture_failed',
  PaymentVoidDeclined: 'payment.void_failed',
  PaymentRefundDeclined: 'payment.refund_failed',
  PaymentAuthorizationExpiring: 'payment.authorization_expiring',
  PaymentAuthorizationExpired: 'payment.authorization_expired',
  PaymentCaptureObserved: 'payment.captured',
  PaymentVoidObserved: 'payment.voided',
  PaymentRefundFailed: 'payment.refund_reversed',
  PaymentRefundObserved: 'payment.refunded',
  PaymentDisputed: 'payment.disputed',
  PaymentDisputeClosed: 'payment.dispute_closed',
  PaymentProviderOpened: undefined,
  PaymentAuthenticationRequested: undefined,
  PaymentCaptureRequested: undefined,
  PaymentVoidRequested: undefined,
  PaymentRefundRequested: undefined,
  PaymentResolutionRequested: undefined,
  PaymentOutcomeConfirmed: undefined,
  PaymentOutcomeContradicted: undefined,
  PaymentErasureRequested: undefined,
  PaymentErasureHeld: undefined,
  PaymentErasureReleased: undefined,
  PaymentPersonalDataErased: undefined,
} as const satisfies Record<PaymentEventType, `payment.${string}` | undefined>;

/** To the merchant's other endpoints. */
export const DISABLED_TYPE = 'webhook_endpoint.disabled';
/** Sent on request, to any endpoint. */
export const TEST_TYPE = 'webhook.test';
/** The intent alone: most receivers want its outcome. */
const ON_REQUEST = TYPE_OF.PaymentCreated;

type PaymentMessageType = NonNullable<(typeof TYPE_OF)[PaymentEventType]>;
export type WebhookType = PaymentMessageType | typeof DISABLED_TYPE | typeof TEST_TYPE;

export const SUBSCRIBABLE_TYPES: readonly WebhookType[] = [
  ...new Set(Object.values(TYPE_OF).filter((type) => type !== undefined)),
  DISABLED_TYPE,
];

/** Without a list, all but `payment.created` are wanted. */
export const isWanted = (
  { eventTypes }: { eventTypes?: readonly string[] | undefined },
  type: WebhookType,
): boolean => (eventTypes === undefined ? type !== ON_REQUEST : eventTypes.includes(type));

/** Undefined for what is not sent: later intents, notes, a sale's authorization (no GET shows it). */
export const messageTypeOf = (
  { type }: Pick<PaymentEvent, 'type'>,
  { captureNow }: { captureNow: boolean },
): PaymentMessageType | undefined =>
  type === 'PaymentAuthorized' && captureNow ? undefined : TYPE_OF[type];

/** Both the same at every attempt: the event's `id`, to deduplicate by, and its stored `traceparent`. */
export type Message = {
  id: string;
  type: WebhookType;
  body: string;
  traceparent?: string | undefined;
};

const message = (
  type: WebhookType,
  { id, time, context: { traceparent } }: Pick<RecordedEvent, 'id' | 'time' | 'context'>,
  rest: string,
): Message => ({
  id,
  type,
  traceparent,
  body: `{"type":"${type}","timestamp":"${time}","data":{"eventId":"${id}",${rest}}}`,
});

/** `readModel` is the payment right after the event. Undefined for an event that is not sent. */
export const paymentMessage = async (
  recorded: RecordedPaymentEvent,
  readModel: PaymentReadModel,
  open: OpenText,
) => {
  const type = messageTypeOf(recorded.event, readModel);
  if (type === undefined) return undefined;
  const { revision } = recorded;
  const body = bodyOf(readModel, await openPersonal(open, readModel));
  return message(type, recorded, `"revision":${revision},"payment":${body}`);
};

/** Undefined also where the payment's events cannot be read (P5). Throws StoreUnavailable. */
export const messageAt = async (states: PaymentStates, event: LogEvent, open: OpenText) => {
  if ('unreadable' in event || !isOfPayment(event)) return undefined;
  try {
    return await paymentMessage(event, await states.after(event), open);
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

type Store = Pick<EventStore, 'readStream'>;
type MessageDeps = { store: Store; openText: OpenText };

const beforeUnreadable = onError(UnreadableStream, ({ before }) => before);

/** Those before the first that cannot be read. Throws StoreUnavailable. */
export const readableEvents = (store: Store, stream: string): Promise<RecordedEvent[]> =>
  store.readStream(stream).catch(beforeUnreadable);

const messageOfPayment = async (
  { store, openText }: MessageDeps,
  paymentId: string,
  revision: number,
) => {
  const events = await readableEvents(store, streamOf(paymentId));
  const event = events[revision];
  if (event === undefined || !isOfPayment(event)) return 'unreadable';
  try {
    const readModel = await foldInSlices(events.slice(0, revision + 1), project);
    return (readModel && (await paymentMessage(event, readModel, openText))) ?? 'unwanted';
  } catch {
    return 'unreadable';
  }
};

/** Of a payment's revision, else of one of its merchant's stream. Throws StoreUnavailable. */
export const messageFor = async (
  { store, openText }: MessageDeps,
  { kind, paymentId, revision }: Pick<Single, 'paymentId' | 'revision'> & { kind: string },
  endpoint: Endpoint,
): Promise<Message | 'unwanted' | 'unreadable'> => {
  if (paymentId === undefined) {
    const events = await readableEvents(store, endpointStreamOf(endpoint.merchantId));
    return (events[revision] && endpointMessage(events[revision])) ?? 'unreadable';
  }
  const made = await messageOfPayment({ store, openText }, paymentId, revision);
  // A resend by name also sends a type that the endpoint did not ask for.
  if (kind === 'resend' || typeof made === 'string') return made;
  return isWanted(endpoint, made.type) ? made : 'unwanted';
};
