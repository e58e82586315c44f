/**
 * The unresolved operations that this process knows of, by payment: what an operator's list, the
 * metrics and the joining of equal creates are made from.
 */
import {
  type Operation,
  type OperationKind,
  unresolvedOperations,
} from '../../shared/payment/state.ts';
import { type InFlight, intentTimeOf } from '../in-flight.ts';
import type { LoadedPayment } from '../payment-log.ts';

/** An operation whose call has ended without an outcome. */
export type KnownOperation = {
  paymentId: string;
  merchantId: string;
  operation: OperationKind;
  operationId: string;
  amountMinor: number;
  /** The time of its intent. */
  since: string;
};

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

const knownOf = (payment: LoadedPayment, operation: Operation): KnownOperation => ({
  paymentId: payment.state.paymentId,
  merchantId: payment.state.merchantId,
  operation: operation.kind,
  operationId: operation.operationId,
  amountMinor: operation.amountMinor,
  since: intentTimeOf(payment, operation),
});

export const createUnresolvedIndex = (inFlight: Pick<InFlight, 'mayRun'>): UnresolvedIndex => {
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
    const unresolved = unresolvedOperations(payment.state).filter(
      (operation) => !inFlight.mayRun(payment, operation),
    );
    if (unresolved.length === 0) return;
    const create = unresolved.find(({ kind }) => kind === 'create')?.identity.fingerprint;
    const operations = unresolved.map((operation) => knownOf(payment, operation));
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
