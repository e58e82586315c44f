/** Checks a payment's amounts, event by event, as hashes say nothing about them (M2, M3, M8). */
import type { PaymentEvent } from './events.ts';
import type { Minor } from './fields.ts';
import {
  amountsAfter,
  isIntent,
  isLater,
  isNote,
  isOfErasure,
  NO_AMOUNTS,
  type OperationEvent,
} from './transitions.ts';

export type PaymentSums = typeof NO_AMOUNTS & {
  currency: string;
  /** Intents until their last outcome. A list: the engine learns a form for each object of ids. */
  requested: readonly { operationId: string; amount: Minor }[];
};

type Added = { sums: PaymentSums } | { reason: string };

const left = ({ capturedAmount, refundedAmount }: PaymentSums): number =>
  capturedAmount - refundedAmount;

/** The outcome of a capture or void has its intent's amount. */
const moneyReason = (sums: PaymentSums, { type, data }: OperationEvent): string | undefined => {
  const { authorizedAmount: authorized, refundedAmount: refunded } = sums;
  switch (type) {
    case 'PaymentCaptureRequested':
    case 'PaymentCaptureObserved':
      if (data.amount <= authorized) return undefined;
      return `its capture of ${data.amount} is above the authorized ${authorized}`;
    case 'PaymentVoidRequested':
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
      if (data.amount <= refunded) return undefined;
      return `its failed refund of ${data.amount} is above the ${refunded} that was refunded`;
    default:
      return undefined;
  }
};

const releaseReason = (sums: PaymentSums, event: OperationEvent): string | undefined => {
  if (event.type !== 'PaymentCaptured' && event.type !== 'PaymentCaptureObserved') return undefined;
  const { amount, releasedAmount = 0 } = event.data;
  const rest = sums.authorizedAmount - amount;
  if (releasedAmount === rest) return undefined;
  return `it releases ${releasedAmount}, and the rest of the authorization is ${rest}`;
};

const isRequest = (event: OperationEvent): boolean =>
  isIntent(event) && event.type !== 'PaymentCreated';

const requestReason = ({ requested }: PaymentSums, event: OperationEvent): string | undefined => {
  // A later result ends no operation.
  if (isRequest(event) || isLater(event)) return undefined;
  const { operationId, amount } = event.data;
  const expected = requested.findLast((one) => one.operationId === operationId)?.amount;
  if (expected === undefined) return 'no intent of its operation comes before it';
  if (amount === expected) return undefined;
  return `its amount of ${amount} is not the ${expected} that its intent requested`;
};

const reasonOf = (sums: PaymentSums, event: OperationEvent): string | undefined => {
  const { currency } = event.data;
  if (currency !== sums.currency) return `its currency ${currency} is not ${sums.currency}`;
  // A note moves nothing, and comes before or after the outcome of its operation.
  if (isNote(event)) return undefined;
  return requestReason(sums, event) ?? moneyReason(sums, event) ?? releaseReason(sums, event);
};

const requestedAfter = (
  { requested }: PaymentSums,
  event: OperationEvent,
): PaymentSums['requested'] => {
  const { operationId, amount } = event.data;
  if (isRequest(event)) return [...requested, { operationId, amount }];
  // The create's request stays: a sale's PaymentCaptured names the same operation.
  if (event.type === 'PaymentAuthorized' || isLater(event)) return requested;
  return requested.filter((one) => one.operationId !== operationId);
};

const begun = ({ type, data }: PaymentEvent): Added => {
  if (type !== 'PaymentCreated') return { reason: 'its payment has no PaymentCreated before it' };
  const { operationId, amount, currency } = data;
  return { sums: { ...NO_AMOUNTS, currency, requested: [{ operationId, amount }] } };
};

/**
 * A capture is at most the authorization and releases exactly its rest, refunds at most the capture, a void is
 * the whole, an outcome has its intent's amount; else `reason` is given. `sums` is undefined at first.
 */
export const addSums = (sums: PaymentSums | undefined, event: PaymentEvent): Added => {
  if (sums === undefined) return begun(event);
  if (isOfErasure(event)) return { sums };
  const reason = reasonOf(sums, event);
  if (reason !== undefined) return { reason };
  if (isNote(event)) return { sums };
  const requested = requestedAfter(sums, event);
  return { sums: { ...sums, ...amountsAfter(sums, event), requested } };
};
