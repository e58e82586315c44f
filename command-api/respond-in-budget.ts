/** The response of a command within the time that its request has (gaps §11). */
import type { FastifyReply } from 'fastify';
import { AppendOutcomeUnknown } from '../shared/event-store/errors.ts';
import { JSON_TYPE } from '../shared/http/errors.ts';
import type {} from '../shared/http/server/app.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import { type Budget, BudgetSpent, type Waiting, withinBudget } from './request-budget.ts';
import { type CommandResponse, tryLater, unknownOutcome } from './responses.ts';

export type RespondDeps = {
  readModels: Pick<ReadModelsReader, 'waitForRevision'>;
  /** The requests that wait; a stop ends their waits before their connections are cut. */
  waiting: Waiting;
  /** Called once for each command, with its time in seconds. */
  onCommand(command: string, outcome: CommandResponse['outcome'], seconds: number): void;
};

/** How long a response waits for the read models; a GET folds the stream where that was too short. */
const READ_MODELS_WAIT_MS = 500;

/** A command that has been begun for a request. */
type Running = {
  command: string;
  budget: Budget;
  task: Promise<CommandResponse>;
  /** Called when the budget is spent before the command had its turn. */
  repeatsRunning(): boolean;
};

/**
 * Responds with what the command came to, once the read models show it, or with why it is not known
 * when the budget is spent. Throws what the command throws otherwise.
 */
export const respondInBudget = async (
  api: RespondDeps,
  reply: FastifyReply,
  running: Running,
): Promise<FastifyReply> => {
  const { command, budget } = running;
  const startedAt = performance.now();
  const response = await responseOf(running, api.waiting);
  if (response.seen !== undefined) {
    const { paymentId, revision } = response.seen;
    reply.request.paymentId = paymentId;
    await api.readModels.waitForRevision(
      paymentId,
      revision,
      Math.min(READ_MODELS_WAIT_MS, budget.leftMs()),
    );
  }
  api.onCommand(command, response.outcome, (performance.now() - startedAt) / 1000);
  return send(reply, response);
};

/** No provider call follows an intent that may not be stored (operate.ts). */
const storedOrNot = (): CommandResponse =>
  tryLater('SERVICE_UNAVAILABLE', [
    'it is not known whether anything was stored; nothing was sent to the provider',
  ]);

/** The command's response, or why there is none yet. Any other error is app.ts's to reject with. */
const responseOf = async (
  { task, budget, repeatsRunning }: Running,
  waiting: Waiting,
): Promise<CommandResponse> => {
  try {
    return await withinBudget(task, budget, waiting);
  } catch (error) {
    // The append and the budget end at one time: whichever comes first, it means the same.
    if (error instanceof AppendOutcomeUnknown) return storedOrNot();
    if (!(error instanceof BudgetSpent)) throw error;
    if (budget.begunOn !== undefined) return unknownOutcome(budget.begunOn);
    if (budget.appending === true) return storedOrNot();
    return repeatsRunning()
      ? tryLater('IDEMPOTENCY_IN_PROGRESS', ['the first request with this key still runs'])
      : tryLater('SERVICE_UNAVAILABLE', ['the turn of this request did not come in time']);
  }
};

const send = (reply: FastifyReply, { status, body, headers }: CommandResponse): FastifyReply =>
  reply
    .code(status)
    .headers(headers ?? {})
    .type(JSON_TYPE)
    .send(body);
