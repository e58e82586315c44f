/** The state of a payment, and the questions that the rules ask of it. */
import type { EventData, PaymentEventType } from './events.ts';
import type { Minor, PersonalGroup, RequestIdentity } from './fields.ts';
import type { OpenedText, SealedPayment } from './response.ts';
import { type Confirmation, minor, type OperationKind } from './transitions.ts';

/** One payment in the read models: its response, and what the next event needs. */
export type PaymentReadModel = SealedPayment & {
  merchantId: string;
  /** Of the create; `erasedAt` alone once it was erased. */
  personal: EventData<'PaymentCreated'>['personal'] & { erasedAt?: string };
  /** Of the last event in it, from 0. */
  revision: number;
  /**
   * Recovery asks the provider about these, oldest first: intents without an outcome, with their time; and with
   * `confirmation` unconfirmed operations that were resolved by hand, with their outcome's time.
   */
  unresolved: UnresolvedIntent[];
};

/**
 * Opens what an event of the type has in a field (personal-data/opener.ts): at the edge alone, never while the
 * log is followed. Never throws.
 */
export type OpenText = <T>(
  stored: {
    box?: string | undefined;
    key?: string | undefined;
    clear?: T | undefined;
    erasedAt?: string;
  },
  place: { paymentId: string; type: PaymentEventType; field: string },
) => Promise<OpenedText<T>>;

export const openPersonal = (
  open: OpenText,
  { personal, paymentId }: Pick<PaymentReadModel, 'personal' | 'paymentId'>,
): Promise<OpenedText<PersonalGroup>> =>
  open(personal, { paymentId, type: 'PaymentCreated', field: 'personal' });

export type UnresolvedIntent = {
  operationId: string;
  amount: Minor;
  since: string;
  confirmation?: Confirmation;
  /** The provider waits for the shopper until then (gaps §21). */
  waitsUntil?: string;
};

/** One operation at the provider: it has its outcome where `ended` is present. */
export type Operation = {
  kind: OperationKind;
  operationId: string;
  /** From 1. A void carries the authorized amount. */
  amount: Minor;
  identity: RequestIdentity;
  /** The revision of the intent. */
  requestedAt: number;
  /** The provider that it was sent to; absent where the intent is older than the names. */
  provider?: string | undefined;
  /** The provider's name for it: of a create, as soon as the provider has opened or approved it. */
  reference?: string;
  /** The provider may ask for the shopper, or has asked (gaps §21). */
  authentication?: true;
  /** The provider waits, or waited, for the shopper until then: a time, UTC. */
  waitsUntil?: string;
  /** `revision` is that of the outcome's last event: the response is the fold up to it. */
  ended?: { outcome: 'APPROVED' | EventData<'PaymentFailed'>['outcome']; revision: number };
  /** A refund that was approved, and bounced later. */
  failedLater?: true;
  /** A create whose merchant was told that its authorization ends soon (gaps §24). */
  noticedExpiring?: true;
  /** Until it is confirmed: resolved by hand, or recorded as never sent and yet carried out (ADR-0099). */
  confirmation?: Confirmation | undefined;
  /** Two operators have ended a contradiction: it is not noted again. */
  contradictionEnded?: true;
  resolutionRequest?: ResolutionRequest | undefined;
};

/** One operator's request to resolve by hand, which another one has not approved. */
export type ResolutionRequest = Pick<
  EventData<'PaymentResolutionRequested'>,
  'outcome' | 'evidence' | 'withoutFence' | 'requestedBy'
> & { requestedAt: string };

/** Made elsewhere; `refundId` is the provider's. */
export type ObservedRefund = {
  operationId: string;
  refundId: string;
  amount: Minor;
  failedLater?: true;
};

/** The read model and all operations ever begun, so that repeats are recognised and unresolved ones found. */
export type PaymentState = PaymentReadModel & {
  operations: Operation[];
  observedRefunds: ObservedRefund[];
  erasure: ErasureState;
};

/** `keys` open what is sealed of the payment; `hasClear`: version 1 stored some of it in the clear. */
export type ErasureState = {
  keys: readonly string[];
  hasClear: boolean;
  /** The ticket of a hold. */
  heldBy?: string | undefined;
  requested?: EventData<'PaymentErasureRequested'> & { at: string };
};

export const unresolvedOperations = (state: PaymentState | undefined): Operation[] =>
  state === undefined ? [] : state.operations.filter((o) => o.ended === undefined);

/** Not confirmed, or contradicted (ADR-0099); oldest first. */
export const unconfirmedOperations = (state: PaymentState | undefined): Operation[] =>
  state === undefined ? [] : state.operations.filter((o) => o.confirmation !== undefined);

type Refunds = Pick<PaymentState, 'operations' | 'observedRefunds'>;

/** The refunds that count as given back: approved, or made elsewhere, and not bounced. */
export const refundsOf = ({ operations, observedRefunds }: Refunds) =>
  [
    ...operations.filter((o) => o.kind === 'refund' && o.ended?.outcome === 'APPROVED'),
    ...observedRefunds,
  ].filter((o) => !o.failedLater);

/** Undefined for any other id. By the whole operation id: transactions show a part of it alone. */
export const amountOfRefund = (refunds: Refunds, operationId: string): Minor | undefined =>
  refundsOf(refunds).find((o) => o.operationId === operationId)?.amount;

/** Recorded as never carried out: an approval contradicts that, whatever the payment waited for (gaps §16, §21). */
export const isNeverCarriedOut = ({ ended }: Pick<Operation, 'ended'>): boolean =>
  ended?.outcome === 'NOT_SENT' || ended?.outcome === 'FENCED';

/** Its key is free again (gaps §7, §8), but not by a fence after the shopper's time: a decline (gaps §21). */
export const isFree = (operation: Operation): boolean =>
  operation.waitsUntil === undefined && isNeverCarriedOut(operation);

/** A request's identity under the current secret, and under the older one while it changes (ADR-0105). */
export type Recognised = {
  identity: RequestIdentity;
  previousIdentity?: RequestIdentity | undefined;
};

/** False for a request without a key. */
export const isUnderKeyOf = (
  { identity: { keyHash } }: Pick<Operation, 'identity'>,
  { identity, previousIdentity }: Recognised,
): boolean =>
  keyHash !== undefined && (keyHash === identity.keyHash || keyHash === previousIdentity?.keyHash);

export const isOfSameRequest = (
  { identity: { fingerprint } }: Pick<Operation, 'identity'>,
  { identity, previousIdentity }: Recognised,
): boolean => fingerprint === identity.fingerprint || fingerprint === previousIdentity?.fingerprint;

/** The latest operation under the request's key; undefined for none, and for no key. */
export const operationUnder = (state: PaymentState, request: Recognised): Operation | undefined =>
  state.operations.findLast((o) => isUnderKeyOf(o, request));

/** A capture, void or refund names its authorization to the provider by the ids of the create. */
export const authorizationOf = (
  state: PaymentState,
): { authorizationId: string; authorizationReference?: string | undefined } => {
  const { operationId, reference } = createOf(state);
  return { authorizationId: operationId, authorizationReference: reference };
};

/** No other provider can change the payment (ADR-0247). Undefined where no event names one. */
export const providerOf = (state: PaymentState): string | undefined =>
  createOf(state).provider ??
  // A change that an older payment's provider carried out; a declined one may have gone astray.
  state.operations.find(({ provider, ended }) => provider && ended?.outcome === 'APPROVED')
    ?.provider;

export const isOtherProvider = (
  provider: string | undefined,
  providers: readonly string[],
): provider is string => provider !== undefined && !providers.includes(provider);

/** Every payment begins with it. Throws Error where there is none. */
export const createOf = ({ operations, paymentId }: PaymentState): Operation => {
  const create = operations[0];
  if (create === undefined) throw new Error(`payment ${paymentId} has no create`);
  return create;
};

/** An intent that waits for the shopper is not unresolved (gaps §21). */
export const intentsWithoutOutcome = ({
  unresolved,
}: Pick<PaymentReadModel, 'unresolved'>): UnresolvedIntent[] =>
  unresolved.filter((o) => o.confirmation === undefined && o.waitsUntil === undefined);

const sumOf = (all: readonly { amount: Minor }[]): number =>
  all.reduce((total, { amount }) => total + amount, 0);

/** Captured − refunded − refunds in flight; before a capture its intent makes that less than 0. */
export const leftOfCapture = (payment: PaymentReadModel): Minor => {
  const { capturedAmount, refundedAmount } = payment;
  return minor(capturedAmount - refundedAmount - sumOf(intentsWithoutOutcome(payment)));
};

/** The most that a refund may give back: disputes that were lost took their part. */
export const refundableAmount = (payment: PaymentReadModel): Minor => {
  const lost = payment.disputes?.filter(({ status }) => status === 'LOST') ?? [];
  return minor(Math.max(0, leftOfCapture(payment) - sumOf(lost)));
};

// Measured: 1.8 MB for a payment of 2,001 events with its state.
const EVENT_BYTES = 1_000;
const READ_MODEL_BYTES = 4_000;
const TRANSACTION_BYTES = 400;
const ITEM_BYTES = 1_200;
const METADATA_BYTES = 600;

/** About how many bytes a read model takes in a cache (ADR-0112). */
export const bytesOfReadModel = (payment: PaymentReadModel): number =>
  READ_MODEL_BYTES +
  (payment.transactions.length + (payment.disputes?.length ?? 0) + payment.unresolved.length) *
    TRANSACTION_BYTES +
  (payment.productItems?.length ?? 0) * ITEM_BYTES +
  Object.keys(payment.metadata ?? {}).length * METADATA_BYTES;

/** About how many bytes a payment takes with all its events and its state. */
export const bytesOfPayment = (payment: {
  events: readonly unknown[];
  state: PaymentReadModel;
}): number => payment.events.length * EVENT_BYTES + bytesOfReadModel(payment.state);
