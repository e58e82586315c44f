/**
 * What a provider says of a payment later, beside the outcomes of operations (gaps §15): when each may
 * be recorded, and what the rules remember of it. Pure.
 */
import type { LaterCommand } from './commands.ts';
import type { EventData, PaymentEvent } from './payment-events.ts';
import { authorizationOf, type PaymentState, unresolvedOperations } from './payment-state.ts';
import { statusAfterRefund } from './transitions.ts';

type CapturedState = Extract<PaymentState, { status: 'CAPTURED' | 'REFUNDED' }>;

const capturedOf = (state: PaymentState): CapturedState | undefined =>
  state.status === 'CAPTURED' || state.status === 'REFUNDED' ? state : undefined;

/**
 * The events that a later result leads to: none where it is recorded already, or cannot be recorded
 * now. Decided at the exact revision, so that each is recorded once, whatever the order and number of
 * its notices.
 */
export const decideLater = (state: PaymentState, command: LaterCommand): PaymentEvent[] => {
  const { result } = command;
  switch (result.kind) {
    case 'AUTHORIZATION_EXPIRED':
      return expired(state);
    case 'REFUND_FAILED':
      return refundFailed(state, result);
    case 'REFUND_OBSERVED':
      return refundObserved(state, command, result);
    case 'DISPUTE':
      return disputed(state, result);
  }
};

type Result<K> = Extract<LaterCommand['result'], { kind: K }>;

const expired = (state: PaymentState): PaymentEvent[] => {
  // An operation without an outcome may have come before it: its outcome decides.
  if (state.status !== 'AUTHORIZED' || unresolvedOperations(state).length > 0) return [];
  const { authorizationId: operationId } = authorizationOf(state);
  const data = { operationId, amount: state.authorizedAmount, currency: state.currency };
  return [{ type: 'PaymentAuthorizationExpired', data }];
};

const refundFailed = (
  state: PaymentState,
  { operationId, failureCode, providerFailureCode }: Result<'REFUND_FAILED'>,
): PaymentEvent[] => {
  const amount = refundOf(state, operationId);
  if (capturedOf(state) === undefined || amount === undefined) return [];
  const code = providerFailureCode === undefined ? {} : { providerFailureCode };
  const data = { operationId, amount, currency: state.currency, failureCode, ...code };
  return [{ type: 'PaymentRefundFailed', data }];
};

/** The amount of a refund that the payment counts as given back; undefined for any other id. */
const refundOf = (state: PaymentState, operationId: string): number | undefined => {
  const isMade = (o: PaymentState['operations'][number]) =>
    o.kind === 'refund' && o.operationId === operationId;
  const made = state.operations.findLast(isMade);
  if (made !== undefined)
    return made.ended?.outcome === 'APPROVED' && !made.failedLater ? made.amountMinor : undefined;
  const observed = state.observedRefunds?.find((o) => o.operationId === operationId);
  return observed === undefined || observed.failedLater ? undefined : observed.amountMinor;
};

/** What can still be refunded; without what refunds that have no outcome yet have set aside. */
const leftToRefund = (state: CapturedState): number => {
  const reserved = unresolvedOperations(state).reduce((total, o) => total + o.amountMinor, 0);
  return state.capturedAmount - state.refundedAmount - reserved;
};

const refundObserved = (
  state: PaymentState,
  { operationId }: LaterCommand,
  { refundId, amount }: Result<'REFUND_OBSERVED'>,
): PaymentEvent[] => {
  const captured = capturedOf(state);
  const isKnown = state.observedRefunds?.some((o) => o.refundId === refundId);
  // More than is left cannot be: reconcile shows it.
  if (captured === undefined || isKnown || amount > leftToRefund(captured)) return [];
  const data = { operationId, amount, currency: state.currency, refundId };
  return [{ type: 'PaymentRefundObserved', data }];
};

const disputed = (
  state: PaymentState,
  { disputeId, amount, reason, status }: Result<'DISPUTE'>,
): PaymentEvent[] => {
  if (capturedOf(state) === undefined) return [];
  const known = state.disputes?.find((one) => one.disputeId === disputeId);
  const { authorizationId: operationId } = authorizationOf(state);
  const about = { operationId, amount: known?.amount ?? amount, currency: state.currency };
  const opened: PaymentEvent = {
    type: 'PaymentDisputed',
    data: { ...about, disputeId, reason },
  };
  const events = known === undefined ? [opened] : [];
  // What is closed stays so: an older notice may come late.
  if (status === 'OPEN' || (known !== undefined && known.status !== 'OPEN')) return events;
  return [...events, { type: 'PaymentDisputeClosed', data: { ...about, disputeId, status } }];
};

const misfit = (type: string): Error => new Error(`${type} does not fit its payment`);

/** The state after an authorization that ran out. Throws Error where an operation has no outcome. */
export const afterExpiry = (state: PaymentState): PaymentState => {
  if (state.status !== 'AUTHORIZED' || unresolvedOperations(state).length > 0)
    throw misfit('PaymentAuthorizationExpired');
  return { ...state, status: 'VOIDED' };
};

/** The state after a refund that failed after all. Throws Error where no such refund stands. */
export const afterRefundFailed = (
  state: PaymentState,
  { operationId, amount }: EventData<'PaymentRefundFailed'>,
): PaymentState => {
  const captured = capturedOf(state);
  if (captured === undefined || refundOf(state, operationId) !== amount)
    throw misfit('PaymentRefundFailed');
  const failing = <T extends { operationId: string }>(one: T): T =>
    one.operationId === operationId ? { ...one, failedLater: true } : one;
  return {
    ...captured,
    status: 'CAPTURED',
    refundedAmount: captured.refundedAmount - amount,
    operations: captured.operations.map(failing),
    ...(captured.observedRefunds && { observedRefunds: captured.observedRefunds.map(failing) }),
  };
};

/** True for the id of another refund, or of an operation that has no outcome. */
const isTaken = ({ operations, observedRefunds = [] }: PaymentState, operationId: string) =>
  observedRefunds.some((o) => o.operationId === operationId) ||
  operations.some(
    (o) => o.operationId === operationId && (o.kind === 'refund' || o.ended === undefined),
  );

/** The state after a refund that was made elsewhere. Throws Error where more than is left goes back. */
export const afterRefundObserved = (
  state: PaymentState,
  { operationId, amount, refundId }: EventData<'PaymentRefundObserved'>,
): PaymentState => {
  const captured = capturedOf(state);
  if (captured === undefined || amount > leftToRefund(captured) || isTaken(state, operationId))
    throw misfit('PaymentRefundObserved');
  const refundedAmount = captured.refundedAmount + amount;
  const observed = { operationId, refundId, amountMinor: amount };
  return {
    ...captured,
    status: statusAfterRefund(refundedAmount, captured.capturedAmount),
    refundedAmount,
    observedRefunds: [...(captured.observedRefunds ?? []), observed],
  };
};

/** The state after a dispute began. Throws Error where it is there already. */
export const afterDisputed = (
  state: PaymentState,
  { disputeId, amount }: EventData<'PaymentDisputed'>,
): PaymentState => {
  const { disputes = [] } = state;
  if (capturedOf(state) === undefined || disputes.some((one) => one.disputeId === disputeId))
    throw misfit('PaymentDisputed');
  return { ...state, disputes: [...disputes, { disputeId, amount, status: 'OPEN' }] };
};

/** The state after a dispute ended. Throws Error where it is not open. */
export const afterDisputeClosed = (
  state: PaymentState,
  { disputeId, status }: EventData<'PaymentDisputeClosed'>,
): PaymentState => {
  const { disputes = [] } = state;
  if (!disputes.some((one) => one.disputeId === disputeId && one.status === 'OPEN'))
    throw misfit('PaymentDisputeClosed');
  return {
    ...state,
    disputes: disputes.map((one) => (one.disputeId === disputeId ? { ...one, status } : one)),
  };
};
