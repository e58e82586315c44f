/**
 * The operations that recovery has to ask about: unresolved, or resolved by hand and not confirmed.
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

/** UNCONFIRMED: resolved by hand. CONTRADICTED: the provider says other than the log (ADR-0099). */
export const OPERATION_STATES = ['UNRESOLVED', 'UNCONFIRMED', 'CONTRADICTED'] as const;

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
  /** Where another provider was sent it than the one that is set, which is not asked. */
  otherProvider?: string;
  /** The first operator's word, which waits for a second's. */
  request?: ResolutionRequest | undefined;
};

/** Also true for a payment that is gone. */
export const isDone = (state: PaymentState | undefined): boolean =>
  unresolvedOperations(state).length + unconfirmedOperations(state).length === 0;

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

/** Leaves out operations that may be in flight. `providers`: the names of the one that is set. */
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
) => {
  const byPayment = new Map<string, Known>();
  /** Equal creates can have run side by side. */
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
    has: (paymentId: string) => byPayment.has(paymentId),
    paymentIds: () => [...byPayment.keys()],
    /** The oldest first. */
    of: (paymentId: string) => byPayment.get(paymentId)?.operations ?? [],
    all: () => [...byPayment.values()].flatMap(({ operations }) => operations),
    /** The payment whose create is unresolved and has this fingerprint. */
    createOf: (fingerprint: string) => byFingerprint.get(fingerprint)?.values().next().value,
  };
};
