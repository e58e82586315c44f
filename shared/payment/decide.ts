/**
 * The rules: a command's events in a state, or its refusal. Pure and total (test/payment/decide-table.ts).
 * A known operation id yields no events, so repeats are safe; so does a state that has something better.
 */
import type {
  ChangeCommand,
  Command,
  ConfirmCommand,
  CreateCommand,
  EraseCommand,
  HoldCommand,
  LaterCommand,
  RecordCommand,
  ResolveCommand,
} from './commands.ts';
import type { PaymentEvent } from './events.ts';
import type { Minor } from './fields.ts';
import { givenFailure } from './response.ts';
import {
  amountOfRefund,
  createOf,
  isFree,
  isNeverCarriedOut,
  isOtherProvider,
  leftOfCapture,
  type Operation,
  operationUnder,
  type PaymentState,
  providerOf,
  unresolvedOperations,
} from './state.ts';
import { minor } from './transitions.ts';

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
export type UnresolvedDecision = { kind: 'unresolved'; operation: Operation };

/** None for a repeated operation id. */
export type Decision =
  | { kind: 'events'; events: PaymentEvent[] }
  | Refused
  | UnresolvedDecision
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
    case 'erase':
      return erase(state, command);
    case 'hold':
      return hold(state, command);
    case 'capture':
    case 'void':
    case 'refund':
      return change(state, command);
  }
  const operation = state.operations.find((o) => o.operationId === command.operationId);
  if (operation === undefined) throw new Error(`operation ${command.operationId} was never begun`);
  const { operationId, amount, reference, waitsUntil } = operation;
  const about = { operationId, amount, currency: state.currency };
  switch (command.kind) {
    case 'open': {
      const data = { ...about, providerReference: command.reference };
      return noted(operation, reference, { type: 'PaymentProviderOpened', data });
    }
    case 'authenticate': {
      const data = { ...about, expiresAt: command.expiresAt };
      return noted(operation, waitsUntil, { type: 'PaymentAuthenticationRequested', data });
    }
    case 'record':
      return record(state, operation, command);
    case 'resolve':
      return eventsOf(...decideByHand(state, operation, command));
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
  const { maxAmount, acceptedBrands } = command.rules;
  const { amount, currency, numberBrand } = command;
  const details: string[] = [];
  if (amount === 'too large' || amount > maxAmount)
    details.push(`amount must not exceed ${maxAmount}`);
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
  const { amount } = command;
  if (broken.length > 0 || amount === 'too large')
    return refused('BUSINESS_RULE_VIOLATION', ...broken);
  const { currency, paymentId, merchantId, captureNow, card, identity } = command;
  const { details, personal, authentication } = command;
  const operation = { operationId, amount, currency };
  const payment = { paymentId, merchantId, captureNow, card, details, personal, authentication };
  const [provider] = command.providers;
  return eventsOf({
    type: 'PaymentCreated',
    data: { ...operation, ...payment, identity, provider },
  });
};

/** Excludes every other command; but where it waits for the shopper, the status refuses those (gaps §21). */
const unresolvedExclusive = (state: PaymentState): Operation | undefined =>
  unresolvedOperations(state).find((o) => o.kind !== 'refund' && o.waitsUntil === undefined);

/** No intent where the payment is at another provider, which alone knows it. */
const intent = (
  type: 'PaymentCaptureRequested' | 'PaymentVoidRequested' | 'PaymentRefundRequested',
  state: PaymentState,
  command: ChangeCommand,
  amount: Minor,
): Decision => {
  const { operationId, identity, reason, providers } = command;
  const madeAt = providerOf(state);
  if (providers.length > 0 && isOtherProvider(madeAt, providers))
    return { kind: 'other provider', provider: madeAt };
  const operation = { operationId, amount, currency: state.currency };
  // After an erasure no text follows that it would have to name.
  const kept = state.personal.erasedAt === undefined ? reason : undefined;
  return eventsOf({ type, data: { ...operation, identity, provider: providers[0], reason: kept } });
};

const notAuthorized = (kind: 'capture' | 'void', done: string, status: string): Refused =>
  refused(NOT_ALLOWED[kind], `only an AUTHORIZED payment can be ${done}; this one is ${status}`);

const capture = (state: PaymentState, command: ChangeCommand): Decision => {
  const { status, authorizedAmount } = state;
  if (status !== 'AUTHORIZED') return notAuthorized('capture', 'captured', status);
  const { amount = authorizedAmount } = command;
  if (amount === 'too large' || amount > authorizedAmount)
    return refused(
      'CAPTURE_NOT_ALLOWED',
      `captureAmount must not exceed the authorized amount of ${authorizedAmount}`,
    );
  return intent('PaymentCaptureRequested', state, command, amount);
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
  const amount = command.amount ?? left;
  if (amount === 'too large' || amount > left || amount < 1)
    return refused('REFUND_NOT_ALLOWED', `refundAmount must not exceed the ${left} left to refund`);
  return intent('PaymentRefundRequested', state, command, amount);
};

const CHANGES = { capture, void: voidPayment, refund };

/** Once, of a create without an outcome: the shopper has the time that was said first. */
const noted = (
  { kind, ended }: Operation,
  earlier: string | undefined,
  event: Extract<
    PaymentEvent,
    { type: 'PaymentProviderOpened' | 'PaymentAuthenticationRequested' }
  >,
): Decision => {
  if (kind !== 'create') throw new Error(`${event.type} of a ${kind}`);
  return ended === undefined && earlier === undefined ? eventsOf(event) : eventsOf();
};

const record = (state: PaymentState, operation: Operation, command: RecordCommand): Decision => {
  // The call may be moving money on what was opened since: the provider has to be asked again.
  const isStale = command.outcome === 'FENCED' && operation.reference !== command.judgedReference;
  if (operation.ended !== undefined || isStale) return eventsOf();
  return eventsOf(...outcomeEvents(state, operation, command));
};

const DECLINED_EVENTS = {
  create: 'PaymentFailed',
  capture: 'PaymentCaptureDeclined',
  void: 'PaymentVoidDeclined',
  refund: 'PaymentRefundDeclined',
} as const;

/** Undefined for none: no event has an amount of 0. */
const restOf = (authorized: Minor, captured: Minor): Minor | undefined =>
  captured === authorized ? undefined : minor(authorized - captured);

/** One, or two for an approved sale. */
const outcomeEvents = (
  { currency, captureNow, authorizedAmount }: PaymentState,
  { kind, operationId, amount, waitsUntil }: Operation,
  command: RecordCommand,
): PaymentEvent[] => {
  const { outcome, resolution } = command;
  if (outcome !== 'APPROVED') {
    // A fence ends the time of a shopper who did not come (gaps §21).
    const failureCode =
      waitsUntil === undefined ? 'PROVIDER_UNAVAILABLE' : 'AUTHENTICATION_REQUIRED';
    const failure = givenFailure(outcome === 'DECLINED' ? command : { failureCode });
    const data = { operationId, amount, currency, ...failure, outcome, resolution };
    return [{ type: DECLINED_EVENTS[kind], data }];
  }
  const { providerReference, authorizationExpiresAt } = command;
  const data = { operationId, amount, currency, providerReference, resolution };
  switch (kind) {
    case 'create':
      if (!captureNow)
        return [{ type: 'PaymentAuthorized', data: { ...data, authorizationExpiresAt } }];
      return [
        { type: 'PaymentAuthorized', data },
        { type: 'PaymentCaptured', data },
      ];
    case 'capture': {
      const releasedAmount = restOf(authorizedAmount, amount);
      return [{ type: 'PaymentCaptured', data: { ...data, releasedAmount } }];
    }
    case 'void':
      return [{ type: 'PaymentVoided', data }];
    case 'refund':
      return [{ type: 'PaymentRefunded', data }];
  }
};

export const APPROVAL_MS_MAX = 86_400_000;

/** Two persons are told apart by the `sub` of a token without outer spaces and invisible characters. */
export const personOf = (subject: string): string =>
  subject
    .replace(/\p{Cf}/gu, '')
    .normalize('NFC')
    .trim();

/** Records an operator's request, then the outcome as soon as another operator requests the same. */
const decideByHand = (
  state: PaymentState,
  operation: Operation,
  { outcome, evidence, withoutFence, actor, atMs }: ResolveCommand,
): PaymentEvent[] => {
  const { operationId, amount, ended, confirmation, resolutionRequest } = operation;
  if (ended !== undefined && confirmation !== 'CONTRADICTED') return [];
  const about = { operationId, amount, currency: state.currency, outcome };
  const isRequested =
    resolutionRequest?.outcome === outcome &&
    (resolutionRequest.withoutFence ?? false) === withoutFence &&
    atMs - Date.parse(resolutionRequest.requestedAt) <= APPROVAL_MS_MAX;
  const fence = withoutFence || undefined;
  if (!isRequested) {
    const data = { ...about, evidence, withoutFence: fence, requestedBy: actor };
    return [{ type: 'PaymentResolutionRequested', data }];
  }
  const { requestedBy, evidence: requestEvidence } = resolutionRequest;
  if (personOf(requestedBy) === personOf(actor)) return [];
  const resolution = { evidence, requestedBy, requestEvidence, withoutFence: fence };
  if (ended !== undefined)
    return [{ type: 'PaymentOutcomeConfirmed', data: { ...about, resolution } }];
  // An operator knows no reason of a decline.
  const details =
    outcome === 'APPROVED' ? { outcome } : { outcome, failureCode: 'UNKNOWN_DECLINE' as const };
  return outcomeEvents(state, operation, { kind: 'record', operationId, ...details, resolution });
};

/** What the provider says of an operation that two operators resolved. */
const confirmOutcome = (
  { currency }: PaymentState,
  operation: Operation,
  command: ConfirmCommand,
): PaymentEvent[] => {
  const { operationId, amount, ended, confirmation, contradictionEnded } = operation;
  if (ended === undefined || contradictionEnded) return [];
  // The provider gave this outcome itself.
  if (confirmation === undefined && !isNeverCarriedOut(operation)) return [];
  // NOT_SENT is a call's outcome, never the response to a question.
  const outcome = command.outcome === 'NOT_SENT' ? 'FENCED' : command.outcome;
  const providerReference = 'providerReference' in command ? command.providerReference : undefined;
  const data = { operationId, amount, currency, outcome, providerReference };
  // A decline and a fence both say that no money moved.
  if ((ended.outcome === 'APPROVED') === (outcome === 'APPROVED'))
    return confirmation === undefined ? [] : [{ type: 'PaymentOutcomeConfirmed', data }];
  return confirmation === 'CONTRADICTED' ? [] : [{ type: 'PaymentOutcomeContradicted', data }];
};

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
      const releasedAmount = restOf(authorizedAmount, amount);
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
      const isTooMuch = amount > leftOfCapture(state);
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

const DAY_MS = 86_400_000;

const whyNotErased = (
  state: PaymentState,
  { reason, atMs, holdDays }: EraseCommand,
): string | undefined => {
  const { status, erasure, disputes = [], updatedAt } = state;
  if (erasure.hasClear)
    return 'an earlier version stored it in the clear, so it cannot be erased from the log';
  if (status === 'PENDING' || status === 'AUTHORIZED') return `the payment is ${status}`;
  if (state.unresolved.length > 0) return 'an operation of the payment is unresolved';
  if (disputes.some((one) => one.status === 'OPEN')) return 'the payment is disputed';
  if (erasure.heldBy !== undefined) return `the payment is held: ${erasure.heldBy}`;
  const isYoung = atMs - Date.parse(updatedAt) < holdDays * DAY_MS;
  if (isYoung && reason !== 'COURT_ORDER')
    return `the payment changed within the last ${holdDays} days`;
  return undefined;
};

/** None where it is erased already, and where one person requests twice. */
const erase = (state: PaymentState, command: EraseCommand): Decision => {
  if (state.personal.erasedAt !== undefined) return eventsOf();
  const why = whyNotErased(state, command);
  if (why !== undefined) return refused('BUSINESS_RULE_VIOLATION', why);
  const { reason, ticket, actor, atMs, approvers } = command;
  const { requested, keys } = state.erasure;
  const isRequested =
    requested?.reason === reason &&
    requested.ticket === ticket &&
    atMs - Date.parse(requested.at) <= APPROVAL_MS_MAX;
  const requestedBy = isRequested ? requested.requestedBy : actor;
  const order = { reason, ticket, requestedBy };
  if (approvers === 1 || personOf(requestedBy) !== personOf(actor))
    return eventsOf({ type: 'PaymentPersonalDataErased', data: { ...order, keys: [...keys] } });
  return isRequested ? eventsOf() : eventsOf({ type: 'PaymentErasureRequested', data: order });
};

const hold = (state: PaymentState, { ticket }: HoldCommand): Decision => {
  if (state.personal.erasedAt !== undefined)
    return refused('BUSINESS_RULE_VIOLATION', 'the payment is erased already');
  const { heldBy } = state.erasure;
  if ((heldBy === undefined) === (ticket === undefined)) return eventsOf();
  if (ticket !== undefined) return eventsOf({ type: 'PaymentErasureHeld', data: { ticket } });
  return eventsOf({ type: 'PaymentErasureReleased', data: { ticket: String(heldBy) } });
};
