/**
 * What the service has to do, as plain arithmetic: a payment is a status, three amounts and a list of
 * finished attempts. It shares no code with the domain (gaps §5, §7).
 */
export type Kind = 'create' | 'capture' | 'void' | 'refund';
export type Status = 'PENDING' | 'AUTHORIZED' | 'CAPTURED' | 'VOIDED' | 'REFUNDED' | 'FAILED';

/**
 * An operation with an unknown outcome. `requestAmount` is the amount of its request, if that named
 * one; `acted` is true when the provider carried it out.
 */
export type Unresolved = {
  kind: Kind;
  amount: number;
  requestAmount: number | undefined;
  acted: boolean;
};

export type Model = {
  status: Status;
  sale: boolean;
  authorized: number;
  captured: number;
  refunded: number;
  /** Type and result of each finished attempt, in order. */
  attempts: string[];
  /** The refunds that stand: their place among the attempts, and their amount. */
  refunds: { at: number; amount: number }[];
  /** Whether the provider knows that refunds of this payment bounce. */
  bounces: boolean;
  disputes: { amount: number; status: 'OPEN' | 'WON' | 'LOST' }[];
  /** The unresolved operation; at most one, for each command looks it up first. */
  unresolved: Unresolved | undefined;
};

export const newPayment = (sale: boolean, bounces: boolean): Model => ({
  status: 'PENDING',
  sale,
  authorized: 0,
  captured: 0,
  refunded: 0,
  attempts: [],
  refunds: [],
  bounces,
  disputes: [],
  unresolved: undefined,
});

const TYPES = { capture: 'CAPTURE', void: 'VOID', refund: 'REFUND' } as const;
const typeOf = (kind: Kind, sale: boolean): string =>
  kind === 'create' ? (sale ? 'SALE' : 'AUTH') : TYPES[kind];

/** What may still be given back: a dispute that was lost has taken its amount. */
const refundable = ({ captured, refunded, disputes }: Model): number =>
  disputes
    .filter(({ status }) => status === 'LOST')
    .reduce((left, { amount }) => Math.max(0, left - amount), captured - refunded);

/** The amount that an operation moves: that of the request, or all that is left. */
export const amountOf = (payment: Model, kind: Kind, requestAmount: number | undefined): number =>
  requestAmount ?? (kind === 'refund' ? refundable(payment) : payment.authorized);

/** Whether the status and the amounts allow an operation. */
export const allows = (payment: Model, kind: Kind, requestAmount: number | undefined): boolean => {
  const amount = amountOf(payment, kind, requestAmount);
  if (kind === 'refund') {
    const isDisputed = payment.disputes.some(({ status }) => status === 'OPEN');
    const isLeft = amount > 0 && amount <= refundable(payment);
    return payment.status === 'CAPTURED' && !isDisputed && isLeft;
  }
  return payment.status === 'AUTHORIZED' && amount <= payment.authorized;
};

/** The provider carried the operation out. */
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
    payment.refunds.push({ at: payment.attempts.length - 1, amount });
    payment.refunded += amount;
    if (payment.refunded === payment.captured) payment.status = 'REFUNDED';
  }
};

/** The operation was declined, or proven never to have been carried out: no money moved. */
export const fail = (payment: Model, kind: Kind): void => {
  payment.attempts.push(`${typeOf(kind, payment.sale)} FAILED`);
  if (kind === 'create') payment.status = 'FAILED';
};

/** The authorization ran out. */
export const expire = (payment: Model): void => {
  payment.attempts.push('VOID SUCCEEDED');
  payment.status = 'VOIDED';
};

/** The last refund that stands did not arrive after all; gives its place among the attempts. */
export const bounce = (payment: Model): number | undefined => {
  if (!payment.bounces) return undefined;
  const bounced = payment.refunds.pop();
  if (bounced === undefined) return undefined;
  payment.attempts[bounced.at] = 'REFUND FAILED';
  payment.refunded -= bounced.amount;
  payment.status = 'CAPTURED';
  return bounced.at;
};

/** Looks the unresolved operation up at the provider, and gives it. */
export const resolve = (payment: Model): Unresolved | undefined => {
  const { unresolved } = payment;
  if (unresolved === undefined) return undefined;
  payment.unresolved = undefined;
  if (unresolved.acted) succeed(payment, unresolved.kind, unresolved.amount);
  else fail(payment, unresolved.kind);
  return unresolved;
};
