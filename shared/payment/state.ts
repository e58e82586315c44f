/**
 * What the rules need to know of a payment: its status with the sums that belong to it, and every
 * operation that was ever begun on it, so that a repeat is recognised and an intent without an
 * outcome is seen.
 */
import type { EventData, RequestIdentity } from './payment-events.ts';
import type { PlacedEvent } from './response.ts';

export type OperationKind = 'create' | 'capture' | 'void' | 'refund';

/** One thing asked of the provider; its intent is stored, its outcome when `outcome` is there. */
export type Operation = {
  kind: OperationKind;
  operationId: string;
  /** In minor units, from 1. A void carries the authorized amount. */
  amount: number;
  identity: RequestIdentity;
  /** The revision of the intent event. */
  requestedAt: number;
  outcome?: OperationOutcome;
};

export type OperationOutcome = {
  outcome: 'APPROVED' | 'DECLINED' | 'NOT_SENT' | 'FENCED';
  /** The revision of the (last) event that recorded it: the answer is the fold up to here. */
  revision: number;
};

/** What every payment has from its first event on. */
type Known = {
  paymentId: string;
  merchantId: string;
  amount: number;
  currency: string;
  captureNow: boolean;
  bin: string;
  last4: string;
  operations: Operation[];
};
type AuthorizedAmounts = { authorizedAmount: number };
type CapturedAmounts = AuthorizedAmounts & { capturedAmount: number; refundedAmount: number };

export type PaymentState =
  | { status: 'NONE' }
  | (Known & { status: 'PENDING' })
  | (Known & AuthorizedAmounts & { status: 'AUTHORIZED' })
  | (Known & CapturedAmounts & { status: 'CAPTURED' })
  | (Known & CapturedAmounts & { status: 'REFUNDED' })
  | (Known & AuthorizedAmounts & { status: 'VOIDED' })
  | (Known & { status: 'FAILED' });

export type ExistingPayment = Exclude<PaymentState, { status: 'NONE' }>;

export const initialState: PaymentState = { status: 'NONE' };

const first = (data: EventData<'PaymentCreated'>, revision: number): PaymentState => ({
  status: 'PENDING',
  paymentId: data.paymentId,
  merchantId: data.merchantId,
  amount: data.amount,
  currency: data.currency,
  captureNow: data.captureNow,
  bin: data.card.bin,
  last4: data.card.last4,
  operations: [begun('create', data, revision)],
});

const begun = (
  kind: OperationKind,
  data: { operationId: string; amount: number; identity: RequestIdentity },
  requestedAt: number,
): Operation => {
  const { operationId, amount, identity } = data;
  return { kind, operationId, amount, identity, requestedAt };
};

const known = (state: ExistingPayment, operations: Operation[]): Known => {
  const { paymentId, merchantId, amount, currency, captureNow, bin, last4 } = state;
  return { paymentId, merchantId, amount, currency, captureNow, bin, last4, operations };
};

const ended = (
  state: ExistingPayment,
  operationId: string,
  outcome: OperationOutcome['outcome'],
  revision: number,
): Operation[] => {
  // From the end: what is ended was begun lately, and a payment can have thousands of refunds.
  const at = state.operations.findLastIndex((o) => o.operationId === operationId);
  const operation = state.operations[at];
  if (operation === undefined) throw new Error('an outcome without its intent');
  return state.operations.with(at, { ...operation, outcome: { outcome, revision } });
};

/** The create's outcome comes once: what is FAILED never becomes AUTHORIZED. */
const stillPending = (state: ExistingPayment): void => {
  if (state.status !== 'PENDING') throw new Error(`a second outcome of a create: ${state.status}`);
};

const authorizedIn = (state: ExistingPayment): number => {
  if (state.status !== 'AUTHORIZED') throw new Error(`captured or voided while ${state.status}`);
  return state.authorizedAmount;
};

const capturedIn = (state: ExistingPayment): CapturedAmounts => {
  if (state.status !== 'CAPTURED') throw new Error(`refunded while ${state.status}`);
  const { authorizedAmount, capturedAmount, refundedAmount } = state;
  return { authorizedAmount, capturedAmount, refundedAmount };
};

/**
 * The state after one more event. Throws where the event cannot follow the state: such a stream is
 * damaged, not merely refused.
 */
export const evolve = (state: PaymentState, { event, revision }: PlacedEvent): PaymentState => {
  if (event.type === 'PaymentCreated') {
    if (state.status !== 'NONE')
      throw new Error('PaymentCreated is not the first event of its stream');
    return first(event.data, revision);
  }
  if (state.status === 'NONE') throw new Error('the stream has no PaymentCreated');
  const { operationId, amount } = event.data;
  switch (event.type) {
    case 'PaymentAuthorized': {
      stillPending(state);
      const operations = ended(state, operationId, 'APPROVED', revision);
      return { ...known(state, operations), status: 'AUTHORIZED', authorizedAmount: amount };
    }
    case 'PaymentCaptured': {
      const operations = ended(state, operationId, 'APPROVED', revision);
      const authorizedAmount = authorizedIn(state);
      const sums = { authorizedAmount, capturedAmount: amount, refundedAmount: 0 };
      return { ...known(state, operations), ...sums, status: 'CAPTURED' };
    }
    case 'PaymentVoided': {
      const operations = ended(state, operationId, 'APPROVED', revision);
      return {
        ...known(state, operations),
        status: 'VOIDED',
        authorizedAmount: authorizedIn(state),
      };
    }
    case 'PaymentRefunded': {
      const operations = ended(state, operationId, 'APPROVED', revision);
      const sums = capturedIn(state);
      const refundedAmount = sums.refundedAmount + amount;
      const status = refundedAmount >= sums.capturedAmount ? 'REFUNDED' : 'CAPTURED';
      return { ...known(state, operations), ...sums, refundedAmount, status };
    }
    case 'PaymentFailed': {
      stillPending(state);
      const operations = ended(state, operationId, event.data.outcome, revision);
      return { ...known(state, operations), status: 'FAILED' };
    }
    case 'PaymentCaptureDeclined':
    case 'PaymentVoidDeclined':
    case 'PaymentRefundDeclined':
      return { ...state, operations: ended(state, operationId, event.data.outcome, revision) };
    case 'PaymentCaptureRequested':
      return {
        ...state,
        operations: [...state.operations, begun('capture', event.data, revision)],
      };
    case 'PaymentVoidRequested':
      return { ...state, operations: [...state.operations, begun('void', event.data, revision)] };
    case 'PaymentRefundRequested':
      return { ...state, operations: [...state.operations, begun('refund', event.data, revision)] };
  }
};

/** The operations that were asked for and have no outcome yet, oldest first. */
export const openOperations = (state: PaymentState): Operation[] =>
  state.status === 'NONE' ? [] : state.operations.filter((o) => o.outcome === undefined);

/** Proven never carried out, so that its idempotency key is free again (gaps §7, §8). */
export const isFree = ({ outcome }: Operation): boolean =>
  // seeded bug: free-key
  outcome?.outcome === 'NOT_SENT' || outcome?.outcome === 'FENCED';

/** The latest operation under a key, by the key's hash; undefined for none, and for no key. */
export const operationUnder = (
  state: ExistingPayment,
  keyHash: string | undefined,
): Operation | undefined =>
  keyHash === undefined
    ? undefined
    : state.operations.findLast(({ identity }) => identity.keyHash === keyHash);

/** What the provider knows a later operation's authorization by: the id of the create. */
export const authorizationIdOf = (state: ExistingPayment): string => {
  const create = state.operations[0];
  if (create === undefined) throw new Error('a payment without its create');
  return create.operationId;
};
