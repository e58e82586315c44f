/** The types of messages that endpoints are sent, and which event of a payment is which. */
import type { PaymentEvent, PaymentEventType } from '../payment/payment-events.ts';

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
} as const satisfies Record<PaymentEventType, `payment.${string}` | undefined>;

/** To the merchant's other endpoints. */
export const DISABLED_TYPE = 'webhook_endpoint.disabled';
/** Sent on request, to any endpoint. */
export const TEST_TYPE = 'webhook.test';
/** The intent alone: most receivers want its outcome. */
const ON_REQUEST = TYPE_OF.PaymentCreated;

type PaymentMessageType = NonNullable<(typeof TYPE_OF)[PaymentEventType]>;
export type MessageType = PaymentMessageType | typeof DISABLED_TYPE | typeof TEST_TYPE;

export const SUBSCRIBABLE_TYPES: readonly MessageType[] = [
  ...new Set(Object.values(TYPE_OF).filter((type) => type !== undefined)),
  DISABLED_TYPE,
];

/** Without a list, all but `payment.created` are wanted. */
export const isWanted = (
  { eventTypes }: { eventTypes?: readonly string[] | undefined },
  type: MessageType,
): boolean => (eventTypes === undefined ? type !== ON_REQUEST : eventTypes.includes(type));

/** Undefined for what is not sent: later intents, notes, a sale's authorization (no GET shows it). */
export const messageTypeOf = (
  { type }: Pick<PaymentEvent, 'type'>,
  { captureNow }: { captureNow: boolean },
): PaymentMessageType | undefined =>
  type === 'PaymentAuthorized' && captureNow ? undefined : TYPE_OF[type];
