/** What an event does to a payment: the one table of statuses (M8, L5), and the one sum of amounts. */
import type { PaymentEvent, PaymentEventType } from './events.ts';
import type { Minor, PaymentStatus } from './fields.ts';

/** Notes of one operation besides its intent and its outcome: they follow any status and change none. */
const NOTES = [
  'PaymentProviderOpened',
  'PaymentAuthenticationRequested',
  'PaymentResolutionRequested',
  'PaymentOutcomeConfirmed',
  'PaymentOutcomeContradicted',
] as const;

/** The intents, by the operation that each begins. */
export const INTENDED = {
  PaymentCreated: 'create',
  PaymentCaptureRequested: 'capture',
  PaymentVoidRequested: 'void',
  PaymentRefundRequested: 'refund',
} as const satisfies Partial<Record<PaymentEventType, string>>;
export const INTENTS = Object.keys(INTENDED) as (keyof typeof INTENDED)[];
/** A sale is a create. */
export type OperationKind = (typeof INTENDED)[keyof typeof INTENDED];

/** No `to`: the status stays, or follows from the amounts. `attempt`: ended by the event, or made elsewhere. */
type Transition = {
  from: readonly PaymentStatus[];
  to?: PaymentStatus;
  attempt?: 'AUTH' | 'CAPTURE' | 'VOID' | 'REFUND';
};

/** Said of a payment that has its outcome: by the provider (gaps §15), or that its time ends (gaps §24). */
const LATER = {
  PaymentAuthorizationExpiring: { from: ['AUTHORIZED'] },
  PaymentAuthorizationExpired: { from: ['AUTHORIZED'], to: 'VOIDED', attempt: 'VOID' },
  PaymentCaptureObserved: { from: ['AUTHORIZED'], to: 'CAPTURED', attempt: 'CAPTURE' },
  PaymentVoidObserved: { from: ['AUTHORIZED'], to: 'VOIDED', attempt: 'VOID' },
  PaymentRefundObserved: { from: ['CAPTURED'], attempt: 'REFUND' },
  PaymentRefundFailed: { from: ['CAPTURED', 'REFUNDED'], to: 'CAPTURED' },
  PaymentDisputed: { from: ['CAPTURED', 'REFUNDED'] },
  PaymentDisputeClosed: { from: ['CAPTURED', 'REFUNDED'] },
} satisfies Partial<Record<PaymentEventType, Transition>>;

/** Of texts about persons; they follow any status and change none. */
const ERASURE = [
  'PaymentErasureRequested',
  'PaymentErasureHeld',
  'PaymentErasureReleased',
  'PaymentPersonalDataErased',
] as const;

type Of<T extends PaymentEventType> = Extract<PaymentEvent, { type: T }>;
export type NoteEvent = Of<(typeof NOTES)[number]>;
export type LaterEvent = Of<keyof typeof LATER>;
export type IntentEvent = Of<(typeof INTENTS)[number]>;
export type ErasureEvent = Of<(typeof ERASURE)[number]>;
/** Any other event is of one operation. */
export type OperationEvent = Exclude<PaymentEvent, ErasureEvent>;
export type OutcomeEvent = Exclude<OperationEvent, NoteEvent | LaterEvent | IntentEvent>;
export type FollowingEvent = Exclude<IntentEvent | OutcomeEvent, { type: 'PaymentCreated' }>;

const NOTED: readonly PaymentEventType[] = NOTES;
export const isNote = (event: PaymentEvent): event is NoteEvent => NOTED.includes(event.type);
export const isLater = (event: PaymentEvent): event is LaterEvent => event.type in LATER;
const OF_ERASURE: readonly PaymentEventType[] = ERASURE;
export const isOfErasure = (event: PaymentEvent): event is ErasureEvent =>
  OF_ERASURE.includes(event.type);
export const isOfOperation = (event: PaymentEvent, operationId: string): boolean =>
  !isOfErasure(event) && event.data.operationId === operationId;
/** An event that is no intent, no note, of no erasure and was not said later is an outcome. */
export const isIntent = (event: PaymentEvent): event is IntentEvent => event.type in INTENDED;

/** By event type; PaymentCreated begins a stream as PENDING. */
export const TRANSITIONS: Readonly<Record<(FollowingEvent | LaterEvent)['type'], Transition>> = {
  PaymentAuthorized: { from: ['PENDING'], to: 'AUTHORIZED', attempt: 'AUTH' },
  PaymentFailed: { from: ['PENDING'], to: 'FAILED', attempt: 'AUTH' },
  PaymentCaptureRequested: { from: ['AUTHORIZED'] },
  PaymentCaptured: { from: ['AUTHORIZED'], to: 'CAPTURED', attempt: 'CAPTURE' },
  PaymentCaptureDeclined: { from: ['AUTHORIZED'], attempt: 'CAPTURE' },
  PaymentVoidRequested: { from: ['AUTHORIZED'] },
  PaymentVoided: { from: ['AUTHORIZED'], to: 'VOIDED', attempt: 'VOID' },
  PaymentVoidDeclined: { from: ['AUTHORIZED'], attempt: 'VOID' },
  PaymentRefundRequested: { from: ['CAPTURED'] },
  PaymentRefunded: { from: ['CAPTURED'], attempt: 'REFUND' },
  PaymentRefundDeclined: { from: ['CAPTURED'], attempt: 'REFUND' },
  ...LATER,
};

/** For what is computed of amounts. */
export const minor = (units: number): Minor => units as Minor;

/** What a payment's events add up to. */
type Amounts = Record<'authorizedAmount' | 'capturedAmount' | 'refundedAmount', Minor>;

export const NO_AMOUNTS: Amounts = {
  authorizedAmount: minor(0),
  capturedAmount: minor(0),
  refundedAmount: minor(0),
};

/** The amounts that an event changes; none for an intent, a note, or a decline. */
export const amountsAfter = (
  { refundedAmount }: Amounts,
  { type, data: { amount } }: OperationEvent,
): Partial<Amounts> => {
  switch (type) {
    case 'PaymentAuthorized':
      return { authorizedAmount: amount };
    case 'PaymentCaptured':
    case 'PaymentCaptureObserved':
      return { capturedAmount: amount };
    case 'PaymentRefunded':
    case 'PaymentRefundObserved':
      return { refundedAmount: minor(refundedAmount + amount) };
    case 'PaymentRefundFailed':
      return { refundedAmount: minor(refundedAmount - amount) };
    default:
      return {};
  }
};

/** The provider on what was resolved by hand: nothing definite yet, or other than is recorded (ADR-0099). */
export type Confirmation = 'UNCONFIRMED' | 'CONTRADICTED';
