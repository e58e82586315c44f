import type { KnownDispute, LedgerEntry, ProviderOperationKind } from '../../../providers/port.ts';
import type { RecordedPaymentEvent } from '../../../shared/event-store/fold-stream.ts';
import { type PaymentEvent, paymentOf } from '../../../shared/payment/events.ts';
import { isOfErasure } from '../../../shared/payment/transitions.ts';

/** One without an outcome is unresolved. */
export type Logged = {
  operationId: string;
  paymentId: string;
  kind: ProviderOperationKind;
  /** Minor units: the intent's, or the first other amount among its events. */
  amount: number;
  currency: string;
  revision: number;
  provider?: string;
  /** Made elsewhere; its payment's create says at which provider. */
  isObserved?: true;
  outcome?: 'APPROVED' | 'DECLINED' | 'NOT_SENT' | 'FENCED';
  captured?: true;
  failedLater?: true;
  /** Why an amount of its events is impossible. */
  reason?: string;
};

export const DIFFERENCE_KINDS = [
  'MISSING_AT_PROVIDER',
  'MISSING_IN_LOG',
  'UNREADABLE_IN_LOG',
  /** The log has no outcome yet: recovery or `resolve` will record it. */
  'UNRESOLVED_IN_LOG',
  /** The provider carried out what the log has as never carried out. */
  'NEVER_SENT_IN_LOG',
  'OUTCOME_DIFFERS',
  /** Also an amount that is impossible. */
  'AMOUNT_DIFFERS',
  'OPERATION_DIFFERS',
] as const;

export type Difference = {
  kind: (typeof DIFFERENCE_KINDS)[number];
  operationId: string;
  paymentId: string;
  log?: Omit<Logged, 'operationId' | 'captured' | 'failedLater' | 'isObserved'>;
  provider?:
    | Omit<LedgerEntry, 'operationId' | 'providerReference'>
    | (Pick<KnownDispute, 'kind' | 'amount' | 'currency'> & { outcome: KnownDispute['status'] });
};

/** `seen`: made elsewhere, so that its intent and its outcome are one event. */
type Said = readonly [what: 'begun' | 'ended' | 'seen', kind: ProviderOperationKind];

const SAID: Partial<Record<PaymentEvent['type'], Said>> = {
  PaymentCreated: ['begun', 'AUTHORIZE'],
  PaymentCaptureRequested: ['begun', 'CAPTURE'],
  PaymentVoidRequested: ['begun', 'VOID'],
  PaymentRefundRequested: ['begun', 'REFUND'],
  PaymentAuthorized: ['ended', 'AUTHORIZE'],
  PaymentFailed: ['ended', 'AUTHORIZE'],
  PaymentCaptured: ['ended', 'CAPTURE'],
  PaymentCaptureDeclined: ['ended', 'CAPTURE'],
  PaymentVoided: ['ended', 'VOID'],
  PaymentVoidDeclined: ['ended', 'VOID'],
  PaymentRefunded: ['ended', 'REFUND'],
  PaymentRefundDeclined: ['ended', 'REFUND'],
  PaymentCaptureObserved: ['seen', 'CAPTURE'],
  PaymentVoidObserved: ['seen', 'VOID'],
  PaymentRefundObserved: ['seen', 'REFUND'],
};

/** The provider's own for what was made elsewhere, and for a dispute. */
export const ledgerIdOf = (event: PaymentEvent): string => {
  if (isOfErasure(event)) return '';
  const { type, data } = event;
  if (type === 'PaymentDisputed' || type === 'PaymentDisputeClosed') return data.disputeId;
  if (type === 'PaymentRefundObserved') return data.refundId;
  const isElsewhere = type === 'PaymentCaptureObserved' || type === 'PaymentVoidObserved';
  return isElsewhere ? data.providerReference : data.operationId;
};

export const loggedAfter = (
  own: Logged | undefined,
  { event, revision, stream }: RecordedPaymentEvent,
): Logged | undefined => {
  if (event.type === 'PaymentRefundFailed') return own && { ...own, failedLater: true };
  const said = SAID[event.type];
  if (said === undefined || isOfErasure(event)) return own;
  const [what, named] = said;
  const { amount, currency } = event.data;
  const isSale = event.type === 'PaymentCreated' && event.data.captureNow;
  const kind = isSale ? 'SALE' : named;
  const paymentId = paymentOf(stream) ?? '';
  const begun = { operationId: ledgerIdOf(event), paymentId, kind, amount, currency, revision };
  const provider = 'provider' in event.data ? event.data.provider : undefined;
  if (what === 'begun') return { ...begun, ...(provider !== undefined && { provider }) };
  if (what === 'seen') return { ...begun, outcome: 'APPROVED', isObserved: true };
  // One of no intent, or of an operation that was compared already, is an entry too many.
  const before = own ?? { ...begun, reason: 'no intent of its operation comes before it' };
  const sum = before.reason === undefined ? { amount, currency } : {};
  const outcome = 'outcome' in event.data ? event.data.outcome : 'APPROVED';
  const isCapture = event.type === 'PaymentCaptured';
  return { ...before, ...sum, outcome, ...(isCapture && { captured: true }) };
};

/** An outcome belongs to an intent, which may lie before the window. */
export const isOutcome = ({ type }: PaymentEvent): boolean => SAID[type]?.[0] === 'ended';

export const isAtProvider = ({ outcome }: Logged): boolean =>
  outcome === 'APPROVED' || outcome === 'DECLINED';

const lacksCapture = ({ kind, outcome, captured }: Logged): boolean =>
  kind === 'SALE' && outcome === 'APPROVED' && captured === undefined;

/** A sale ends with two events, any other operation with one. */
export const isComplete = (own: Logged): boolean => own.outcome !== undefined && !lacksCapture(own);

/** Approved in the log, declined at the provider: the refund may have bounced since. */
export const mayHaveBounced = (own: Logged, entry: LedgerEntry): boolean =>
  own.kind === 'REFUND' && own.outcome === 'APPROVED' && entry.outcome === 'DECLINED';

export const differenceKind = (own: Logged, entry: LedgerEntry): Difference['kind'] | undefined => {
  if (own.kind !== entry.kind || own.paymentId !== entry.paymentId) return 'OPERATION_DIFFERS';
  if (own.outcome === undefined) return 'UNRESOLVED_IN_LOG';
  if (!isAtProvider(own)) return 'NEVER_SENT_IN_LOG';
  const hasBounced = own.failedLater === true && mayHaveBounced(own, entry);
  if (own.outcome !== entry.outcome && !hasBounced) return 'OUTCOME_DIFFERS';
  const isSame = own.amount === entry.amount && own.currency === entry.currency;
  return isSame && own.reason === undefined && !lacksCapture(own) ? undefined : 'AMOUNT_DIFFERS';
};

export const differenceOf = (
  kind: Difference['kind'],
  own: Logged | undefined,
  entry: LedgerEntry | undefined,
): Difference => {
  const { operationId = '', paymentId = '' } = own ?? entry ?? {};
  const difference: Difference = { kind, operationId, paymentId };
  if (own !== undefined) {
    const { operationId: _, captured: _c, failedLater: _f, isObserved: _o, ...log } = own;
    difference.log = log;
  }
  if (entry !== undefined) {
    const { operationId: _, providerReference: _r, ...provider } = entry;
    difference.provider = provider;
  }
  return difference;
};
