/**
 * The one road of every operation (gaps §6): append the intent, call the provider once with the intent's id,
 * outside any retry loop, record the outcome, respond. One without a recorded outcome goes to `unresolved`.
 */
import type { ActionRequired, CallDetails, ProviderOutcome, Unknown } from '../providers/port.ts';
import { AppendOutcomeUnknown } from '../shared/event-store/errors.ts';
import { contextOf } from '../shared/http/request.ts';
import { type Begins, BudgetSpent } from '../shared/http/request-budget.ts';
import type { ChangeCommand, CreateCommand } from '../shared/payment/commands.ts';
import { isFree, type Operation } from '../shared/payment/state.ts';
import type { CommandDeps } from './deps.ts';
import { type Executed, type LoadedPayment, operationOf } from './payment-log.ts';
import { onNotice } from './recovery/later-results.ts';
import {
  actionRequired,
  type CommandResponse,
  rejection,
  responseTo,
  storedLate,
  tryLater,
  unknownOutcome,
} from './responses.ts';

export type OperationRequest = Begins & {
  paymentId: string;
  command: CreateCommand | ChangeCommand;
  call: CallDetails;
  /** Called once the intent is durable; false: the operation ends without a provider call. */
  mayGoOn?: () => Promise<boolean>;
};

/** `payment` is as last seen: with the intent, what the provider opened, and the outcome. */
type Carried = { response: CommandResponse | undefined; payment: LoadedPayment };

/**
 * Runs in the payment's turn to its end, even if the request no longer waits. Undefined if another was faster
 * or it may not go on: look again. Throws BudgetSpent, and what the store throws before the intent is durable.
 */
export const operate = async (
  deps: CommandDeps,
  request: OperationRequest,
): Promise<CommandResponse | undefined> => {
  const { command, budget } = request;
  // The client has its response, that nothing was begun, and may have sent the request again.
  if (budget.leftMs() === 0) throw new BudgetSpent();
  deps.inFlight.begin(command.operationId);
  let payment: LoadedPayment | undefined;
  try {
    const executed = await appendIntent(deps, request);
    if (executed.kind !== 'done') return responseWithoutIntent(deps, request, executed);
    ({ payment } = executed);
    const carried = await carryOut(deps, request, payment).catch(unknownAfter(deps, payment));
    ({ payment } = carried);
    // The request goes on with another payment.
    if (carried.response === undefined) request.reach(undefined);
    return carried.response;
  } finally {
    deps.inFlight.end(command.operationId);
    if (payment !== undefined) noteIn(deps.unresolved, command, payment);
  }
};

const noteIn = (
  unresolved: CommandDeps['unresolved'],
  { kind, operationId }: OperationRequest['command'],
  payment: LoadedPayment,
): void => {
  const { paymentId } = payment.state;
  if (operationOf(payment, operationId).ended === undefined)
    unresolved.add(paymentId, operationId, payment);
  // Another process may have resolved an earlier operation; a create has none before it.
  else if (kind !== 'create') unresolved.update(paymentId, payment);
};

/** The response has to name the payment, and recovery does what was not done. */
const unknownAfter =
  ({ logger }: CommandDeps, payment: LoadedPayment) =>
  (error: unknown): Carried => {
    const { paymentId } = payment.state;
    logger.error(
      { paymentId, err: error },
      'the event store failed after the intent; recovery will ask the provider for the outcome',
    );
    return { response: unknownOutcome(paymentId), payment };
  };

const appendIntent = async (
  { paymentLog, inFlight, unresolved }: CommandDeps,
  { paymentId, command, sender, budget, reach }: OperationRequest,
): Promise<Executed> => {
  const { operationId } = command;
  reach('appending');
  try {
    const executed = await paymentLog.execute(paymentId, command, contextOf(sender), budget);
    const isDone = executed.kind === 'done';
    reach(isDone ? { begunOn: paymentId } : undefined);
    // The log does not bring it back to this process (ADR-0068).
    if (isDone) inFlight.sawIntent(operationId);
    return executed;
  } catch (error) {
    reach(undefined);
    // No call follows it. Without an outcome it would bar the payment (gaps §7).
    if (error instanceof AppendOutcomeUnknown) unresolved.add(paymentId, operationId, undefined);
    throw error;
  }
};

/** `begun` holds the intent. Throws what the event store throws. */
const carryOut = async (
  deps: CommandDeps,
  request: OperationRequest,
  begun: LoadedPayment,
): Promise<Carried> => {
  const { mayGoOn, command } = request;
  const { operationId } = command;
  if (mayGoOn !== undefined && !(await mayGoOn())) return endUnsent(deps, operationId, begun);
  if (operationOf(begun, operationId).ended !== undefined) return carried(begun, operationId);
  const { outcome, payment } = await callProvider(deps, request, begun);
  switch (outcome.outcome) {
    case 'UNKNOWN':
      return carried(payment, operationId);
    case 'ACTION_REQUIRED':
      return waitForShopper(deps, operationId, payment, outcome);
    default:
      return record(deps, operationId, payment, outcome);
  }
};

const carried = (payment: LoadedPayment, operationId: string): Carried => ({
  response: responseTo(payment, operationOf(payment, operationId)),
  payment,
});

/** It may not go on: another payment has its reference. */
const endUnsent = async (
  deps: CommandDeps,
  operationId: string,
  payment: LoadedPayment,
): Promise<Carried> => {
  if (!isProof(deps, operationOf(payment, operationId)))
    return { response: unknownOutcome(payment.state.paymentId), payment };
  const notSent = { kind: 'record', operationId, outcome: 'NOT_SENT' } as const;
  return { response: undefined, payment: await deps.paymentLog.record(payment, notSent) };
};

const responseWithoutIntent = (
  deps: CommandDeps,
  { paymentId, command }: OperationRequest,
  executed: Exclude<Executed, { kind: 'done' }>,
): CommandResponse | undefined => {
  // A refusal because of an operation that still runs in another process is not final.
  if (deps.inFlight.leftMs(executed.payment) > 0) return undefined;
  switch (executed.kind) {
    case 'refused':
      return rejection(executed.code, executed.details);
    case 'unresolved':
      return unknownOutcome(paymentId);
    case 'other provider':
      // An operator has to set the earlier provider again, or to say that it is the same (ADR-0247).
      return {
        ...tryLater(
          'PROVIDER_UNAVAILABLE',
          'the payment was made at another provider than the one in use now; nothing was stored or sent',
          { 'retry-after': '60' },
        ),
        ...nothingUnderKey(deps, command),
      };
    case 'exists':
    case 'repeated':
      return undefined;
  }
};

/** Whether NOT_SENT proves that nothing ran: a lost log may have sent a key's derived id (gaps §7, §17). */
const isProof = ({ isLevel }: CommandDeps, { identity }: Operation): boolean =>
  identity.keyHash === undefined || isLevel();

/** Nothing was stored or sent under this key, unless by a lost log, or by another process just now. */
export const nothingUnderKey = (
  { isLevel, sharedStore }: Pick<CommandDeps, 'isLevel' | 'sharedStore'>,
  { identity }: Pick<Operation, 'identity'>,
): Pick<CommandResponse, 'paymentOutcome'> => {
  const isProven = identity.keyHash !== undefined && isLevel() && !sharedStore;
  return isProven ? { paymentOutcome: 'NOT_CHARGED' } : {};
};

/** The one call that may move money. Never throws. */
const callProvider = async (
  deps: CommandDeps,
  { command: { operationId }, call, budget }: OperationRequest,
  begun: LoadedPayment,
): Promise<{ outcome: ProviderOutcome; payment: LoadedPayment }> => {
  const { paymentId, merchantId, currency } = begun.state;
  const operation = operationOf(begun, operationId);
  const { amount } = operation;
  let payment = begun;
  const opened = async (reference: string): Promise<void> => {
    const command = { kind: 'open', operationId, reference } as const;
    const kept = await deps.paymentLog.record(payment, command);
    const { ended, reference: own } = operationOf(kept, operationId);
    // The opened reference may not be used, so no money may move on it.
    if (ended !== undefined || own !== reference) throw new Error(`${operationId} has ended`);
    payment = kept;
  };
  // After the budget the client may have sent it again; another process may take a late call for ended.
  let outcome: ProviderOutcome = { outcome: 'NOT_SENT' };
  if (budget.leftMs() > 0)
    outcome = deps.inFlight.isTooLate(begun, operation)
      ? { outcome: 'NOT_SENT', reason: 'stored_late' }
      : await deps.provider.execute(
          { operationId, paymentId, merchantId, amount, currency, ...call },
          opened,
        );
  const isUnproven = outcome.outcome === 'NOT_SENT' && outcome.reason !== 'fenced';
  if (isUnproven && !isProof(deps, operation)) outcome = { outcome: 'UNKNOWN', reason: 'unproven' };
  return { outcome, payment };
};

const waitForShopper = async (
  deps: CommandDeps,
  operationId: string,
  before: LoadedPayment,
  required: ActionRequired,
): Promise<Carried> => {
  const expiresAt = deps.inFlight.waitsUntil(required);
  const command = { kind: 'authenticate', operationId, expiresAt } as const;
  const payment = await deps.paymentLog.record(before, command);
  const operation = operationOf(payment, operationId);
  return { response: actionRequired(payment, operation, required.url), payment };
};

const tokenUsed = (paymentId: string): string[] => [
  `paymentId ${paymentId}`,
  'the token was used already or belongs to a customer',
];

type Ended = Exclude<ProviderOutcome, ActionRequired | Unknown>;

const record = async (
  deps: CommandDeps,
  operationId: string,
  before: LoadedPayment,
  outcome: Ended,
): Promise<Carried> => {
  const command = { kind: 'record', operationId, ...outcome } as const;
  const payment = await deps.paymentLog.record(before, command);
  const { paymentId, status } = payment.state;
  const operation = operationOf(payment, operationId);
  logOutcome(deps, paymentId, operation, outcome);
  // It may have been captured or canceled elsewhere. In its turn, after the response.
  if (outcome.outcome === 'DECLINED' && status === 'AUTHORIZED') void onNotice(deps, paymentId);
  const seen = { paymentId, revision: payment.events.length - 1 };
  // Nothing was charged, and the key is free for another token (gaps §14).
  const reason = isFree(operation) && outcome.outcome === 'NOT_SENT' ? outcome.reason : undefined;
  if (reason === 'token_used')
    return {
      response: { ...rejection('BUSINESS_RULE_VIOLATION', tokenUsed(paymentId)), seen },
      payment,
    };
  const response = responseTo(payment, operation);
  return {
    response: reason === 'stored_late' ? storedLate(response, paymentId) : response,
    payment,
  };
};

const logOutcome = (
  { logger }: CommandDeps,
  paymentId: string,
  operation: Operation,
  said: Ended,
): void => {
  const { kind, ended: { outcome: recorded } = {} } = operation;
  const about = { paymentId, operation: kind };
  // The log keeps the first outcome; a provider that now gives another one contradicts itself.
  if (recorded !== said.outcome && !(isFree(operation) && said.outcome === 'NOT_SENT'))
    logger.error(
      { ...about, recorded, provider: said.outcome },
      'the provider reported another outcome than the recorded one; reconcile with its ledger',
    );
  if (said.outcome !== 'DECLINED') return;
  // Neither a fault nor a reason for the circuit breaker: the shopper's bank decides.
  const { failureCode, providerFailureCode } = said;
  logger.info(
    { ...about, failureCode, ...(providerFailureCode && { providerFailureCode }) },
    'the provider declined the operation',
  );
};
