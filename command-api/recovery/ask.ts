/**
 * Asks the provider what came of an operation that has no outcome, fences what was never carried
 * out, and records the response (gaps §7). An operation is never sent again, and an unknown outcome
 * never becomes a failed one. Several processes may ask at once: asking and fencing are safe to
 * repeat, and the exact revision lets one of them record the outcome.
 */
import type { FinalOutcomeDetails } from '../../shared/payment/outcome.ts';
import { type Operation, unresolvedOperations } from '../../shared/payment/payment-state.ts';
import type { CommandDeps } from '../deps.ts';
import { type LoadedPayment, operationOf } from '../loaded-payment.ts';
import { outcomeOf } from '../operate.ts';
import { AT_WORK, type OperationQuestion } from '../provider/port.ts';
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

/** A provider that says for longer than a day that it is at work will never give an outcome. */
const AT_WORK_MS_MAX = 86_400_000;

/**
 * What the provider says of an operation for good; undefined while the outcome is unknown,
 * `at work` where the provider says that it still works on the operation.
 */
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
 * Asks about each operation of the payment that has no outcome and whose call cannot be running any
 * more, and records what is definite; stops between two questions when `goOn` says so. Call it in
 * the payment's queue. Returns the payment as it is afterwards, read from the store; undefined where
 * no such payment exists.
 */
export const resolveByAsking = async (
  deps: CommandDeps,
  paymentId: string,
  goOn: () => boolean = () => true,
): Promise<LoadedPayment | undefined> => {
  let payment = await deps.paymentLog.load(paymentId, 'store');
  for (const operation of unresolvedOperations(payment?.state)) {
    // One question may take the provider's whole timeout, and a stop has a limit of its own.
    if (payment === undefined || !goOn()) break;
    payment = await askAndRecord(deps, payment, operation);
  }
  deps.unresolved.update(paymentId, payment);
  return payment;
};

/**
 * The payment, if it exists, once no call runs on it, with the outcomes that the provider gives for what is
 * unresolved. Waits for its turn in the payment's queue. Throws BudgetSpent.
 */
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

/** The next attempt goes to the provider that is set, so that one fences it, whoever was set before. */
const neverSentHere = ({ provider: _, ...question }: OperationQuestion): OperationQuestion =>
  question;

/**
 * Has the provider fence an attempt that was never sent, before its key gets another one (ADR-0103).
 * The provider has heard nothing of such an attempt: a log that was put back to a state before it
 * would send it, and charge a second time. Undefined once the next attempt may be made, else the
 * response. Call it in the payment's queue, or in that of the key.
 */
export const responseUnlessFenced = async (
  deps: CommandDeps,
  payment: LoadedPayment,
  operation: Operation,
): Promise<CommandResponse | undefined> => {
  const { ended, kind, contradictionEnded } = operation;
  // Two operators have ended what the provider said of it: its money was given back.
  if (ended?.outcome !== 'NOT_SENT' || contradictionEnded) return undefined;
  const { paymentId } = payment.state;
  const fence = await deps.provider.fence(neverSentHere(questionAbout(payment, operation)));
  if (fence.outcome === 'UNKNOWN')
    return deps.isLevel() ? responseTo(payment, operation) : earlierAttemptUnknown(paymentId);
  // What is void already cannot be voided twice: the next attempt brings the log level.
  if (fence.outcome !== 'APPROVED' || kind === 'void') return undefined;
  await recordContradiction(deps, payment, operation, fence);
  return contradicted(paymentId);
};
