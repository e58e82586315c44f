/**
 * The one road of authorize, sale, capture, void and refund (gaps §6): append the intent, call the
 * provider once with the intent's operation id and outside any retry loop, record the outcome,
 * respond. An operation that leaves the road without a recorded outcome is given to `unresolved`.
 */

import type { ActionRequired, CallDetails, ProviderOutcome, Unknown } from '../providers/port.ts';
import { AppendOutcomeUnknown } from '../shared/event-store/errors.ts';
import { contextOf, type Sender } from '../shared/http/request.ts';
import { type Budget, BudgetSpent } from '../shared/http/request-budget.ts';
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
  storedTooLate,
  tryLater,
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

/** `payment` holds the intent, later what the provider opened, and the outcome. */
type Running = OperationRequest & {
  intentUnknown?: boolean;
  payment?: LoadedPayment;
  isTooLate?: boolean;
};
type Begun = Running & { payment: LoadedPayment };

/**
 * Runs in the payment's queue and goes on to its end whether or not the request still waits.
 * Undefined where another request was faster, or the operation may not go on: look at the payment
 * again. Throws BudgetSpent, and what the event store throws before the intent is durable.
 */
export const operate = async (
  deps: CommandDeps,
  request: OperationRequest,
): Promise<CommandResponse | undefined> => {
  const running: Running = { ...request };
  const { operationId } = request.command;
  deps.inFlight.begin(operationId);
  try {
    return await carryOut(deps, running);
  } finally {
    deps.inFlight.end(operationId);
    noteIn(deps.unresolved, running);
  }
};

/** An intent that may be stored counts: without an outcome it would bar the payment (gaps §7). */
const noteIn = (
  unresolved: CommandDeps['unresolved'],
  { paymentId, command: { kind, operationId }, intentUnknown, payment }: Running,
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
  running: Running,
): Promise<CommandResponse | undefined> => {
  const { paymentId, budget } = running;
  const executed = await appendIntent(deps, running);
  if (executed.kind !== 'done') return responseWithoutIntent(deps, running, executed);
  budget.begunOn = paymentId;
  const begun = Object.assign(running, { payment: executed.payment });
  const early = await endEarly(deps, begun);
  if (early !== 'go on') return early;
  if (operationIn(begun).ended !== undefined) return responseTo(begun.payment, operationIn(begun));
  const outcome = await callProvider(deps, begun);
  switch (outcome.outcome) {
    case 'UNKNOWN':
      return responseTo(begun.payment, operationIn(begun));
    case 'ACTION_REQUIRED':
      return waitForShopper(deps, begun, outcome);
    default:
      return record(deps, begun, outcome);
  }
};

const operationIn = ({ payment, command }: Begun): Operation =>
  operationOf(payment, command.operationId);

/** No call follows an intent that may not be stored. */
const appendIntent = async (
  { paymentLog, inFlight }: CommandDeps,
  running: Running,
): Promise<Executed> => {
  const { paymentId, command, sender, budget } = running;
  // The client has its response, that nothing was begun, and may have sent the request again.
  if (budget.leftMs() === 0) throw new BudgetSpent();
  budget.appending = true;
  try {
    const executed = await paymentLog.execute(paymentId, command, contextOf(sender), budget);
    // The log does not bring it back to this process (ADR-0068).
    if (executed.kind === 'done') inFlight.sawIntent(command.operationId);
    return executed;
  } catch (error) {
    running.intentUnknown = error instanceof AppendOutcomeUnknown;
    if (running.intentUnknown) inFlight.sawIntent(command.operationId);
    throw error;
  } finally {
    budget.appending = false;
  }
};

const responseWithoutIntent = (
  deps: CommandDeps,
  { paymentId, command }: Running,
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

/** Never throws: the response has to name the payment, and recovery does what was not done. */
const orUnknown = async <T>(
  { logger }: CommandDeps,
  { paymentId }: Begun,
  failed: string,
  work: () => Promise<T>,
): Promise<T | CommandResponse> => {
  try {
    return await work();
  } catch (error) {
    logger.error({ paymentId, err: error }, failed);
    return unknownOutcome(paymentId);
  }
};

const endEarly = (
  deps: CommandDeps,
  begun: Begun,
): Promise<CommandResponse | 'go on' | undefined> =>
  orUnknown(
    deps,
    begun,
    'nothing sent to the provider: the event store failed after the intent; recovery will end it',
    async () => {
      const { paymentId, mayGoOn, payment, command } = begun;
      if (mayGoOn === undefined || (await mayGoOn())) return 'go on';
      if (!isProof(deps, operationIn(begun))) return unknownOutcome(paymentId);
      const { operationId } = command;
      const notSent = { kind: 'record', operationId, outcome: 'NOT_SENT' } as const;
      begun.payment = await deps.paymentLog.record(payment, notSent);
      // The request goes on with another payment, or finds the one that another request made.
      begun.budget.begunOn = undefined;
      return undefined;
    },
  );

/**
 * True where NOT_SENT proves that nothing was carried out. An id under a key is derived, so a lost
 * log may have sent it before: then only the provider's word decides (gaps §7, §17).
 */
const isProof = ({ isLevel }: CommandDeps, { identity }: Operation): boolean =>
  identity.keyHash === undefined || isLevel();

/**
 * Under a key that was looked up nothing was stored or sent, unless a lost log may have sent it, or another
 * process has just begun the same request.
 */
export const nothingUnderKey = (
  { isLevel, sharedStore }: Pick<CommandDeps, 'isLevel' | 'sharedStore'>,
  { identity }: Pick<Operation, 'identity'>,
): Pick<CommandResponse, 'paymentOutcome'> => {
  const isProven = identity.keyHash !== undefined && isLevel() && !sharedStore;
  return isProven ? { paymentOutcome: 'NOT_CHARGED' } : {};
};

/** Attempts under one key that follow each other by themselves. */
const ATTEMPTS_MAX = 16;

/** True where the attempt met a fence of the lost log's: the next is due (gaps §8). 0: no key. */
export const metEarlierFence = (
  { isLevel }: Pick<CommandDeps, 'isLevel'>,
  { outcome }: CommandResponse,
  attempt: number,
): boolean => outcome === 'not_sent' && attempt > 0 && attempt < ATTEMPTS_MAX && !isLevel();

/** The one call that may move money. Never throws. */
const callProvider = async (deps: CommandDeps, begun: Begun): Promise<ProviderOutcome> => {
  const { call, budget, payment } = begun;
  const { paymentId, merchantId, currency } = payment.state;
  const operation = operationIn(begun);
  const { operationId, amount } = operation;
  const opened = async (reference: string): Promise<void> => {
    const command = { kind: 'open', operationId, reference } as const;
    const kept = await deps.paymentLog.record(payment, command);
    const { ended, reference: own } = operationOf(kept, operationId);
    // The opened reference may not be used, so no money may move on it.
    if (ended !== undefined || own !== reference) throw new Error(`${operationId} has ended`);
    begun.payment = kept;
  };
  // With a spent budget the client may have sent the request again; a late call another process may
  // take for ended.
  begun.isTooLate = budget.spent !== true && deps.inFlight.isTooLate(payment, operation);
  const outcome: ProviderOutcome =
    budget.spent === true || begun.isTooLate
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

const waitForShopper = (
  deps: CommandDeps,
  begun: Begun,
  required: ActionRequired,
): Promise<CommandResponse> =>
  orUnknown(
    deps,
    begun,
    'the event store failed after the provider asked for the shopper; recovery will ask again',
    async () => {
      const { operationId } = begun.command;
      const expiresAt = deps.inFlight.waitsUntil(required);
      const command = { kind: 'authenticate', operationId, expiresAt } as const;
      begun.payment = await deps.paymentLog.record(begun.payment, command);
      return actionRequired(begun.payment, operationIn(begun), required.url);
    },
  );

type Ended = Exclude<ProviderOutcome, ActionRequired | Unknown>;

const record = (deps: CommandDeps, begun: Begun, outcome: Ended): Promise<CommandResponse> =>
  orUnknown(
    deps,
    begun,
    'outcome not recorded: the event store failed; recovery will ask the provider for it',
    async () => {
      const { paymentId } = begun;
      const { operationId } = begun.command;
      const command = { kind: 'record', operationId, ...outcome } as const;
      begun.payment = await deps.paymentLog.record(begun.payment, command);
      const { payment } = begun;
      const operation = operationIn(begun);
      logOutcome(deps, paymentId, operation, outcome);
      // It may have been captured or canceled elsewhere. In its turn, after the response.
      if (outcome.outcome === 'DECLINED' && payment.state.status === 'AUTHORIZED')
        void onNotice(deps, paymentId);
      // Nothing was charged, and the key is free for another token (gaps §14).
      if (isFree(operation) && outcome.outcome === 'NOT_SENT' && outcome.reason === 'token_used')
        return {
          ...rejection('BUSINESS_RULE_VIOLATION', [
            `paymentId ${paymentId}`,
            'the token was used already or belongs to a customer',
          ]),
          seen: { paymentId, revision: payment.events.length - 1 },
        };
      const response = responseTo(payment, operation);
      return begun.isTooLate ? storedTooLate(response, paymentId) : response;
    },
  );

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
