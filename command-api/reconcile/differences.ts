/** What one operation is in the log and in the provider's ledger, and what is different between them. */
import type { RecordedPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import type { PaymentEvent } from '../../shared/payment/payment-events.ts';
import { paymentOf } from '../../shared/payment/payment-events.ts';
import { isLater, isNote } from '../../shared/payment/transitions.ts';
import type { LedgerEntry, ProviderOperationKind } from '../provider/port.ts';

/** What the log says about an operation; one without an outcome is unresolved. */
export type Logged = {
  operationId: string;
  paymentId: string;
  kind: ProviderOperationKind;
  /** In minor units: the intent's, or that of the first of its events with another one. */
  amount: number;
  currency: string;
  /** The revision of the intent. */
  revision: number;
  /** The name of the provider that it was sent to, where the intent says so. */
  provider?: string;
  /** A refund that was made elsewhere: what it was made at stands in its payment's create. */
  isObserved?: true;
  outcome?: 'APPROVED' | 'DECLINED' | 'NOT_SENT' | 'FENCED';
  /** A sale's second event, PaymentCaptured, has been read. */
  captured?: true;
  /** A refund that was approved, and bounced later. */
  failedLater?: true;
  /** The first sum of its events that cannot be, in words. */
  reason?: string;
};

export const DIFFERENCE_KINDS = [
  /** The log has an outcome that the provider does not know of. */
  'MISSING_AT_PROVIDER',
  /** The provider carried out what the log never requested. */
  'MISSING_IN_LOG',
  /** The provider carried it out, and the log's events of this payment cannot be read. */
  'UNREADABLE_IN_LOG',
  /** The provider knows the outcome, the log does not (yet): recovery or `resolve` will record it. */
  'UNRESOLVED_IN_LOG',
  /** The log says that it was never carried out; the provider did. */
  'NEVER_SENT_IN_LOG',
  'OUTCOME_DIFFERS',
  /** A sum of one of its events is not the provider's, or cannot be. */
  'AMOUNT_DIFFERS',
  /** The operation has another kind or belongs to another payment there. */
  'OPERATION_DIFFERS',
] as const;

/** One operation that log and ledger do not agree on; a side that does not know it is left out. */
export type Difference = {
  kind: (typeof DIFFERENCE_KINDS)[number];
  operationId: string;
  paymentId: string;
  log?: Omit<Logged, 'operationId' | 'captured' | 'failedLater' | 'isObserved'>;
  provider?: Omit<LedgerEntry, 'operationId' | 'providerReference'>;
};

const INTENTS: Partial<Record<PaymentEvent['type'], ProviderOperationKind>> = {
  PaymentCaptureRequested: 'CAPTURE',
  PaymentVoidRequested: 'VOID',
  PaymentRefundRequested: 'REFUND',
};

const kindOfIntent = ({ type, data }: PaymentEvent): ProviderOperationKind | undefined => {
  if (type === 'PaymentCreated') return data.captureNow ? 'SALE' : 'AUTHORIZE';
  return INTENTS[type];
};

const APPROVALS = ['PaymentAuthorized', 'PaymentCaptured', 'PaymentVoided', 'PaymentRefunded'];

const outcomeOf = ({ type, data }: PaymentEvent): Logged['outcome'] => {
  if (APPROVALS.includes(type)) return 'APPROVED';
  return 'outcome' in data ? data.outcome : undefined;
};

/**
 * What the provider's ledger calls the operation of an event: a refund that was made elsewhere has no
 * operation id of ours there.
 */
export const ledgerIdOf = ({ type, data }: PaymentEvent): string =>
  type === 'PaymentRefundObserved' ? data.refundId : data.operationId;

/** What is known of the operation that an event names, after it; undefined without its intent. */
export const loggedAfter = (
  own: Logged | undefined,
  { event, revision, stream }: RecordedPaymentEvent,
): Logged | undefined => {
  const { operationId, amount, currency } = event.data;
  const kind = kindOfIntent(event);
  if (kind !== undefined) {
    const provider = 'provider' in event.data ? event.data.provider : undefined;
    const own = {
      operationId,
      paymentId: paymentOf(stream) ?? '',
      kind,
      amount,
      currency,
      revision,
    };
    return provider === undefined ? own : { ...own, provider };
  }
  if (event.type === 'PaymentRefundObserved') {
    const about = { paymentId: paymentOf(stream) ?? '', kind: 'REFUND' as const };
    const operationId = ledgerIdOf(event);
    const outcome = 'APPROVED';
    return { operationId, ...about, amount, currency, revision, outcome, isObserved: true };
  }
  if (event.type === 'PaymentRefundFailed') return own && { ...own, failedLater: true };
  const outcome = outcomeOf(event);
  if (own === undefined || outcome === undefined || isNote(event) || isLater(event)) return own;
  const isCapture = event.type === 'PaymentCaptured';
  const sum = own.reason === undefined ? { amount, currency } : {};
  return { ...own, ...sum, outcome, ...(isCapture ? { captured: true } : {}) };
};

/** The provider moved money, or declined to: its ledger has an entry. */
export const isAtProvider = ({ outcome }: Logged): boolean =>
  outcome === 'APPROVED' || outcome === 'DECLINED';

const lacksCapture = ({ kind, outcome, captured }: Logged): boolean =>
  kind === 'SALE' && outcome === 'APPROVED' && captured === undefined;

/** No event of the operation follows: a sale ends with two events, any other operation with one. */
export const isWhole = (own: Logged): boolean => own.outcome !== undefined && !lacksCapture(own);

/** A refund that the log calls approved and the provider declined: it may have bounced since. */
export const mayHaveBounced = (own: Logged, entry: LedgerEntry): boolean =>
  own.kind === 'REFUND' && own.outcome === 'APPROVED' && entry.outcome === 'DECLINED';

/** What is different between the two, if anything. */
export const differenceKind = (own: Logged, entry: LedgerEntry): Difference['kind'] | undefined => {
  if (own.kind !== entry.kind || own.paymentId !== entry.paymentId) return 'OPERATION_DIFFERS';
  if (own.outcome === undefined) return 'UNRESOLVED_IN_LOG';
  if (!isAtProvider(own)) return 'NEVER_SENT_IN_LOG';
  const hasBounced = own.failedLater === true && mayHaveBounced(own, entry);
  if (own.outcome !== entry.outcome && !hasBounced) return 'OUTCOME_DIFFERS';
  const isSame = own.amount === entry.amount && own.currency === entry.currency;
  return isSame && own.reason === undefined && !lacksCapture(own) ? undefined : 'AMOUNT_DIFFERS';
};

/** The difference as it is shown; at least one side is given. */
export const differenceOf = (
  kind: Difference['kind'],
  own: Logged | undefined,
  entry: LedgerEntry | undefined,
): Difference => {
  const { operationId: _, captured: __, failedLater: ___, ...known } = own ?? ({} as Logged);
  const { isObserved: ____, ...log } = known;
  const {
    operationId: _____,
    providerReference: ______,
    ...provider
  } = entry ?? ({} as LedgerEntry);
  return {
    kind,
    operationId: own?.operationId ?? entry?.operationId ?? '',
    paymentId: own?.paymentId ?? entry?.paymentId ?? '',
    ...(own === undefined ? {} : { log }),
    ...(entry === undefined ? {} : { provider }),
  };
};
