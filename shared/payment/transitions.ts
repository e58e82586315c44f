/**
 * The one table of transitions: the status that a payment event needs before it, and the status
 * after it. Both folds read it, the rules' (state.ts) and the response's (response.ts), so that
 * a stream which the rules could not have written is damaged for both (M8, L5).
 */
import type { PaymentEvent, PaymentEventType } from './payment-events.ts';
import type { PaymentStatus } from './payment-status.ts';

/**
 * `from` is undefined for the first event of a stream; `toWhenWhole` is the status after a refund of
 * all that was left.
 */
type Transition = {
  from: PaymentStatus | undefined;
  to: PaymentStatus;
  toWhenWhole?: PaymentStatus;
};

/** What is noted of one operation beside its intent and its outcome. */
export type NoteType =
  | 'PaymentProviderOpened'
  | 'PaymentResolutionRequested'
  | 'PaymentOutcomeConfirmed'
  | 'PaymentOutcomeContradicted';

/**
 * What the provider says later, of a payment that has its outcome (gaps §15): the statuses that it
 * needs before it. `to` is absent where the status stays, or follows from the amounts.
 */
const LATER = {
  PaymentAuthorizationExpired: { from: ['AUTHORIZED'], to: 'VOIDED' },
  PaymentRefundFailed: { from: ['CAPTURED', 'REFUNDED'], to: 'CAPTURED' },
  PaymentRefundObserved: { from: ['CAPTURED'] },
  PaymentDisputed: { from: ['CAPTURED', 'REFUNDED'] },
  PaymentDisputeClosed: { from: ['CAPTURED', 'REFUNDED'] },
} as const satisfies Partial<
  Record<PaymentEventType, { from: readonly PaymentStatus[]; to?: PaymentStatus }>
>;

type LaterType = keyof typeof LATER;
/** See LATER. */
export type LaterEvent = Extract<PaymentEvent, { type: LaterType }>;

/** True for what the provider said later. */
export const isLater = (event: PaymentEvent): event is LaterEvent =>
  Object.hasOwn(LATER, event.type);

/** Throws Error where the status does not allow what the provider said later. */
export const checkLater = ({ type }: LaterEvent, status: PaymentStatus): void => {
  const from: readonly PaymentStatus[] = LATER[type].from;
  if (!from.includes(status)) throw new Error(`${type} cannot follow status ${status}`);
};

/** The table, by event type. A note is not in it: it may follow any status and changes none. */
export const TRANSITIONS = {
  PaymentCreated: { from: undefined, to: 'PENDING' },
  PaymentAuthorized: { from: 'PENDING', to: 'AUTHORIZED' },
  PaymentFailed: { from: 'PENDING', to: 'FAILED' },
  PaymentCaptureRequested: { from: 'AUTHORIZED', to: 'AUTHORIZED' },
  PaymentCaptured: { from: 'AUTHORIZED', to: 'CAPTURED' },
  PaymentCaptureDeclined: { from: 'AUTHORIZED', to: 'AUTHORIZED' },
  PaymentVoidRequested: { from: 'AUTHORIZED', to: 'AUTHORIZED' },
  PaymentVoided: { from: 'AUTHORIZED', to: 'VOIDED' },
  PaymentVoidDeclined: { from: 'AUTHORIZED', to: 'AUTHORIZED' },
  PaymentRefundRequested: { from: 'CAPTURED', to: 'CAPTURED' },
  PaymentRefunded: { from: 'CAPTURED', to: 'CAPTURED', toWhenWhole: 'REFUNDED' },
  PaymentRefundDeclined: { from: 'CAPTURED', to: 'CAPTURED' },
} as const satisfies Record<Exclude<PaymentEventType, NoteType | LaterType>, Transition>;

type FollowingType = Exclude<PaymentEventType, 'PaymentCreated' | NoteType | LaterType>;
/** An intent or an outcome that can follow another event in a stream. */
export type FollowingEvent = Extract<PaymentEvent, { type: FollowingType }>;
/** See NoteType. */
export type NoteEvent = Extract<PaymentEvent, { type: NoteType }>;

/** True for an event that changes no status and no amount. */
export const isNote = (event: PaymentEvent): event is NoteEvent =>
  !Object.hasOwn(TRANSITIONS, event.type) && !isLater(event);

/** The status that an event needs before it. */
type From<T extends FollowingType> = (typeof TRANSITIONS)[T]['from'];

type WithStatus<S, P extends PaymentStatus> = Extract<S, { status: P }>;

const isIn = <S extends { status: PaymentStatus }, P extends PaymentStatus>(
  payment: S,
  status: P,
): payment is WithStatus<S, P> => payment.status === status;

/** The payment, typed by the status that the event needs before it. Throws Error at another status. */
export const inStatusFor = <S extends { status: PaymentStatus }, T extends FollowingType>(
  type: T,
  payment: S,
): WithStatus<S, From<T>> => {
  const from: From<T> = TRANSITIONS[type].from;
  if (isIn(payment, from)) return payment;
  throw new Error(`${type} cannot follow status ${payment.status}`);
};

/** The status after a refund; `refundedAmount` includes it. Both amounts are in minor units. */
export const statusAfterRefund = (
  refundedAmount: number,
  capturedAmount: number,
): 'CAPTURED' | 'REFUNDED' => {
  const { to, toWhenWhole } = TRANSITIONS.PaymentRefunded;
  return refundedAmount >= capturedAmount ? toWhenWhole : to;
};

/**
 * What the provider has said of an operation that was resolved by hand: nothing definite yet
 * (UNCONFIRMED), or, also of one that was never sent, other than what is recorded (ADR-0099).
 */
export type Confirmation = 'UNCONFIRMED' | 'CONTRADICTED';

/** What a fold knows of the operation that an event names. */
type Known = {
  /** The stream has the operation's intent, and no outcome after it. */
  isUnresolved: boolean;
  /** It was resolved by hand, and nobody has confirmed it. */
  isUnconfirmed: boolean;
  captureNow: boolean;
  /** The create's operation id; absent in the response's fold, which keeps no ended operation. */
  createOperationId?: string;
};

/** The types of intents. */
export const INTENTS: readonly PaymentEventType[] = [
  'PaymentCreated',
  'PaymentCaptureRequested',
  'PaymentVoidRequested',
  'PaymentRefundRequested',
];

/** True for an intent, which begins an operation. An event that is no note either is an outcome. */
export const isIntent = ({ type }: PaymentEvent): boolean => INTENTS.includes(type);

/** What an outcome leaves to be confirmed: all that was resolved by hand. */
export const confirmationAfter = ({ data }: FollowingEvent): Confirmation | undefined =>
  'resolution' in data && data.resolution !== undefined ? 'UNCONFIRMED' : undefined;

/**
 * Throws Error where a note does not fit its operation: a provider opens something for one that has
 * no outcome, a resolution is requested of such a one or of a contradicted one, only what is not
 * confirmed is confirmed, and that or an attempt that failed is contradicted. That a refund which was
 * made elsewhere is none of the payment's operations is found by the rules' fold alone.
 */
export const checkNote = (
  { type }: NoteEvent,
  known: { isUnresolved: boolean; confirmation: Confirmation | undefined; hasFailed: boolean },
): void => {
  const fits = {
    PaymentProviderOpened: known.isUnresolved,
    PaymentResolutionRequested: known.isUnresolved || known.confirmation === 'CONTRADICTED',
    PaymentOutcomeConfirmed: known.confirmation !== undefined,
    PaymentOutcomeContradicted:
      known.confirmation === 'UNCONFIRMED' ||
      (known.confirmation === undefined && known.hasFailed && !known.isUnresolved),
  };
  if (!fits[type]) throw new Error(`${type} does not fit its operation`);
};

/**
 * A sale is one operation with two outcome events: PaymentCaptured comes when PaymentAuthorized
 * has ended the create already, and names the create's operation.
 */
const isCaptureOfSale = ({ type, data }: FollowingEvent, known: Known): boolean => {
  const { isUnresolved, captureNow, createOperationId = data.operationId } = known;
  const isOfCreate = data.operationId === createOperationId;
  return type === 'PaymentCaptured' && captureNow && !isUnresolved && isOfCreate;
};

/**
 * Throws Error where an intent begins an operation that has no outcome yet, or one that was resolved
 * by hand and is not confirmed, and where an outcome has no unresolved intent. A capture of a sale under another id than the create's is found only by
 * a fold that gives `createOperationId`.
 */
export const checkOperation = (event: FollowingEvent, known: Known): void => {
  if (isIntent(event)) {
    if (known.isUnresolved || known.isUnconfirmed)
      throw new Error(`${event.type} of an operation that has begun already`);
  } else if (!known.isUnresolved && !isCaptureOfSale(event, known)) {
    throw new Error(`${event.type} without an unresolved intent of its operation`);
  }
};
