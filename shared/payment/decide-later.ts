/**
 * The rules for what a provider says of a payment later, beside the outcomes of operations (gaps §15).
 * Pure; decided at the exact revision, so each result is recorded once, whatever its notices' order and
 * number.
 */
import type { LaterCommand } from './commands.ts';
import type { PaymentEvent } from './payment-events.ts';
import { givenFailure, leftOfCapture } from './payment-response.ts';
import { amountOfRefund, createOf, type PaymentState, unresolvedOperations } from './state.ts';

/** An operation without an outcome may have come before what is said: its outcome decides. */
const isHeld = (state: PaymentState): boolean =>
  state.status === 'AUTHORIZED' && unresolvedOperations(state).length === 0;

const hasCaptured = ({ status }: PaymentState): boolean =>
  status === 'CAPTURED' || status === 'REFUNDED';

/** None where the result is recorded already, or cannot be recorded now. */
export const decideLater = (
  state: PaymentState,
  { operationId, result }: LaterCommand,
): PaymentEvent[] => {
  const { currency, authorizedAmount } = state;
  const create = createOf(state);
  const authorization = { operationId: create.operationId, amount: authorizedAmount, currency };
  switch (result.kind) {
    case 'AUTHORIZATION_EXPIRING': {
      const { authorizationExpiresAt: expiresAt } = state;
      if (!isHeld(state) || create.noticedExpiring || expiresAt === undefined) return [];
      return [{ type: 'PaymentAuthorizationExpiring', data: { ...authorization, expiresAt } }];
    }
    case 'AUTHORIZATION_EXPIRED':
      return isHeld(state) ? [{ type: 'PaymentAuthorizationExpired', data: authorization }] : [];
    case 'CAPTURE_OBSERVED': {
      const { reference: providerReference, amount } = result;
      // A capture of more than was authorized cannot be: reconcile shows it.
      if (!isHeld(state) || amount > authorizedAmount) return [];
      const releasedAmount = authorizedAmount - amount || undefined;
      const data = { operationId, amount, currency, providerReference, releasedAmount };
      return [{ type: 'PaymentCaptureObserved', data }];
    }
    case 'VOID_OBSERVED': {
      if (!isHeld(state)) return [];
      const data = { ...authorization, operationId, providerReference: result.reference };
      return [{ type: 'PaymentVoidObserved', data }];
    }
    case 'REFUND_FAILED': {
      const amount = amountOfRefund(state, result.operationId);
      if (amount === undefined) return [];
      const failed = { operationId: result.operationId, amount, currency };
      return [{ type: 'PaymentRefundFailed', data: { ...failed, ...givenFailure(result) } }];
    }
    case 'REFUND_OBSERVED': {
      const { refundId, amount } = result;
      const isKnown = state.observedRefunds.some((o) => o.refundId === refundId);
      // A refund of more than is left cannot be: reconcile shows it.
      const isTooMuch = amount > leftOfCapture(state, state.readModel.unresolved);
      if (!hasCaptured(state) || isKnown || isTooMuch) return [];
      return [{ type: 'PaymentRefundObserved', data: { operationId, amount, currency, refundId } }];
    }
    case 'DISPUTE':
      return disputed(state, result);
  }
};

const disputed = (
  state: PaymentState,
  { disputeId, amount, reason, status }: Extract<LaterCommand['result'], { kind: 'DISPUTE' }>,
): PaymentEvent[] => {
  if (!hasCaptured(state)) return [];
  const { operationId } = createOf(state);
  const known = state.disputes?.find(({ id }) => id === disputeId);
  const about = { operationId, amount: known?.amount ?? amount, currency: state.currency };
  const opened: PaymentEvent = { type: 'PaymentDisputed', data: { ...about, disputeId, reason } };
  const events = known === undefined ? [opened] : [];
  // A closed dispute stays closed, because an older notice may come late; but an appeal may be won.
  const isOver = known?.status === 'WON' || (known?.status === 'LOST' && status === 'LOST');
  if (status === 'OPEN' || isOver) return events;
  return [...events, { type: 'PaymentDisputeClosed', data: { ...about, disputeId, status } }];
};
