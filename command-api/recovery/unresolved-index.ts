/**
 * The operations that this process knows recovery has to ask about, by payment: those that are
 * unresolved, and those that were resolved by hand and are not confirmed. An operator's list, the
 * metrics and the joining of equal creates are made from it.
 */
import {
  isOtherProvider,
  type Operation,
  type OperationKind,
  type PaymentState,
  type ResolutionRequest,
  unconfirmedOperations,
  unresolvedOperations,
} from '../../shared/payment/payment-state.ts';
import { type InFlight, intentTimeOf } from '../in-flight.ts';
import type { LoadedPayment } from '../loaded-payment.ts';

/** UNCONFIRMED: resolved by hand. CONTRADICTED by the provider: resolved by hand, or never sent (ADR-0099). */
export const OPERATION_STATES = ['UNRESOLVED', 'UNCONFIRMED', 'CONTRADICTED'] as const;

/** An operation that the provider is to be asked about: its call has ended. */
export type KnownOperation = {
  paymentId: string;
  merchantId: string;
  state: (typeof OPERATION_STATES)[number];
  operation: OperationKind;
  operationId: string;
  amountMinor: number;
  currency: string;
  /** The time of its intent. */
  since: string;
  /** The name of the provider that it was sent to, where another one is set: nobody asks about it. */
  otherProvider?: string;
  /** An operator's word that waits for another one's. */
  request?: ResolutionRequest | undefined;
};

/** True where nothing of the payment is left to be asked about; also for a payment that is gone. */
export const isDone = (state: PaymentState | undefined): boolean =>
  unresolvedOperations(state).length + unconfirmedOperations(state).length === 0;

export type UnresolvedIndex = {
  /** Replaces what is known of the payment; an operation that may be in flight is left out. */
  put(payment: LoadedPayment): void;
  delete(paymentId: string): void;
  has(paymentId: string): boolean;
  paymentIds(): string[];
  /** The operations of one payment, the oldest first. */
  of(paymentId: string): readonly KnownOperation[];
  all(): KnownOperation[];
  /** The payment whose create is unresolved and has this fingerprint. */
  createOf(fingerprint: string): string | undefined;
};

type Known = { operations: KnownOperation[]; createFingerprint: string | undefined };

const knownOf = (
  payment: LoadedPayment,
  operation: Operation,
  providers: readonly string[],
): KnownOperation => ({
  paymentId: payment.state.paymentId,
  merchantId: payment.state.merchantId,
  operation: operation.kind,
  operationId: operation.operationId,
  amountMinor: operation.amountMinor,
  currency: payment.state.currency,
  state: operation.confirmation ?? 'UNRESOLVED',
  since: intentTimeOf(payment, operation),
  ...(isOtherProvider(operation.provider, providers) && { otherProvider: operation.provider }),
  ...(operation.resolutionRequest && { request: operation.resolutionRequest }),
});

/** Of one payment; an operation that may be in flight is left out. `providers`: of the one that is set. */
export const knownOperations = (
  payment: LoadedPayment,
  { mayRun }: Pick<InFlight, 'mayRun'>,
  providers: readonly string[],
): KnownOperation[] =>
  [...unresolvedOperations(payment.state), ...unconfirmedOperations(payment.state)]
    .filter((one) => one.ended !== undefined || !mayRun(payment, one))
    .map((one) => knownOf(payment, one, providers));

export const createUnresolvedIndex = (
  inFlight: Pick<InFlight, 'mayRun'>,
  providers: readonly string[],
): UnresolvedIndex => {
  const byPayment = new Map<string, Known>();
  /** Payments by the fingerprint of their create: equal creates can have run side by side. */
  const byFingerprint = new Map<string, Set<string>>();

  const remove = (paymentId: string): void => {
    const fingerprint = byPayment.get(paymentId)?.createFingerprint;
    byPayment.delete(paymentId);
    if (fingerprint === undefined) return;
    const equal = byFingerprint.get(fingerprint);
    equal?.delete(paymentId);
    if (equal?.size === 0) byFingerprint.delete(fingerprint);
  };

  const put = (payment: LoadedPayment): void => {
    const { paymentId } = payment.state;
    remove(paymentId);
    const operations = knownOperations(payment, inFlight, providers);
    if (operations.length === 0) return;
    const isUnresolvedCreate = operations.some(
      ({ operation, state }) => operation === 'create' && state === 'UNRESOLVED',
    );
    const [first] = payment.state.operations;
    const create = isUnresolvedCreate ? first?.identity.fingerprint : undefined;
    byPayment.set(paymentId, { operations, createFingerprint: create });
    if (create !== undefined)
      byFingerprint.set(create, (byFingerprint.get(create) ?? new Set()).add(paymentId));
  };

  return {
    put,
    delete: remove,
    has: (paymentId) => byPayment.has(paymentId),
    paymentIds: () => [...byPayment.keys()],
    of: (paymentId) => byPayment.get(paymentId)?.operations ?? [],
    all: () => [...byPayment.values()].flatMap(({ operations }) => operations),
    createOf: (fingerprint) => byFingerprint.get(fingerprint)?.values().next().value,
  };
};
