/**
 * The rules for what a provider says of a payment later, beside the outcomes of operations (gaps §15).
 * Pure; decided at the exact revision, so each result is recorded once, whatever its notices' order and
 * number.
 */
import type { LaterCommand } from './commands.ts';
import type { PaymentEvent } from './payment-events.ts';
import { givenFailure, leftOfCapture } from './payment-response.ts';
import {
  authorizationOf,
  createOf,
  type PaymentState,
  refundOf,
  unresolvedOperations,
} from './state.ts';

/** None where the result is recorded already, or cannot be recorded now. */
export const decideLater = (state: PaymentState, command: LaterCommand): PaymentEvent[] => {
  const { result } = command;
  switch (result.kind) {
    case 'AUTHORIZATION_EXPIRING':
      return expiring(state);
    case 'AUTHORIZATION_EXPIRED':
      return expired(state);
    case 'CAPTURE_OBSERVED':
      return captureObserved(state, command, result);
    case 'VOID_OBSERVED':
      return voidObserved(state, command, result);
    case 'REFUND_FAILED':
      return refundFailed(state, result);
    case 'REFUND_OBSERVED':
      return refundObserved(state, command, result);
    case 'DISPUTE':
      return disputed(state, result);
  }
};

type Result<K> = Extract<LaterCommand['result'], { kind: K }>;

const hasCaptured = ({ status }: PaymentState): boolean =>
  status === 'CAPTURED' || status === 'REFUNDED';

/** An operation without an outcome may have come before what is said: its outcome decides. */
const isHeld = (state: PaymentState): boolean =>
  state.status === 'AUTHORIZED' && unresolvedOperations(state).length === 0;

const expiring = (state: PaymentState): PaymentEvent[] => {
  const { operationId, noticedExpiring } = createOf(state);
  const { authorizationExpiresAt: expiresAt, authorizedAmount: amount, currency } = state;
  if (!isHeld(state) || noticedExpiring || expiresAt === undefined) return [];
  const data = { operationId, amount, currency, expiresAt };
  return [{ type: 'PaymentAuthorizationExpiring', data }];
};

const expired = (state: PaymentState): PaymentEvent[] => {
  if (!isHeld(state)) return [];
  const { authorizationId: operationId } = authorizationOf(state);
  const data = { operationId, amount: state.authorizedAmount, currency: state.currency };
  return [{ type: 'PaymentAuthorizationExpired', data }];
};

const captureObserved = (
  state: PaymentState,
  { operationId }: LaterCommand,
  { reference: providerReference, amount }: Result<'CAPTURE_OBSERVED'>,
): PaymentEvent[] => {
  const { authorizedAmount, currency } = state;
  // A capture of more than was authorized cannot be: reconcile shows it.
  if (!isHeld(state) || amount > authorizedAmount) return [];
  const rest = amount < authorizedAmount ? { releasedAmount: authorizedAmount - amount } : {};
  const data = { operationId, amount, currency, providerReference, ...rest };
  return [{ type: 'PaymentCaptureObserved', data }];
};

const voidObserved = (
  state: PaymentState,
  { operationId }: LaterCommand,
  { reference: providerReference }: Result<'VOID_OBSERVED'>,
): PaymentEvent[] => {
  if (!isHeld(state)) return [];
  const { authorizedAmount: amount, currency } = state;
  const data = { operationId, amount, currency, providerReference };
  return [{ type: 'PaymentVoidObserved', data }];
};

const refundFailed = (
  state: PaymentState,
  { operationId, ...failure }: Result<'REFUND_FAILED'>,
): PaymentEvent[] => {
  const amount = refundOf(state, operationId);
  if (amount === undefined) return [];
  const data = { operationId, amount, currency: state.currency, ...givenFailure(failure) };
  return [{ type: 'PaymentRefundFailed', data }];
};

const refundObserved = (
  state: PaymentState,
  { operationId }: LaterCommand,
  { refundId, amount }: Result<'REFUND_OBSERVED'>,
): PaymentEvent[] => {
  const isKnown = state.observedRefunds?.some((o) => o.refundId === refundId);
  // A refund of more than is left cannot be: reconcile shows it.
  const isTooMuch = amount > leftOfCapture(state, state.readModel.unresolved);
  if (!hasCaptured(state) || isKnown || isTooMuch) return [];
  const data = { operationId, amount, currency: state.currency, refundId };
  return [{ type: 'PaymentRefundObserved', data }];
};

const disputed = (
  state: PaymentState,
  { disputeId, amount, reason, status }: Result<'DISPUTE'>,
): PaymentEvent[] => {
  if (!hasCaptured(state)) return [];
  const known = state.disputes?.find(({ id }) => id === disputeId);
  const { authorizationId: operationId } = authorizationOf(state);
  const about = { operationId, amount: known?.amount ?? amount, currency: state.currency };
  const opened: PaymentEvent = { type: 'PaymentDisputed', data: { ...about, disputeId, reason } };
  const events = known === undefined ? [opened] : [];
  // A closed dispute stays closed, because an older notice may come late; but an appeal may be won.
  const isOver = known?.status === 'WON' || (known?.status === 'LOST' && status === 'LOST');
  if (status === 'OPEN' || isOver) return events;
  return [...events, { type: 'PaymentDisputeClosed', data: { ...about, disputeId, status } }];
};
