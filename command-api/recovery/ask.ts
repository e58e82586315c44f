/**
 * Asks the provider what came of an operation without an outcome, and fences what was never carried
 * out (gaps §7). An operation is never sent again; an unknown outcome never becomes a failed one.
 * Any number of processes may ask: the exact revision lets one of them record.
 */
import type { FinalOutcomeDetails } from '../../shared/payment/outcome.ts';
import {
  type Operation,
  unconfirmedOperations,
  unresolvedOperations,
} from '../../shared/payment/payment-state.ts';
import type { CommandDeps } from '../deps.ts';
import { type LoadedPayment, operationOf } from '../loaded-payment.ts';
import { outcomeOf } from '../operate.ts';
import { AT_WORK } from '../provider/port.ts';
import { questionAbout } from '../question.ts';
import type { Budget } from '../request-budget.ts';
import {
  type CommandResponse,
  contradicted,
  earlierAttemptUnknown,
  responseTo,
} from '../responses.ts';
import { waitForInFlight } from '../wait-for-in-flight.ts';
import { recordContradiction } from './contradiction.ts';

/** A provider that says "at work" for longer than a day will never give an outcome. */
const AT_WORK_MS_MAX = 86_400_000;

/** The provider's final word; undefined while the outcome is unknown. */
export const ask = async (
  { provider, nowMs }: Pick<CommandDeps, 'provider' | 'nowMs'>,
  payment: LoadedPayment,
  operation: Operation,
): Promise<FinalOutcomeDetails | 'at work' | undefined> => {
  const question = questionAbout(payment, operation);
  const found = await provider.lookUp(question);
  // A bare "not found" decides nothing: the operation may still be on its way.
  const response = found.outcome === 'NOT_FOUND' ? await provider.fence(question) : found;
  const ageMs = nowMs() - Date.parse(question.requestedAt);
  const isAtWork = response.outcome === 'UNKNOWN' && response.reason === AT_WORK;
  if (isAtWork && ageMs < AT_WORK_MS_MAX) return 'at work';
  return outcomeOf(response);
};

const askAndRecord = async (
  deps: CommandDeps,
  payment: LoadedPayment,
  operation: Operation,
): Promise<LoadedPayment> => {
  if (deps.inFlight.leftMsOf(payment, operation) > 0) return payment;
  const { paymentId } = payment.state;
  const { operationId, kind } = operation;
  const outcome = await ask(deps, payment, operation);
  if (outcome === undefined || outcome === 'at work') return payment;
  const recorded = await deps.paymentLog.recordOutcome(payment, operationId, outcome, 'recovery');
  deps.unresolved.update(paymentId, recorded);
  const { ended } = operationOf(recorded, operationId);
  if (ended === undefined) {
    // Its call has opened something at the provider since: the next question names it.
    deps.logger.warn({ paymentId, operation: kind }, 'a fence came too early: it is not recorded');
    return recorded;
  }
  deps.logger.info({ paymentId, operation: kind, outcome: ended.outcome }, 'outcome recovered');
  return recorded;
};

/**
 * Asks, in the payment's queue, about each operation whose call must have ended. A false `goOn`
 * stops it between two questions. Returns the payment as the store has it then.
 */
export const resolveByAsking = async (
  deps: CommandDeps,
  paymentId: string,
  goOn: () => boolean = () => true,
): Promise<LoadedPayment | undefined> => {
  let payment = await deps.paymentLog.load(paymentId, 'store');
  for (const operation of unresolvedOperations(payment?.state)) {
    // One question may take the provider's whole timeout.
    if (payment === undefined || !goOn()) break;
    payment = await askAndRecord(deps, payment, operation);
  }
  deps.unresolved.update(paymentId, payment);
  return payment;
};

const confirmOne = async (
  deps: CommandDeps,
  payment: LoadedPayment,
  operation: Operation,
): Promise<LoadedPayment> => {
  const outcome = await ask(deps, payment, operation);
  if (outcome === undefined || outcome === 'at work') return payment;
  const { paymentId } = payment.state;
  const { operationId, kind, ended } = operation;
  const after = await deps.queues.run(paymentId, () =>
    deps.paymentLog.confirm(payment, operationId, outcome),
  );
  const { confirmation } = operationOf(after, operationId);
  const fields = {
    paymentId,
    operation: kind,
    operationId,
    amountMinor: operation.amountMinor,
    recorded: ended?.outcome,
    provider: outcome.outcome,
  };
  if (confirmation === undefined)
    deps.logger.info(fields, 'the provider confirmed what was resolved by hand');
  else if (operation.confirmation === 'UNCONFIRMED')
    deps.logger.error(
      fields,
      'the provider contradicts what was resolved by hand; nothing is rewritten: see payments unresolved',
    );
  return after;
};

/**
 * Asks on about what was resolved by hand until the provider is definite (gaps §16, ADR-0099),
 * outside the queue so that no command waits. A contradiction is recorded, and nothing rewritten.
 */
export const confirmByAsking = async (
  deps: CommandDeps,
  payment: LoadedPayment,
  goOn: () => boolean,
): Promise<LoadedPayment> => {
  let after = payment;
  for (const operation of unconfirmedOperations(payment.state)) {
    if (!goOn()) break;
    after = await confirmOne(deps, after, operation);
  }
  return after;
};

/** The payment once no call runs on it, asked about in its queue. Throws BudgetSpent. */
export const resolvedInTurn = (
  deps: CommandDeps,
  paymentId: string,
  budget: Budget,
): Promise<LoadedPayment | undefined> =>
  deps.queues.run(paymentId, async () => {
    const payment = await waitForInFlight(deps, paymentId, 'store', budget);
    return unresolvedOperations(payment?.state).length > 0
      ? resolveByAsking(deps, paymentId)
      : payment;
  });

/**
 * Has the provider fence an attempt that was never sent before its key gets another one (ADR-0103):
 * a log restored to before that attempt would send it, and charge a second time. Undefined once the
 * next attempt may be made. Call it in the payment's queue, or the key's.
 */
export const responseUnlessFenced = async (
  deps: CommandDeps,
  payment: LoadedPayment,
  operation: Operation,
): Promise<CommandResponse | undefined> => {
  const { ended, kind, contradictionEnded } = operation;
  // Two operators have ended the contradiction: its money was given back.
  if (ended?.outcome !== 'NOT_SENT' || contradictionEnded) return undefined;
  const { paymentId } = payment.state;
  // Without a provider's name the one that is set fences it: that one gets the next attempt.
  const { provider: _, ...question } = questionAbout(payment, operation);
  const fence = await deps.provider.fence(question);
  if (fence.outcome === 'UNKNOWN')
    return deps.isLevel() ? responseTo(payment, operation) : earlierAttemptUnknown(paymentId);
  // A void cannot happen twice: the next attempt brings the log level.
  if (fence.outcome !== 'APPROVED' || kind === 'void') return undefined;
  await recordContradiction(deps, payment, operation, fence);
  return contradicted(paymentId);
};
