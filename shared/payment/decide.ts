/**
 * The rules: which events a command leads to in a state, or why it is refused. Pure and total: every
 * pair has one decision (test/domain/decide-table.ts). An operation id that the state knows yields no
 * events, so every command is safe to repeat.
 */
import type {
  AuthenticateCommand,
  ChangeCommand,
  Command,
  CreateCommand,
  OpenCommand,
  RecordCommand,
} from './commands.ts';
import { outcomeEvents } from './outcome-events.ts';
import type { PaymentEvent } from './payment-events.ts';
import {
  isFree,
  isOtherProvider,
  type Operation,
  operationUnder,
  type PaymentState,
  providerOf,
  unresolvedOperations,
} from './state.ts';

/** Interface, "Errors". */
export const NOT_ALLOWED = {
  capture: 'CAPTURE_NOT_ALLOWED',
  void: 'VOID_NOT_ALLOWED',
  refund: 'REFUND_NOT_ALLOWED',
} as const;

type RefusalCode = 'BUSINESS_RULE_VIOLATION' | (typeof NOT_ALLOWED)[keyof typeof NOT_ALLOWED];

/** `details` says why, for the merchant. */
export type Refused = { kind: 'refused'; code: RefusalCode; details: string[] };

/** An unresolved operation excludes this command: find out its outcome, then decide again. */
export type Unresolved = { kind: 'unresolved'; operation: Operation };

/** None for a repeated operation id. */
export type Decision =
  | { kind: 'events'; events: PaymentEvent[] }
  | Refused
  | Unresolved
  /** Another create has made this stream. */
  | { kind: 'exists' }
  /** An operation under the same idempotency key exists (gaps §8). */
  | { kind: 'repeated' }
  /** The payment was made at `provider`, and another one is set: nothing may be sent there (ADR-0247). */
  | { kind: 'other provider'; provider: string };

export const refused = (code: RefusalCode, ...details: string[]): Refused => ({
  kind: 'refused',
  code,
  details,
});

const eventsOf = (...events: PaymentEvent[]): Decision => ({ kind: 'events', events });

/**
 * `state` is undefined for a payment that does not exist. Throws Error only for a bug of the calling
 * code: a change of such a payment, or an outcome of an unknown operation.
 */
export const decide = (state: PaymentState | undefined, command: Command): Decision => {
  if (command.kind === 'create') return create(state, command);
  if (state === undefined) throw new Error(`${command.kind} on a payment that does not exist`);
  if (command.kind === 'open') return open(state, command);
  if (command.kind === 'authenticate') return authenticate(state, command);
  if (command.kind === 'record') return record(state, command);
  if (state.operations.some((o) => o.operationId === command.operationId)) return eventsOf();
  // An earlier look-up may have read an older revision; the append expects exactly this one.
  const earlier = operationUnder(state, command);
  if (earlier !== undefined && !isFree(earlier)) return { kind: 'repeated' };
  if (hasReachedCeiling(state, command)) return refusedAtCeiling(command);
  const unresolved = unresolvedExclusive(state);
  if (unresolved !== undefined) return unresolved;
  switch (command.kind) {
    case 'capture':
      return capture(state, command);
    case 'void':
      return voidPayment(state, command);
    case 'refund':
      return refund(state, command);
  }
};

/** True where the payment has all the operations that it may have (gaps §18). */
export const hasReachedCeiling = (
  state: PaymentState,
  { operationsMax }: Pick<ChangeCommand, 'operationsMax'>,
): boolean => state.operations.length >= operationsMax;

const refusedAtCeiling = ({ kind, operationsMax }: ChangeCommand): Refused =>
  refused(NOT_ALLOWED[kind], `the payment has reached ${operationsMax} operations`);

const sentTo = ({ providers: [provider] }: ChangeCommand | CreateCommand) =>
  provider === undefined ? {} : { provider };

const brokenRules = (command: CreateCommand): string[] => {
  const { maxAmountMinor, acceptedBrands } = command.rules;
  const { amountMinor, currency, numberBrand } = command;
  const details: string[] = [];
  if (amountMinor === 'too large' || amountMinor > maxAmountMinor) {
    details.push(`amount must not exceed ${maxAmountMinor}`);
  }
  if (currency !== 'USD') details.push('currency must be USD');
  if (acceptedBrands !== undefined && !acceptedBrands.some((brand) => brand === numberBrand)) {
    details.push(`paymentMethod.card must be one of ${acceptedBrands.join(', ')}`);
  }
  return details;
};

const create = (state: PaymentState | undefined, command: CreateCommand): Decision => {
  if (state !== undefined) {
    return state.operations[0]?.operationId === command.operationId
      ? eventsOf()
      : { kind: 'exists' };
  }
  const details = brokenRules(command);
  const { amountMinor } = command;
  if (details.length > 0 || amountMinor === 'too large')
    return refused('BUSINESS_RULE_VIOLATION', ...details);
  const { operationId, currency, paymentId, merchantId, captureNow, card, identity } = command;
  return eventsOf({
    type: 'PaymentCreated',
    data: {
      operationId,
      amount: amountMinor,
      currency,
      paymentId,
      merchantId,
      captureNow,
      card,
      details: command.details,
      identity,
      ...sentTo(command),
    },
  });
};

/**
 * An unresolved create, capture or void excludes every other command on the payment. One that waits
 * for the shopper is none (gaps §21): the status refuses the command.
 */
const unresolvedExclusive = (state: PaymentState): Unresolved | undefined => {
  const operation = unresolvedOperations(state).find(
    (o) => o.kind !== 'refund' && o.waitsUntil === undefined,
  );
  return operation === undefined ? undefined : { kind: 'unresolved', operation };
};

/** No intent where the payment is at another provider, which alone knows it. */
const intent = (
  type: 'PaymentCaptureRequested' | 'PaymentVoidRequested' | 'PaymentRefundRequested',
  state: PaymentState,
  command: ChangeCommand,
  amount: number,
): Decision => {
  const { operationId, identity, reason, providers } = command;
  const provider = providerOf(state);
  if (providers.length > 0 && isOtherProvider(provider, providers))
    return { kind: 'other provider', provider };
  const data = { operationId, amount, currency: state.currency, identity, ...sentTo(command) };
  return eventsOf({ type, data: reason === undefined ? data : { ...data, reason } });
};

const capture = (state: PaymentState, command: ChangeCommand): Decision => {
  if (state.status !== 'AUTHORIZED') {
    return refused(
      'CAPTURE_NOT_ALLOWED',
      `only an AUTHORIZED payment can be captured; this one is ${state.status}`,
    );
  }
  const amountMinor = command.amountMinor ?? state.authorizedAmount;
  if (amountMinor === 'too large' || amountMinor > state.authorizedAmount) {
    return refused(
      'CAPTURE_NOT_ALLOWED',
      `captureAmount must not exceed the authorized amount of ${state.authorizedAmount}`,
    );
  }
  return intent('PaymentCaptureRequested', state, command, amountMinor);
};

const voidPayment = (state: PaymentState, command: ChangeCommand): Decision => {
  if (state.status !== 'AUTHORIZED') {
    return refused(
      'VOID_NOT_ALLOWED',
      `only an AUTHORIZED payment can be voided; this one is ${state.status}`,
    );
  }
  return intent('PaymentVoidRequested', state, command, state.authorizedAmount);
};

const refund = (state: PaymentState, command: ChangeCommand): Decision => {
  if (state.status !== 'CAPTURED') {
    const why =
      state.status === 'REFUNDED'
        ? 'the payment is already fully refunded'
        : `only a CAPTURED payment can be refunded; this one is ${state.status}`;
    return refused('REFUND_NOT_ALLOWED', why);
  }
  if (state.disputes?.some(({ status }) => status === 'OPEN'))
    return refused('REFUND_NOT_ALLOWED', 'the payment is disputed');
  // No over-refund: captured, less what was refunded, is being refunded, or was lost in a dispute.
  const left = state.refundableAmount;
  const amountMinor = command.amountMinor ?? left;
  if (amountMinor === 'too large' || amountMinor > left || amountMinor < 1)
    return refused('REFUND_NOT_ALLOWED', `refundAmount must not exceed the ${left} left to refund`);
  return intent('PaymentRefundRequested', state, command, amountMinor);
};

const begunOperation = (state: PaymentState, operationId: string): Operation => {
  const operation = state.operations.find((o) => o.operationId === operationId);
  if (operation === undefined) throw new Error(`operation ${operationId} was never begun`);
  return operation;
};

const open = (state: PaymentState, { operationId, reference }: OpenCommand): Decision => {
  const { kind, ended, amountMinor, ...known } = begunOperation(state, operationId);
  if (kind !== 'create') throw new Error(`a provider opens nothing for a ${kind}`);
  if (ended !== undefined || known.reference !== undefined) return eventsOf();
  const data = { operationId, amount: amountMinor, currency: state.currency };
  return eventsOf({
    type: 'PaymentProviderOpened',
    data: { ...data, providerReference: reference },
  });
};

/** The shopper has the time that was said first. */
const authenticate = (
  state: PaymentState,
  { operationId, expiresAt }: AuthenticateCommand,
): Decision => {
  const { kind, ended, amountMinor, waitsUntil } = begunOperation(state, operationId);
  if (kind !== 'create') throw new Error(`no shopper is needed for a ${kind}`);
  if (ended !== undefined || waitsUntil !== undefined) return eventsOf();
  const data = { operationId, amount: amountMinor, currency: state.currency, expiresAt };
  return eventsOf({ type: 'PaymentAuthenticationRequested', data });
};

const record = (state: PaymentState, command: RecordCommand): Decision => {
  const operation = begunOperation(state, command.operationId);
  if (operation.ended !== undefined) return eventsOf();
  // The call may be moving money on what was opened since: the provider has to be asked again.
  if (command.outcome === 'FENCED' && operation.reference !== command.judgedReference)
    return eventsOf();
  return eventsOf(...outcomeEvents(state, operation, command));
};
