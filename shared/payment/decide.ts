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
import { confirmOutcome, decideLater, outcomeEvents, resolveByHand } from './decide-outcome.ts';
import type { PaymentEvent } from './events.ts';
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
  switch (command.kind) {
    case 'later':
      return eventsOf(...decideLater(state, command));
    case 'capture':
    case 'void':
    case 'refund':
      return change(state, command);
  }
  const operation = state.operations.find((o) => o.operationId === command.operationId);
  if (operation === undefined) throw new Error(`operation ${command.operationId} was never begun`);
  switch (command.kind) {
    case 'open':
      return open(state, operation, command);
    case 'authenticate':
      return authenticate(state, operation, command);
    case 'record':
      return record(state, operation, command);
    case 'resolve':
      return eventsOf(...resolveByHand(state, operation, command));
    case 'confirm':
      return eventsOf(...confirmOutcome(state, operation, command));
  }
};

const change = (state: PaymentState, command: ChangeCommand): Decision => {
  if (state.operations.some((o) => o.operationId === command.operationId)) return eventsOf();
  // An earlier look-up may have read an older revision; the append expects exactly this one.
  const earlier = operationUnder(state, command);
  if (earlier !== undefined && !isFree(earlier)) return { kind: 'repeated' };
  const { kind, operationsMax } = command;
  if (hasReachedCeiling(state, command))
    return refused(NOT_ALLOWED[kind], `the payment has reached ${operationsMax} operations`);
  const unresolved = unresolvedExclusive(state);
  if (unresolved !== undefined) return { kind: 'unresolved', operation: unresolved };
  return CHANGES[kind](state, command);
};

/** True where the payment has all the operations that it may have (gaps §18). */
export const hasReachedCeiling = (
  state: PaymentState,
  { operationsMax }: Pick<ChangeCommand, 'operationsMax'>,
): boolean => state.operations.length >= operationsMax;

const brokenRules = (command: CreateCommand): string[] => {
  const { maxAmountMinor, acceptedBrands } = command.rules;
  const { amountMinor, currency, numberBrand } = command;
  const details: string[] = [];
  if (amountMinor === 'too large' || amountMinor > maxAmountMinor)
    details.push(`amount must not exceed ${maxAmountMinor}`);
  if (currency !== 'USD') details.push('currency must be USD');
  if (acceptedBrands !== undefined && !acceptedBrands.some((brand) => brand === numberBrand))
    details.push(`paymentMethod.card must be one of ${acceptedBrands.join(', ')}`);
  return details;
};

const create = (state: PaymentState | undefined, command: CreateCommand): Decision => {
  const { operationId } = command;
  if (state !== undefined)
    return state.operations[0]?.operationId === operationId ? eventsOf() : { kind: 'exists' };
  const broken = brokenRules(command);
  const { amountMinor } = command;
  if (broken.length > 0 || amountMinor === 'too large')
    return refused('BUSINESS_RULE_VIOLATION', ...broken);
  const { currency, paymentId, merchantId, captureNow, card, identity } = command;
  const { details, authentication } = command;
  const operation = { operationId, amount: amountMinor, currency };
  const payment = { paymentId, merchantId, captureNow, card, details, authentication };
  const [provider] = command.providers;
  return eventsOf({
    type: 'PaymentCreated',
    data: { ...operation, ...payment, identity, provider },
  });
};

/**
 * An unresolved create, capture or void excludes every other command on the payment. One that waits
 * for the shopper is none (gaps §21): the status refuses the command.
 */
const unresolvedExclusive = (state: PaymentState): Operation | undefined =>
  unresolvedOperations(state).find((o) => o.kind !== 'refund' && o.waitsUntil === undefined);

/** No intent where the payment is at another provider, which alone knows it. */
const intent = (
  type: 'PaymentCaptureRequested' | 'PaymentVoidRequested' | 'PaymentRefundRequested',
  state: PaymentState,
  command: ChangeCommand,
  amount: number,
): Decision => {
  const { operationId, identity, reason, providers } = command;
  const madeAt = providerOf(state);
  if (providers.length > 0 && isOtherProvider(madeAt, providers))
    return { kind: 'other provider', provider: madeAt };
  const operation = { operationId, amount, currency: state.currency };
  return eventsOf({ type, data: { ...operation, identity, provider: providers[0], reason } });
};

const notAuthorized = (kind: 'capture' | 'void', done: string, status: string): Refused =>
  refused(NOT_ALLOWED[kind], `only an AUTHORIZED payment can be ${done}; this one is ${status}`);

const capture = (state: PaymentState, command: ChangeCommand): Decision => {
  const { status, authorizedAmount } = state;
  if (status !== 'AUTHORIZED') return notAuthorized('capture', 'captured', status);
  const { amountMinor = authorizedAmount } = command;
  if (amountMinor === 'too large' || amountMinor > authorizedAmount)
    return refused(
      'CAPTURE_NOT_ALLOWED',
      `captureAmount must not exceed the authorized amount of ${authorizedAmount}`,
    );
  return intent('PaymentCaptureRequested', state, command, amountMinor);
};

const voidPayment = (state: PaymentState, command: ChangeCommand): Decision => {
  const { status, authorizedAmount } = state;
  if (status !== 'AUTHORIZED') return notAuthorized('void', 'voided', status);
  return intent('PaymentVoidRequested', state, command, authorizedAmount);
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

const CHANGES = { capture, void: voidPayment, refund };

const open = (
  { currency }: PaymentState,
  { kind, ended, amountMinor: amount, reference }: Operation,
  { operationId, reference: providerReference }: OpenCommand,
): Decision => {
  if (kind !== 'create') throw new Error(`a provider opens nothing for a ${kind}`);
  if (ended !== undefined || reference !== undefined) return eventsOf();
  const data = { operationId, amount, currency, providerReference };
  return eventsOf({ type: 'PaymentProviderOpened', data });
};

/** The shopper has the time that was said first. */
const authenticate = (
  { currency }: PaymentState,
  { kind, ended, amountMinor: amount, waitsUntil }: Operation,
  { operationId, expiresAt }: AuthenticateCommand,
): Decision => {
  if (kind !== 'create') throw new Error(`no shopper is needed for a ${kind}`);
  if (ended !== undefined || waitsUntil !== undefined) return eventsOf();
  const data = { operationId, amount, currency, expiresAt };
  return eventsOf({ type: 'PaymentAuthenticationRequested', data });
};

const record = (state: PaymentState, operation: Operation, command: RecordCommand): Decision => {
  // The call may be moving money on what was opened since: the provider has to be asked again.
  const isStale = command.outcome === 'FENCED' && operation.reference !== command.judgedReference;
  if (operation.ended !== undefined || isStale) return eventsOf();
  return eventsOf(...outcomeEvents(state, operation, command));
};
