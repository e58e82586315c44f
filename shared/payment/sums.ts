/** A payment's sums, event by event: hashes say nothing about amounts (M2, M3, M8). Minor units. */
import type { PaymentEvent } from './events.ts';
import { isIntent, isLater, isNote } from './transitions.ts';

export type PaymentSums = {
  currency: string;
  authorized: number;
  captured: number;
  refunded: number;
  /** Intents until their last outcome. A list: the engine learns a form for each object of ids. */
  requested: readonly { operationId: string; amount: number }[];
};

type Added = { sums: PaymentSums } | { reason: string };

const without = (sums: PaymentSums, operationId: string): PaymentSums => ({
  ...sums,
  requested: sums.requested.filter((one) => one.operationId !== operationId),
});

const left = ({ captured, refunded }: PaymentSums): number => captured - refunded;

const moneyReason = (sums: PaymentSums, { type, data }: PaymentEvent): string | undefined => {
  const { authorized } = sums;
  switch (type) {
    case 'PaymentCaptureRequested':
    case 'PaymentCaptured':
    case 'PaymentCaptureObserved':
      if (data.amount <= authorized) return undefined;
      return `its capture of ${data.amount} is above the authorized ${authorized}`;
    case 'PaymentVoidRequested':
    case 'PaymentVoided':
    case 'PaymentVoidObserved':
      if (data.amount === authorized) return undefined;
      return `its void of ${data.amount} is not the authorized ${authorized}`;
    case 'PaymentRefundRequested':
    case 'PaymentRefunded':
    case 'PaymentRefundObserved':
      if (data.amount <= left(sums)) return undefined;
      return `its refund of ${data.amount} is above the ${left(sums)} that are left of the capture`;
    case 'PaymentAuthorizationExpired':
      if (data.amount === authorized) return undefined;
      return `its expiry of ${data.amount} is not the authorized ${authorized}`;
    case 'PaymentRefundFailed':
      if (data.amount <= sums.refunded) return undefined;
      return `its failed refund of ${data.amount} is above the ${sums.refunded} that was refunded`;
    default:
      return undefined;
  }
};

const releaseReason = (sums: PaymentSums, event: PaymentEvent): string | undefined => {
  if (event.type !== 'PaymentCaptured' && event.type !== 'PaymentCaptureObserved') return undefined;
  const { amount, releasedAmount = 0 } = event.data;
  const rest = sums.authorized - amount;
  if (releasedAmount === rest) return undefined;
  return `it releases ${releasedAmount}, and the rest of the authorization is ${rest}`;
};

const isRequest = (event: PaymentEvent): boolean =>
  isIntent(event) && event.type !== 'PaymentCreated';

const requestReason = ({ requested }: PaymentSums, event: PaymentEvent): string | undefined => {
  // A later result ends no operation.
  if (isRequest(event) || isLater(event)) return undefined;
  const { operationId, amount } = event.data;
  const expected = requested.findLast((one) => one.operationId === operationId)?.amount;
  if (expected === undefined) return 'no intent of its operation comes before it';
  if (amount === expected) return undefined;
  return `its amount of ${amount} is not the ${expected} that its intent requested`;
};

const reasonOf = (sums: PaymentSums, event: PaymentEvent): string | undefined => {
  const { currency } = event.data;
  if (currency !== sums.currency) return `its currency ${currency} is not ${sums.currency}`;
  // A note moves nothing, and comes before or after the outcome of its operation.
  if (isNote(event)) return undefined;
  return requestReason(sums, event) ?? moneyReason(sums, event) ?? releaseReason(sums, event);
};

const after = (sums: PaymentSums, event: PaymentEvent): PaymentSums => {
  if (isNote(event)) return sums;
  const { type, data } = event;
  const { operationId, amount } = data;
  if (isRequest(event)) return { ...sums, requested: [...sums.requested, { operationId, amount }] };
  switch (type) {
    case 'PaymentAuthorized':
      // The create's request stays: a sale's PaymentCaptured names the same operation.
      return { ...sums, authorized: amount };
    case 'PaymentCaptured':
      return { ...without(sums, operationId), captured: amount };
    case 'PaymentCaptureObserved':
      return { ...sums, captured: amount };
    case 'PaymentRefunded':
      return { ...without(sums, operationId), refunded: sums.refunded + amount };
    case 'PaymentRefundObserved':
      return { ...sums, refunded: sums.refunded + amount };
    case 'PaymentRefundFailed':
      return { ...sums, refunded: sums.refunded - amount };
    default:
      return isLater(event) ? sums : without(sums, operationId);
  }
};

const begun = ({ type, data }: PaymentEvent): Added => {
  if (type !== 'PaymentCreated') return { reason: 'its payment has no PaymentCreated before it' };
  const { operationId, amount, currency } = data;
  const requested = [{ operationId, amount }];
  return { sums: { currency, authorized: 0, captured: 0, refunded: 0, requested } };
};

/**
 * A capture is at most the authorization and releases exactly its rest, refunds are at most the capture,
 * a void is the whole authorization, and each outcome has the amount of its intent; else `reason` says
 * in words what does not fit. `sums` is undefined before the first event.
 */
export const addSums = (sums: PaymentSums | undefined, event: PaymentEvent): Added => {
  if (sums === undefined) return begun(event);
  const reason = reasonOf(sums, event);
  return reason === undefined ? { sums: after(sums, event) } : { reason };
};
