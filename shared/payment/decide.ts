/**
 * The rules: what happens when a command meets a state. Pure, synchronous and total: every pair
 * has exactly one answer (test/domain/decide.test.ts holds the table). An operation id that the
 * state already knows yields no events, so every command is safe to repeat.
 */
import type { ChangeCommand, Command, CreateCommand, Outcome, RecordCommand } from './commands.ts';
import type { EventData, PaymentEvent, Resolution } from './payment-events.ts';
import {
  type AlreadyExists,
  type Refused,
  type Repeated,
  refused,
  type Unresolved,
} from './refusals.ts';
import {
  type ExistingPayment,
  isFree,
  type Operation,
  openOperations,
  operationUnder,
  type PaymentState,
} from './state.ts';

export type Decision =
  | { kind: 'events'; events: PaymentEvent[] }
  | Refused
  | Unresolved
  | AlreadyExists
  | Repeated;

const happened = (...events: PaymentEvent[]): Decision => ({ kind: 'events', events });

/** The answer to a command in a state. Throws only where the caller has a bug. */
export const decide = (state: PaymentState, command: Command): Decision => {
  if (command.kind === 'create') return create(state, command);
  if (state.status === 'NONE') throw new Error(`${command.kind} on a payment that does not exist`);
  if (command.kind === 'record') return record(state, command);
  if (state.operations.some((o) => o.operationId === command.operationId)) return happened();
  // Whoever looked before may have looked too early: here the exact revision stands behind it.
  const earlier = operationUnder(state, command.identity.keyHash);
  // seeded bug: repeat-at-append
  if (earlier !== undefined && !isFree(earlier)) return { kind: 'repeated' };
  switch (command.kind) {
    case 'capture':
      return capture(state, command);
    case 'void':
      return voidPayment(state, command);
    case 'refund':
      return refund(state, command);
  }
};

const brokenRules = (command: CreateCommand): string[] => {
  const { maxAmountMinor, acceptedBrands } = command.rules;
  const { amount, currency, numberBrand } = command;
  const details: string[] = [];
  if (amount === 'too large' || amount > maxAmountMinor) {
    details.push(`amount must not exceed ${maxAmountMinor}`);
  }
  if (currency !== 'USD') details.push('currency must be USD');
  if (acceptedBrands !== undefined && !acceptedBrands.some((brand) => brand === numberBrand)) {
    details.push(`paymentMethod.card must be one of ${acceptedBrands.join(', ')}`);
  }
  return details;
};

const create = (state: PaymentState, command: CreateCommand): Decision => {
  if (state.status !== 'NONE') {
    return state.operations[0]?.operationId === command.operationId
      ? happened()
      : { kind: 'exists' };
  }
  const details = brokenRules(command);
  const { amount } = command;
  if (details.length > 0 || amount === 'too large') {
    return refused('BUSINESS_RULE_VIOLATION', ...details);
  }
  const { operationId, currency, paymentId, merchantId, captureNow, card, identity } = command;
  return happened({
    type: 'PaymentCreated',
    data: {
      operationId,
      amount,
      currency,
      paymentId,
      merchantId,
      captureNow,
      card,
      details: command.details,
      identity,
    },
  });
};

/** The open create, capture or void that excludes every other command on the payment. */
const unresolvedExclusive = (state: ExistingPayment): Unresolved | undefined => {
  // seeded bug: exclusive-operations
  const operation = openOperations(state).find((o) => o.kind !== 'refund');
  return operation === undefined ? undefined : { kind: 'unresolved', operation };
};

const requested = (state: ExistingPayment, command: ChangeCommand, amount: number) => ({
  operationId: command.operationId,
  amount,
  currency: state.currency,
  identity: command.identity,
  ...(command.reason === undefined ? {} : { reason: command.reason }),
});

const capture = (state: ExistingPayment, command: ChangeCommand): Decision => {
  const unresolved = unresolvedExclusive(state);
  if (unresolved !== undefined) return unresolved;
  if (state.status !== 'AUTHORIZED') {
    return refused(
      'CAPTURE_NOT_ALLOWED',
      `only an AUTHORIZED payment can be captured; this one is ${state.status}`,
    );
  }
  const amount = command.amount ?? state.authorizedAmount;
  // seeded bug: capture-ceiling
  if (amount === 'too large' || amount > state.authorizedAmount) {
    return refused(
      'CAPTURE_NOT_ALLOWED',
      `captureAmount must not exceed the authorized amount of ${state.authorizedAmount}`,
    );
  }
  return happened({ type: 'PaymentCaptureRequested', data: requested(state, command, amount) });
};

const voidPayment = (state: ExistingPayment, command: ChangeCommand): Decision => {
  const unresolved = unresolvedExclusive(state);
  if (unresolved !== undefined) return unresolved;
  // seeded bug: void-of-authorized
  if (state.status !== 'AUTHORIZED') {
    return refused(
      'VOID_NOT_ALLOWED',
      `only an AUTHORIZED payment can be voided; this one is ${state.status}`,
    );
  }
  return happened({
    type: 'PaymentVoidRequested',
    data: requested(state, command, state.authorizedAmount),
  });
};

const refund = (state: ExistingPayment, command: ChangeCommand): Decision => {
  const unresolved = unresolvedExclusive(state);
  if (unresolved !== undefined) return unresolved;
  if (state.status !== 'CAPTURED') {
    const why =
      state.status === 'REFUNDED'
        ? 'the payment is already fully refunded'
        : `only a CAPTURED payment can be refunded; this one is ${state.status}`;
    return refused('REFUND_NOT_ALLOWED', why);
  }
  const reserved = openOperations(state).reduce((sum, o) => sum + o.amount, 0);
  // seeded bug: refund-reserves
  const left = state.capturedAmount - state.refundedAmount - reserved;
  const amount = command.amount ?? left;
  // seeded bug: refund-ceiling
  if (amount === 'too large' || amount > left || amount < 1) {
    return refused('REFUND_NOT_ALLOWED', `refundAmount must not exceed the ${left} left to refund`);
  }
  return happened({ type: 'PaymentRefundRequested', data: requested(state, command, amount) });
};

const record = (state: ExistingPayment, command: RecordCommand): Decision => {
  const { operationId, outcome, resolution } = command;
  const operation = state.operations.find((o) => o.operationId === operationId);
  if (operation === undefined) throw new Error('an outcome for an operation that was never begun');
  // seeded bug: one-outcome
  if (operation.outcome !== undefined) return happened();
  if (outcome.outcome === 'APPROVED')
    return happened(...approved(state, operation, outcome, resolution));
  return happened(declined(state, operation, outcome, resolution));
};

const approved = (
  state: ExistingPayment,
  operation: Operation,
  { providerReference }: Extract<Outcome, { outcome: 'APPROVED' }>,
  resolution: Resolution | undefined,
): PaymentEvent[] => {
  const data: EventData<'PaymentAuthorized'> = {
    operationId: operation.operationId,
    amount: operation.amount,
    currency: state.currency,
    ...(providerReference === undefined ? {} : { providerReference }),
    ...(resolution === undefined ? {} : { resolution }),
  };
  switch (operation.kind) {
    case 'create':
      return state.captureNow
        ? [
            { type: 'PaymentAuthorized', data },
            { type: 'PaymentCaptured', data },
          ]
        : [{ type: 'PaymentAuthorized', data }];
    case 'capture': {
      const authorized = 'authorizedAmount' in state ? state.authorizedAmount : operation.amount;
      const releasedAmount = authorized - operation.amount;
      // seeded bug: released-amount
      const released = releasedAmount > 0 ? { releasedAmount } : {};
      return [{ type: 'PaymentCaptured', data: { ...data, ...released } }];
    }
    case 'void':
      return [{ type: 'PaymentVoided', data }];
    case 'refund':
      return [{ type: 'PaymentRefunded', data }];
  }
};

const DECLINED_EVENTS = {
  create: 'PaymentFailed',
  capture: 'PaymentCaptureDeclined',
  void: 'PaymentVoidDeclined',
  refund: 'PaymentRefundDeclined',
} as const;

const declined = (
  state: ExistingPayment,
  { kind, operationId, amount }: Operation,
  outcome: Exclude<Outcome, { outcome: 'APPROVED' }>,
  resolution: Resolution | undefined,
): PaymentEvent => {
  const own = outcome.outcome === 'DECLINED' ? outcome : undefined;
  const code = own?.providerFailureCode;
  return {
    type: DECLINED_EVENTS[kind],
    data: {
      operationId,
      amount,
      currency: state.currency,
      failureCode: own?.failureCode ?? 'PROVIDER_UNAVAILABLE',
      ...(code === undefined ? {} : { providerFailureCode: code }),
      outcome: outcome.outcome,
      ...(resolution === undefined ? {} : { resolution }),
    },
  };
};
