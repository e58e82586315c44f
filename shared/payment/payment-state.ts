/** What the rules know of a payment, and the questions that they ask of it. */
import type { RequestIdentity } from './event-fields.ts';
import type { FinalOutcome } from './outcome.ts';
import type { EventData } from './payment-events.ts';
import type { PaymentReadModel, PaymentResponse } from './payment-response.ts';
import type { Confirmation } from './transitions.ts';

/** The kinds of operations at the provider. A sale is a create. */
export type OperationKind = 'create' | 'capture' | 'void' | 'refund';

/** One operation at the provider: its intent is stored; its outcome too where `ended` is present. */
export type Operation = {
  kind: OperationKind;
  operationId: string;
  /** From 1. A void carries the authorized amount. */
  amountMinor: number;
  identity: RequestIdentity;
  /** The revision of the intent event. */
  requestedAt: number;
  /** The name of the provider that it was sent to; absent where the intent is older than the names. */
  provider?: string;
  /** What the provider calls it: of a create, as soon as the provider has opened or approved it. */
  reference?: string;
  /** `revision` is that of the last event of the outcome: the response is the fold up to it. */
  ended?: { outcome: FinalOutcome; revision: number };
  /** A refund that was approved, and bounced later. */
  failedLater?: true;
  /**
   * Present from a resolution by hand on, until it is confirmed (ADR-0099); CONTRADICTED also where the
   * provider carried out what is recorded as never sent.
   */
  confirmation?: Confirmation;
  /** Two operators have ended a contradiction: it is not noted again. */
  contradictionEnded?: true;
  /** What one operator requested, and another one has not approved. */
  resolutionRequest?: ResolutionRequest;
};

/** An operator's request to resolve an operation by hand, as it is stored, and when it was made. */
export type ResolutionRequest = Pick<
  EventData<'PaymentResolutionRequested'>,
  'outcome' | 'evidence' | 'withoutFence' | 'requestedBy'
> & { requestedAt: string };

/** A refund that was made elsewhere; `refundId` is the provider's. */
export type ObservedRefund = {
  operationId: string;
  refundId: string;
  amountMinor: number;
  failedLater?: true;
};

/**
 * What a response shows of the payment, and every operation that was ever begun on it, so that a repeat
 * is recognised and an unresolved operation is found. A payment that does not exist has no state.
 */
export type PaymentState = PaymentResponse & {
  merchantId: string;
  operations: Operation[];
  observedRefunds?: ObservedRefund[];
  readModel: PaymentReadModel;
};

/** The operations whose intent is stored and whose outcome is not, oldest first. */
export const unresolvedOperations = (state: PaymentState | undefined): Operation[] =>
  state === undefined ? [] : state.operations.filter((o) => o.ended === undefined);

/** The operations that are not confirmed, or contradicted, oldest first (ADR-0099). */
export const unconfirmedOperations = (state: PaymentState | undefined): Operation[] =>
  state === undefined ? [] : state.operations.filter((o) => o.confirmation !== undefined);

/** Proven never carried out, so that its idempotency key is free again (gaps §7, §8). */
export const isFree = ({ ended }: Operation): boolean =>
  ended?.outcome === 'NOT_SENT' || ended?.outcome === 'FENCED';

/** A request by what it is recognised by: under the current secret, and under the older one. */
export type Recognised = {
  identity: RequestIdentity;
  previousIdentity?: RequestIdentity | undefined;
};

/** True for an operation that was stored under the request's key; false for a request without one. */
export const isUnderKeyOf = (
  { identity: { keyHash } }: Pick<Operation, 'identity'>,
  { identity, previousIdentity }: Recognised,
): boolean =>
  keyHash !== undefined && (keyHash === identity.keyHash || keyHash === previousIdentity?.keyHash);

/** True for an operation that an equal request began. */
export const isOfSameRequest = (
  { identity: { fingerprint } }: Pick<Operation, 'identity'>,
  { identity, previousIdentity }: Recognised,
): boolean => fingerprint === identity.fingerprint || fingerprint === previousIdentity?.fingerprint;

/** The latest operation under the request's key; undefined for none, and for no key. */
export const operationUnder = (state: PaymentState, request: Recognised): Operation | undefined =>
  state.operations.findLast((o) => isUnderKeyOf(o, request));

/** The authorization that a capture, void or refund names to the provider: the create, by its ids. */
export const authorizationOf = (
  state: PaymentState,
): { authorizationId: string; authorizationReference?: string } => {
  const { operationId, reference } = createOf(state);
  return {
    authorizationId: operationId,
    ...(reference !== undefined && { authorizationReference: reference }),
  };
};

/**
 * The name of the provider that the payment is made at: no other one can capture, void or refund it
 * (ADR-0247). Undefined where no event of the payment says so.
 */
export const providerOf = (state: PaymentState): string | undefined =>
  createOf(state).provider ??
  // A change that an older payment's provider carried out; a declined one may have gone astray.
  state.operations.find(({ provider, ended }) => provider && ended?.outcome === 'APPROVED')
    ?.provider;

/** True for a provider that is none of `providers`, the names of the one that is set. */
export const isOtherProvider = (
  provider: string | undefined,
  providers: readonly string[],
): provider is string => provider !== undefined && !providers.includes(provider);

/** The create, which every payment begins with. Throws Error where there is none. */
export const createOf = ({ operations, paymentId }: PaymentState): Operation => {
  const create = operations[0];
  if (create === undefined) throw new Error(`payment ${paymentId} has no create`);
  return create;
};
