/**
 * The one road of authorize, sale, capture, void and refund (gaps §6): append the intent, call the
 * provider once with the intent's operation id and outside any retry loop, record the outcome,
 * respond. An operation that leaves the road without a recorded outcome is given to `unresolved`.
 */
import { AppendOutcomeUnknown } from '../shared/event-store/errors.ts';
import { contextOf, type Sender } from '../shared/http/request.ts';
import type { ChangeCommand, CreateCommand } from '../shared/payment/commands.ts';
import { isFree, type Operation } from '../shared/payment/state.ts';
import type { CommandDeps } from './deps.ts';
import { type Executed, type LoadedPayment, operationOf } from './payment-log.ts';
import type { ActionRequired, CallDetails, ProviderOutcome, Unknown } from './provider/port.ts';
import { onNotice } from './recovery/later-results.ts';
import { type Budget, BudgetSpent } from './request-budget.ts';
import {
  actionRequired,
  atOtherProvider,
  type CommandResponse,
  rejection,
  responseTo,
  tokenUsed,
  unknownOutcome,
} from './responses.ts';

export type OperationRequest = {
  paymentId: string;
  command: CreateCommand | ChangeCommand;
  call: CallDetails;
  sender: Sender;
  budget: Budget;
  /** Called once the intent is durable; false: the operation ends without a provider call. */
  mayGoOn?: () => Promise<boolean>;
};

type Progress = {
  intentUnknown?: boolean;
  /** Holds the intent, later what the provider opened, and the outcome. */
  payment?: LoadedPayment;
};

/**
 * Runs in the payment's queue and goes on to its end whether or not the request still waits.
 * Undefined where another request was faster, or the operation may not go on: look at the payment
 * again. Throws BudgetSpent, and what the event store throws before the intent is durable.
 */
export const operate = async (
  deps: CommandDeps,
  request: OperationRequest,
): Promise<CommandResponse | undefined> => {
  const { operationId } = request.command;
  const progress: Progress = {};
  deps.inFlight.begin(operationId);
  try {
    return await carryOut(deps, request, progress);
  } finally {
    deps.inFlight.end(operationId);
    noteIn(deps.unresolved, request, progress);
  }
};

/** An intent that may be stored counts: without an outcome it would bar the payment (gaps §7). */
const noteIn = (
  unresolved: CommandDeps['unresolved'],
  { paymentId, command: { kind, operationId } }: OperationRequest,
  { intentUnknown, payment }: Progress,
): void => {
  const isUnresolved =
    payment === undefined
      ? intentUnknown === true
      : operationOf(payment, operationId).ended === undefined;
  if (isUnresolved) unresolved.add(paymentId, operationId, payment);
  // Another process may have resolved an earlier operation; a create has none before it.
  else if (payment !== undefined && kind !== 'create') unresolved.update(paymentId, payment);
};

const carryOut = async (
  deps: CommandDeps,
  request: OperationRequest,
  progress: Progress,
): Promise<CommandResponse | undefined> => {
  const { paymentId, command, budget } = request;
  const executed = await appendIntent(deps, request, progress);
  if (executed.kind !== 'done') return responseWithoutIntent(deps, paymentId, executed);
  const { payment } = executed;
  progress.payment = payment;
  budget.begunOn = paymentId;
  const operation = operationOf(payment, command.operationId);
  const early = await endEarly(deps, request, progress, payment, operation);
  if (early !== undefined) return early.response;
  if (operation.ended !== undefined) return responseTo(payment, operation);
  const outcome = await callProvider(deps, request, progress, payment, operation);
  switch (outcome.outcome) {
    case 'UNKNOWN':
      return responseTo(progress.payment, operation);
    case 'ACTION_REQUIRED':
      return waitForShopper(deps, request, progress, progress.payment, outcome);
    default:
      return record(deps, request, progress, progress.payment, outcome);
  }
};

/** No call follows an intent that may not be stored. */
const appendIntent = async (
  { paymentLog, inFlight }: CommandDeps,
  { paymentId, command, sender, budget }: OperationRequest,
  progress: Progress,
): Promise<Executed> => {
  // The client has its response, that nothing was begun, and may have sent the request again.
  if (budget.leftMs() === 0) throw new BudgetSpent();
  budget.appending = true;
  try {
    const executed = await paymentLog.execute(paymentId, command, contextOf(sender), budget);
    // The log does not bring it back to this process (ADR-0068).
    if (executed.kind === 'done') inFlight.sawIntent(command.operationId);
    return executed;
  } catch (error) {
    progress.intentUnknown = error instanceof AppendOutcomeUnknown;
    if (progress.intentUnknown) inFlight.sawIntent(command.operationId);
    throw error;
  } finally {
    budget.appending = false;
  }
};

const responseWithoutIntent = (
  { inFlight }: CommandDeps,
  paymentId: string,
  executed: Exclude<Executed, { kind: 'done' }>,
): CommandResponse | undefined => {
  // A refusal because of an operation that still runs in another process is not final.
  if (inFlight.leftMs(executed.payment) > 0) return undefined;
  switch (executed.kind) {
    case 'refused':
      return rejection(executed.code, executed.details);
    case 'unresolved':
      return unknownOutcome(paymentId);
    case 'other provider':
      return atOtherProvider();
    case 'exists':
    case 'repeated':
      return undefined;
  }
};

/** Undefined: go on to the call. Never throws: the response has to name the payment. */
const endEarly = async (
  deps: CommandDeps,
  { paymentId, budget, mayGoOn }: OperationRequest,
  progress: Progress,
  payment: LoadedPayment,
  operation: Operation,
): Promise<{ response: CommandResponse | undefined } | undefined> => {
  try {
    if (mayGoOn === undefined || (await mayGoOn())) return undefined;
    if (!isProof(deps, operation)) return { response: unknownOutcome(paymentId) };
    const { operationId } = operation;
    const command = { kind: 'record', operationId, outcome: 'NOT_SENT' } as const;
    progress.payment = await deps.paymentLog.record(payment, command);
    // The request goes on with another payment, or finds the one that another request made.
    budget.begunOn = undefined;
    return { response: undefined };
  } catch (error) {
    deps.logger.error(
      { paymentId, err: error },
      'nothing sent to the provider: the event store failed after the intent; recovery will end it',
    );
    return { response: unknownOutcome(paymentId) };
  }
};

/**
 * True where NOT_SENT proves that nothing was carried out. An id under a key is derived, so a lost
 * log may have sent it before: then only the provider's word decides (gaps §7, §17).
 */
const isProof = ({ isLevel }: CommandDeps, { identity }: Operation): boolean =>
  identity.keyHash === undefined || isLevel();

/** Attempts under one key that follow each other by themselves. */
const ATTEMPTS_MAX = 16;

/** True where the attempt met a fence of the lost log's: the next is due (gaps §8). 0: no key. */
export const metEarlierFence = (
  { isLevel }: Pick<CommandDeps, 'isLevel'>,
  { outcome }: CommandResponse,
  attempt: number,
): boolean => outcome === 'not_sent' && attempt > 0 && attempt < ATTEMPTS_MAX && !isLevel();

type Ended = Exclude<ProviderOutcome, ActionRequired | Unknown>;

/** The one call that may move money. Never throws. */
const callProvider = async (
  deps: CommandDeps,
  { call, budget }: OperationRequest,
  progress: Progress,
  payment: LoadedPayment,
  operation: Operation,
): Promise<ProviderOutcome> => {
  const { paymentId, merchantId, currency } = payment.state;
  const { operationId, amountMinor: amount } = operation;
  const opened = async (reference: string): Promise<void> => {
    const command = { kind: 'open', operationId, reference } as const;
    const kept = await deps.paymentLog.record(payment, command);
    const { ended, reference: own } = operationOf(kept, operationId);
    // The opened reference may not be used, so no money may move on it.
    if (ended !== undefined || own !== reference) throw new Error(`${operationId} has ended`);
    progress.payment = kept;
  };
  // With a spent budget the client may have sent the request again; a late call another process may
  // take for ended.
  const outcome: ProviderOutcome =
    budget.spent === true || deps.inFlight.isTooLate(payment, operation)
      ? { outcome: 'NOT_SENT' }
      : await deps.provider.execute(
          { operationId, paymentId, merchantId, amount, currency, ...call },
          opened,
        );
  const isUnproven = outcome.outcome === 'NOT_SENT' && outcome.reason !== 'fenced';
  return isUnproven && !isProof(deps, operation)
    ? { outcome: 'UNKNOWN', reason: 'unproven' }
    : outcome;
};

/** Never throws: what the store does not take is left to recovery, which asks the provider again. */
const waitForShopper = async (
  deps: CommandDeps,
  { paymentId, command: { operationId } }: OperationRequest,
  progress: Progress,
  payment: LoadedPayment,
  required: ActionRequired,
): Promise<CommandResponse> => {
  try {
    const expiresAt = deps.inFlight.waitsUntil(required);
    const command = { kind: 'authenticate', operationId, expiresAt } as const;
    const waiting = await deps.paymentLog.record(payment, command);
    progress.payment = waiting;
    return actionRequired(waiting, operationOf(waiting, operationId), required.url);
  } catch (error) {
    deps.logger.error(
      { paymentId, err: error },
      'the event store failed after the provider asked for the shopper; recovery will ask again',
    );
    return unknownOutcome(paymentId);
  }
};

/** Never throws: an outcome that the store does not take is left to recovery. */
const record = async (
  deps: CommandDeps,
  { paymentId, command: { operationId } }: OperationRequest,
  progress: Progress,
  payment: LoadedPayment,
  outcome: Ended,
): Promise<CommandResponse> => {
  try {
    const command = { kind: 'record', operationId, ...outcome } as const;
    const recorded = await deps.paymentLog.record(payment, command);
    progress.payment = recorded;
    const operation = operationOf(recorded, operationId);
    logDifference(deps, paymentId, operation, outcome);
    logDecline(deps, paymentId, operation, outcome);
    // It may have been captured or canceled elsewhere. In its turn, after the response.
    if (outcome.outcome === 'DECLINED' && recorded.state.status === 'AUTHORIZED')
      void onNotice(deps, paymentId);
    const isUsed = outcome.outcome === 'NOT_SENT' && outcome.reason === 'token_used';
    return isUsed && isFree(operation) ? tokenUsed(recorded) : responseTo(recorded, operation);
  } catch (error) {
    deps.logger.error(
      { paymentId, err: error },
      'outcome not recorded: the event store failed; recovery will ask the provider for it',
    );
    return unknownOutcome(paymentId);
  }
};

/** Neither a fault nor a reason for the circuit breaker: the shopper's bank decides. */
const logDecline = (
  { logger }: CommandDeps,
  paymentId: string,
  { kind: operation }: Operation,
  outcome: Ended,
): void => {
  if (outcome.outcome !== 'DECLINED') return;
  const { failureCode, providerFailureCode } = outcome;
  logger.info(
    { paymentId, operation, failureCode, ...(providerFailureCode && { providerFailureCode }) },
    'the provider declined the operation',
  );
};

/** The log keeps the first outcome; a provider that now gives another one contradicts itself. */
const logDifference = (
  { logger }: CommandDeps,
  paymentId: string,
  operation: Operation,
  late: Ended,
): void => {
  const recorded = operation.ended?.outcome;
  if (recorded === late.outcome || (isFree(operation) && late.outcome === 'NOT_SENT')) return;
  logger.error(
    { paymentId, operation: operation.kind, recorded, provider: late.outcome },
    'the provider answered other than what is recorded; reconcile with its ledger',
  );
};
