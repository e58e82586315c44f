/** What the provider said later, as a response shows it (gaps §15). */
import type { EventData } from './payment-events.ts';
import {
  attempt,
  type Dispute,
  failureOf,
  intentsWithoutOutcome,
  leftToRefund,
  type PaymentReadModel,
  type PaymentResponse,
  refundableAmount,
  type Transaction,
  transactionId,
  type UnresolvedIntents,
} from './payment-response.ts';
import { checkLater, type LaterEvent, statusAfterRefund } from './transitions.ts';

/** The read model after what the provider said later. Throws Error where it does not fit, as evolve does. */
export const afterLater = (
  readModel: PaymentReadModel,
  event: LaterEvent,
  time: string,
): PaymentReadModel => {
  const { unresolved, response: before, merchantId, revision } = readModel;
  checkLater(event, before.status);
  const changed = laterChanges(readModel, event, time);
  const response = placed({ ...before, ...changed, updatedAt: time });
  response.refundableAmount = refundableAmount(response, unresolved);
  return { merchantId, revision: revision + 1, unresolved, response };
};

/** Disputes stand before the source, whenever they come. */
const placed = ({ source, ...response }: PaymentResponse): PaymentResponse => ({
  ...response,
  ...(source === undefined ? {} : { source }),
});

const misfit = (type: string): Error => new Error(`${type} does not fit its payment`);

const laterChanges = (
  readModel: PaymentReadModel,
  { type, data }: LaterEvent,
  time: string,
): Partial<PaymentResponse> => {
  const { response, unresolved } = readModel;
  const { transactions, disputes = [], capturedAmount } = response;
  switch (type) {
    case 'PaymentAuthorizationExpired':
      if (intentsWithoutOutcome(unresolved).length > 0) throw misfit(type);
      return { status: 'VOIDED', transactions: [...transactions, attempt('VOID', data, time)] };
    case 'PaymentRefundFailed':
      return {
        status: 'CAPTURED',
        refundedAmount: response.refundedAmount - data.amount,
        transactions: withFailedRefund(readModel, data),
      };
    case 'PaymentRefundObserved': {
      const id = transactionId('REFUND', data.operationId);
      const isTaken = hasNoOutcome(unresolved, data) || transactions.some((one) => one.id === id);
      if (isTaken || data.amount > leftToRefund(response, unresolved)) throw misfit(type);
      const refundedAmount = response.refundedAmount + data.amount;
      return {
        status: statusAfterRefund(refundedAmount, capturedAmount),
        refundedAmount,
        transactions: [...transactions, attempt('REFUND', data, time)],
      };
    }
    case 'PaymentDisputed': {
      const { disputeId: id, amount, reason } = data;
      if (disputes.some((one) => one.id === id)) throw misfit(type);
      const dispute: Dispute = { id, amount, reason, status: 'OPEN', createdAt: time };
      return { disputes: [...disputes, dispute] };
    }
    case 'PaymentDisputeClosed': {
      const { disputeId: id, status } = data;
      if (!disputes.some((one) => one.id === id && one.status === 'OPEN')) throw misfit(type);
      return { disputes: disputes.map((one) => (one.id === id ? { ...one, status } : one)) };
    }
  }
};

const hasNoOutcome = (unresolved: UnresolvedIntents, data: { operationId: string }): boolean =>
  intentsWithoutOutcome(unresolved).some((o) => o.operationId === data.operationId);

const withFailedRefund = (
  { unresolved, response: { transactions } }: PaymentReadModel,
  data: EventData<'PaymentRefundFailed'>,
): Transaction[] => {
  if (hasNoOutcome(unresolved, data)) throw misfit('PaymentRefundFailed');
  const id = transactionId('REFUND', data.operationId);
  const at = transactions.findLastIndex((one) => one.id === id);
  const refund = transactions[at];
  if (refund === undefined || refund.result !== 'SUCCEEDED' || refund.amount !== data.amount)
    throw misfit('PaymentRefundFailed');
  const { createdAt, result: _, ...kept } = refund;
  const failed = { ...kept, result: 'FAILED' as const, failure: failureOf(data), createdAt };
  return transactions.with(at, failed);
};
