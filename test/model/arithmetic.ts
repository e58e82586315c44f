/**
 * What the service has to do, as plain arithmetic: a payment is a status, four sums and a list of
 * finished attempts. It shares no code with the domain (gaps §5, §7).
 */
export type Kind = 'create' | 'capture' | 'void' | 'refund';
export type Status = 'PENDING' | 'AUTHORIZED' | 'CAPTURED' | 'VOIDED' | 'REFUNDED' | 'FAILED';

/** An operation that the provider was asked for; `acted` when it carried it out. */
export type Open = { kind: Kind; amount: number; requested: number | undefined; acted: boolean };

export type Model = {
  status: Status;
  sale: boolean;
  authorized: number;
  captured: number;
  refunded: number;
  /** Type and result of each finished attempt, in order. */
  attempts: string[];
  /** The operation whose outcome nobody knows yet; at most one, for each command asks first. */
  open: Open | undefined;
};

export const newPayment = (sale: boolean): Model => ({
  status: 'PENDING',
  sale,
  authorized: 0,
  captured: 0,
  refunded: 0,
  attempts: [],
  open: undefined,
});

const TYPES = { capture: 'CAPTURE', void: 'VOID', refund: 'REFUND' } as const;
const typeOf = (kind: Kind, sale: boolean): string =>
  kind === 'create' ? (sale ? 'SALE' : 'AUTH') : TYPES[kind];

/** The sum that an operation moves: the one asked for, or all that there is. */
export const amountOf = (payment: Model, kind: Kind, requested: number | undefined): number =>
  requested ?? (kind === 'refund' ? payment.captured - payment.refunded : payment.authorized);

/** Whether the state and the sums allow it. */
export const allows = (payment: Model, kind: Kind, requested: number | undefined): boolean => {
  const amount = amountOf(payment, kind, requested);
  if (kind === 'refund') {
    return (
      payment.status === 'CAPTURED' && amount > 0 && amount <= payment.captured - payment.refunded
    );
  }
  return payment.status === 'AUTHORIZED' && amount <= payment.authorized;
};

/** The operation was carried out. */
export const succeed = (payment: Model, kind: Kind, amount: number): void => {
  payment.attempts.push(`${typeOf(kind, payment.sale)} SUCCEEDED`);
  if (kind === 'create') {
    payment.authorized = amount;
    payment.captured = payment.sale ? amount : 0;
    payment.status = payment.sale ? 'CAPTURED' : 'AUTHORIZED';
  }
  if (kind === 'capture') {
    payment.captured = amount;
    payment.status = 'CAPTURED';
  }
  if (kind === 'void') payment.status = 'VOIDED';
  if (kind === 'refund') {
    payment.refunded += amount;
    if (payment.refunded === payment.captured) payment.status = 'REFUNDED';
  }
};

/** It was declined, or proven never to have been carried out: nothing moved. */
export const fail = (payment: Model, kind: Kind): void => {
  payment.attempts.push(`${typeOf(kind, payment.sale)} FAILED`);
  if (kind === 'create') payment.status = 'FAILED';
};

/** What asking the provider finds out about the open operation. */
export const resolve = (payment: Model): Open | undefined => {
  const { open } = payment;
  if (open === undefined) return undefined;
  payment.open = undefined;
  if (open.acted) succeed(payment, open.kind, open.amount);
  else fail(payment, open.kind);
  return open;
};
