/** The one table of transitions, and what an event needs of its operation before it (M8, L5). */
import type { PaymentEvent, PaymentEventType } from './payment-events.ts';
import type { PaymentStatus } from './payment-status.ts';

/** Notes of one operation beside its intent and its outcome. They follow any status and change none. */
const NOTES = [
  'PaymentProviderOpened',
  'PaymentResolutionRequested',
  'PaymentOutcomeConfirmed',
  'PaymentOutcomeContradicted',
] as const;

/** The provider says these later, of a payment that has its outcome (gaps §15). */
const LATER = [
  'PaymentAuthorizationExpired',
  'PaymentRefundFailed',
  'PaymentRefundObserved',
  'PaymentDisputed',
  'PaymentDisputeClosed',
] as const;

/** The types of intents. */
export const INTENTS = [
  'PaymentCreated',
  'PaymentCaptureRequested',
  'PaymentVoidRequested',
  'PaymentRefundRequested',
] as const satisfies PaymentEventType[];

type Of<T extends PaymentEventType> = Extract<PaymentEvent, { type: T }>;
/** See NOTES. */
export type NoteEvent = Of<(typeof NOTES)[number]>;
/** See LATER. */
export type LaterEvent = Of<(typeof LATER)[number]>;
/** An event that begins an operation. */
export type IntentEvent = Of<(typeof INTENTS)[number]>;
/** An event that ends an operation. */
export type OutcomeEvent = Exclude<PaymentEvent, NoteEvent | LaterEvent | IntentEvent>;
/** An intent or an outcome that can follow another event in a stream. */
export type FollowingEvent = Exclude<IntentEvent | OutcomeEvent, { type: 'PaymentCreated' }>;

const isOneOf = (types: readonly PaymentEventType[], { type }: PaymentEvent): boolean =>
  types.includes(type);

/** True for an event that changes no status and no amount. */
export const isNote = (event: PaymentEvent): event is NoteEvent => isOneOf(NOTES, event);
/** True for an event that the provider said later. */
export const isLater = (event: PaymentEvent): event is LaterEvent => isOneOf(LATER, event);
/** True for an intent. An event that is no note and was not said later either is an outcome. */
export const isIntent = (event: PaymentEvent): event is IntentEvent => isOneOf(INTENTS, event);

/** The statuses that an event needs before it, and the one after it where the event alone decides that. */
type Transition = { from: readonly PaymentStatus[]; to?: PaymentStatus };

/** The table, by event type; PaymentCreated begins a stream as PENDING. */
export const TRANSITIONS: Readonly<Record<(FollowingEvent | LaterEvent)['type'], Transition>> = {
  PaymentAuthorized: { from: ['PENDING'], to: 'AUTHORIZED' },
  PaymentFailed: { from: ['PENDING'], to: 'FAILED' },
  PaymentCaptureRequested: { from: ['AUTHORIZED'] },
  PaymentCaptured: { from: ['AUTHORIZED'], to: 'CAPTURED' },
  PaymentCaptureDeclined: { from: ['AUTHORIZED'] },
  PaymentVoidRequested: { from: ['AUTHORIZED'] },
  PaymentVoided: { from: ['AUTHORIZED'], to: 'VOIDED' },
  PaymentVoidDeclined: { from: ['AUTHORIZED'] },
  PaymentAuthorizationExpired: { from: ['AUTHORIZED'], to: 'VOIDED' },
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

/** The status after a refund; `refundedAmount` includes it. Both amounts are in minor units. */
export const statusAfterRefund = (
  refundedAmount: number,
  capturedAmount: number,
): 'CAPTURED' | 'REFUNDED' => (refundedAmount >= capturedAmount ? 'REFUNDED' : 'CAPTURED');

/**
 * What the provider has said of an operation that was resolved by hand: nothing definite yet
 * (UNCONFIRMED), or, also of one that was never sent, other than what is recorded (ADR-0099).
 */
export type Confirmation = 'UNCONFIRMED' | 'CONTRADICTED';

/** The confirmation that an outcome needs: each outcome that was resolved by hand needs one. */
export const confirmationAfter = ({ data }: FollowingEvent): Confirmation | undefined =>
  'resolution' in data && data.resolution !== undefined ? 'UNCONFIRMED' : undefined;

/** What is known of the operation that an event names; unresolved: it has an intent, and no outcome. */
type Known = { isUnresolved: boolean; confirmation: Confirmation | undefined };

/**
 * Throws Error where a note does not fit its operation: a provider opens something for one that has
 * no outcome, a resolution is requested of such a one or of a contradicted one, only what is not
 * confirmed is confirmed, and that or an attempt that failed is contradicted.
 */
export const checkNote = (
  { type }: NoteEvent,
  { isUnresolved, confirmation, hasFailed }: Known & { hasFailed: boolean },
): void => {
  const fits = {
    PaymentProviderOpened: isUnresolved,
    PaymentResolutionRequested: isUnresolved || confirmation === 'CONTRADICTED',
    PaymentOutcomeConfirmed: confirmation !== undefined,
    PaymentOutcomeContradicted:
      confirmation === 'UNCONFIRMED' || (confirmation === undefined && hasFailed && !isUnresolved),
  };
  if (!fits[type]) throw new Error(`${type} does not fit its operation`);
};

/**
 * Throws Error where an intent begins an operation that has no outcome yet, or one that was resolved
 * by hand and is not confirmed, and where an outcome has no unresolved intent. A sale is one operation
 * with two outcomes: its PaymentCaptured comes when PaymentAuthorized has ended the create already.
 */
export const checkOperation = (
  event: FollowingEvent,
  { isUnresolved, confirmation, captureNow }: Known & { captureNow: boolean },
): void => {
  if (isIntent(event)) {
    if (isUnresolved || confirmation !== undefined)
      throw new Error(`${event.type} of an operation that has begun already`);
  } else if (!isUnresolved && !(event.type === 'PaymentCaptured' && captureNow)) {
    throw withoutIntent(event);
  }
};

/** The error for an outcome whose operation has no unresolved intent. */
export const withoutIntent = ({ type }: FollowingEvent): Error =>
  new Error(`${type} without an unresolved intent of its operation`);
