/** The one table of transitions, and what an event needs of its operation before it (M8, L5). */
import type { PaymentEvent, PaymentEventType } from './payment-events.ts';

/** Interface, "Payment response"; in the order in which a payment can reach them. */
export const PAYMENT_STATUSES = [
  'PENDING',
  'AUTHORIZED',
  'CAPTURED',
  'REFUNDED',
  'VOIDED',
  'FAILED',
] as const;
export type PaymentStatus = (typeof PAYMENT_STATUSES)[number];

/** Notes of one operation beside its intent and its outcome: they follow any status and change none. */
const NOTES = [
  'PaymentProviderOpened',
  'PaymentAuthenticationRequested',
  'PaymentResolutionRequested',
  'PaymentOutcomeConfirmed',
  'PaymentOutcomeContradicted',
] as const;

/** Said of a payment that has its outcome: by the provider (gaps §15), or that its time ends (gaps §24). */
const LATER = [
  'PaymentAuthorizationExpiring',
  'PaymentAuthorizationExpired',
  'PaymentCaptureObserved',
  'PaymentVoidObserved',
  'PaymentRefundFailed',
  'PaymentRefundObserved',
  'PaymentDisputed',
  'PaymentDisputeClosed',
] as const;

export const INTENTS = [
  'PaymentCreated',
  'PaymentCaptureRequested',
  'PaymentVoidRequested',
  'PaymentRefundRequested',
] as const satisfies PaymentEventType[];

type Of<T extends PaymentEventType> = Extract<PaymentEvent, { type: T }>;
export type NoteEvent = Of<(typeof NOTES)[number]>;
export type LaterEvent = Of<(typeof LATER)[number]>;
export type IntentEvent = Of<(typeof INTENTS)[number]>;
export type OutcomeEvent = Exclude<PaymentEvent, NoteEvent | LaterEvent | IntentEvent>;
export type FollowingEvent = Exclude<IntentEvent | OutcomeEvent, { type: 'PaymentCreated' }>;

const isOneOf = (types: readonly PaymentEventType[], { type }: PaymentEvent): boolean =>
  types.includes(type);

export const isNote = (event: PaymentEvent): event is NoteEvent => isOneOf(NOTES, event);
export const isLater = (event: PaymentEvent): event is LaterEvent => isOneOf(LATER, event);
/** An event that is no intent, no note and was not said later is an outcome. */
export const isIntent = (event: PaymentEvent): event is IntentEvent => isOneOf(INTENTS, event);

/** `to` is absent where the status stays, or follows from the amounts. */
type Transition = { from: readonly PaymentStatus[]; to?: PaymentStatus };

/** By event type; PaymentCreated begins a stream as PENDING. */
export const TRANSITIONS: Readonly<Record<(FollowingEvent | LaterEvent)['type'], Transition>> = {
  PaymentAuthorized: { from: ['PENDING'], to: 'AUTHORIZED' },
  PaymentFailed: { from: ['PENDING'], to: 'FAILED' },
  PaymentCaptureRequested: { from: ['AUTHORIZED'] },
  PaymentCaptured: { from: ['AUTHORIZED'], to: 'CAPTURED' },
  PaymentCaptureDeclined: { from: ['AUTHORIZED'] },
  PaymentVoidRequested: { from: ['AUTHORIZED'] },
  PaymentVoided: { from: ['AUTHORIZED'], to: 'VOIDED' },
  PaymentVoidDeclined: { from: ['AUTHORIZED'] },
  PaymentAuthorizationExpiring: { from: ['AUTHORIZED'] },
  PaymentAuthorizationExpired: { from: ['AUTHORIZED'], to: 'VOIDED' },
  PaymentCaptureObserved: { from: ['AUTHORIZED'], to: 'CAPTURED' },
  PaymentVoidObserved: { from: ['AUTHORIZED'], to: 'VOIDED' },
  PaymentRefundRequested: { from: ['CAPTURED'] },
  PaymentRefunded: { from: ['CAPTURED'] },
  PaymentRefundDeclined: { from: ['CAPTURED'] },
  PaymentRefundObserved: { from: ['CAPTURED'] },
  PaymentRefundFailed: { from: ['CAPTURED', 'REFUNDED'], to: 'CAPTURED' },
  PaymentDisputed: { from: ['CAPTURED', 'REFUNDED'] },
  PaymentDisputeClosed: { from: ['CAPTURED', 'REFUNDED'] },
};

/** Throws Error where the status does not allow the event. */
export const checkStatus = ({ type }: FollowingEvent | LaterEvent, status: PaymentStatus): void => {
  if (!TRANSITIONS[type].from.includes(status))
    throw new Error(`${type} cannot follow status ${status}`);
};

/** `refundedAmount` includes the refund. */
export const statusAfterRefund = (
  refundedAmount: number,
  capturedAmount: number,
): 'CAPTURED' | 'REFUNDED' => (refundedAmount >= capturedAmount ? 'REFUNDED' : 'CAPTURED');

/**
 * The provider's word on an operation that was resolved by hand: nothing definite yet (UNCONFIRMED), or,
 * also of one that was never sent, other than what is recorded (ADR-0099).
 */
export type Confirmation = 'UNCONFIRMED' | 'CONTRADICTED';

export const confirmationAfter = ({ data }: FollowingEvent): Confirmation | undefined =>
  'resolution' in data && data.resolution !== undefined ? 'UNCONFIRMED' : undefined;

/** Unresolved: the operation has an intent, and no outcome. */
type Known = { isUnresolved: boolean; confirmation: Confirmation | undefined };

/**
 * Throws Error where a note does not fit its operation: a provider opens something for one without an
 * outcome, or wants its shopper, a resolution is requested of such a one or of a contradicted one, only an unconfirmed one is
 * confirmed, and that or a failed attempt is contradicted.
 */
export const checkNote = (
  { type }: NoteEvent,
  { isUnresolved, confirmation, hasFailed }: Known & { hasFailed: boolean },
): void => {
  const fits = {
    PaymentProviderOpened: isUnresolved,
    PaymentAuthenticationRequested: isUnresolved,
    PaymentResolutionRequested: isUnresolved || confirmation === 'CONTRADICTED',
    PaymentOutcomeConfirmed: confirmation !== undefined,
    PaymentOutcomeContradicted:
      confirmation === 'UNCONFIRMED' || (confirmation === undefined && hasFailed && !isUnresolved),
  };
  if (!fits[type]) throw new Error(`${type} does not fit its operation`);
};

/**
 * Throws Error where an intent begins an operation that has no outcome yet, or is not confirmed, and
 * where an outcome has no unresolved intent. A sale is one operation with two outcomes: its
 * PaymentCaptured comes when PaymentAuthorized has ended the create.
 */
export const checkOperation = (
  event: FollowingEvent,
  { isUnresolved, confirmation, captureNow }: Known & { captureNow: boolean },
): void => {
  if (isIntent(event)) {
    if (isUnresolved || confirmation !== undefined)
      throw new Error(`${event.type} of an operation that has begun already`);
  } else if (!isUnresolved && !(event.type === 'PaymentCaptured' && captureNow))
    throw withoutIntent(event);
};

export const withoutIntent = ({ type }: FollowingEvent): Error =>
  new Error(`${type} without an unresolved intent of its operation`);
