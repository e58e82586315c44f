/**
 * POST capture, void and refund, in the payment's queue: waits for what runs on it elsewhere, asks
 * about what is unresolved, recognises a repeat, and gives a new operation to operate.ts (gaps §5
 * to §8).
 */

import { recognisedBy } from '../shared/http/idempotency.ts';
import type { Sender } from '../shared/http/request.ts';
import { type Budget, BudgetSpent } from '../shared/http/request-budget.ts';
import type { RequestedAmount } from '../shared/payment/commands.ts';
import { decide } from '../shared/payment/decide.ts';
import {
  authorizationOf,
  isFree,
  isOfSameRequest,
  isUnderKeyOf,
  type Operation,
  operationUnder,
  type Recognised,
  unresolvedOperations,
} from '../shared/payment/state.ts';
import { newOperationId } from '../shared/runtime/ids.ts';
import type { CommandDeps } from './deps.ts';
import { waitForInFlight } from './in-flight.ts';
import { metEarlierFence, operate } from './operate.ts';
import { type LoadedPayment, notInLog, operationOf } from './payment-log.ts';
import { CHANGE_KINDS } from './recovery/ask.ts';
import { responseUnlessFenced } from './recovery/contradiction.ts';
import {
  type CommandResponse,
  type EarlierOperation,
  keyReused,
  rejection,
  replayed,
  responseTo,
} from './responses.ts';

export type ChangeKind = 'capture' | 'void' | 'refund';

type Change = {
  kind: ChangeKind;
  paymentId: string;
  amount?: RequestedAmount | undefined;
  reason?: string | undefined;
};

type Attempt = {
  change: Change;
  sender: Sender;
  key: string | undefined;
  request: Recognised;
  budget: Budget;
};

export const changePayment = (
  deps: CommandDeps,
  sender: Sender,
  change: Change,
  key: string | undefined,
  budget: Budget,
): Promise<CommandResponse> => {
  const request = requestOf(deps, sender, change, key);
  const attempt = { change, sender, key, request, budget };
  const { paymentId } = change;
  return deps.queues.run(paymentId, async () => {
    for (;;) {
      const response = await changeOrRepeat(deps, attempt);
      if (response === undefined) continue;
      const { length: attempts } = operationsUnder(deps.paymentLog.peek(paymentId), request);
      if (!metEarlierFence(deps, response, attempts)) return response;
    }
  });
};

const changeOrRepeat = async (
  deps: CommandDeps,
  attempt: Attempt,
): Promise<CommandResponse | undefined> => {
  const { change, request, budget } = attempt;
  const { paymentId } = change;
  if (budget.leftMs() === 0) throw new BudgetSpent();
  const hasKey = attempt.key !== undefined;
  // A replay is only ever given from a stream just read; a new operation is protected by its revision.
  const from = hasKey || deps.sharedStore ? 'store' : 'cache';
  let payment = await waitForInFlight(deps, paymentId, from, budget);
  if (payment === undefined) throw notInLog(paymentId);
  const earlier = equalOperation(payment, change, request);
  if (earlier === 'reused') return keyReused();
  if (earlier !== undefined && !hasKey) budget.begunOn = paymentId;
  if (unresolvedOperations(payment.state).some((one) => !deps.inFlight.isWaiting(one)))
    payment = (await deps.unresolved.resolve(paymentId)) ?? payment;
  if (earlier !== undefined) {
    const operation = operationOf(payment, earlier.operationId);
    // Under a key a fenced attempt frees it; a request that joined without one gets its response.
    if (!hasKey || operation.ended === undefined) return responseTo(payment, operation);
    if (!isFree(operation)) return replayed(responseTo(payment, operation));
  }
  return changeAnew(deps, attempt, payment);
};

const changeAnew = async (
  deps: CommandDeps,
  attempt: Attempt,
  payment: LoadedPayment,
): Promise<CommandResponse | undefined> => {
  const { change, sender, request, budget } = attempt;
  const { kind, paymentId, amount, reason } = change;
  const operationId = operationIdOf(deps, attempt, payment);
  const { operationsMax, providers } = deps;
  const command = { kind, operationId, amount, reason, ...request, operationsMax, providers };
  const notSent = operationUnder(payment.state, request);
  if (notSent !== undefined) {
    // A change that the rules refuse makes no attempt, so the one before needs no fence.
    const decision = decide(payment.state, command);
    if (decision.kind === 'refused') return rejection(decision.code, decision.details);
    const barred = await responseUnlessFenced(deps, payment, notSent);
    if (barred !== undefined) return barred;
  }
  const call = { kind: CHANGE_KINDS[kind], ...authorizationOf(payment.state) };
  return operate(deps, { paymentId, command, call, sender, budget });
};

/** Derived under a key, with the number of the attempt (gaps §17); else random. */
const operationIdOf = (
  { identities }: CommandDeps,
  { change: { kind, paymentId }, sender: { merchantId }, key, request }: Attempt,
  payment: LoadedPayment,
): string => {
  if (key === undefined) return newOperationId();
  const attempt = operationsUnder(payment, request).length + 1;
  return identities.operationIdOf(merchantId, kind, paymentId, key, attempt);
};

const operationsUnder = (payment: LoadedPayment | undefined, request: Recognised): Operation[] =>
  payment?.state.operations.filter((o) => isUnderKeyOf(o, request)) ?? [];

const requestOf = (
  { identities }: Pick<CommandDeps, 'identities'>,
  { merchantId }: Sender,
  { kind, paymentId, amount, reason }: Change,
  key: string | undefined,
): Recognised =>
  recognisedBy(identities, (by) => {
    const fields = { amount: amount ?? null, reason: reason ?? null };
    const fingerprint = by.fingerprintOf({ route: kind, paymentId, ...fields });
    if (key === undefined) return { fingerprint };
    return { fingerprint, keyHash: by.keyHashOf(merchantId, kind, paymentId, key) };
  });

/**
 * With a key: the latest operation under it, unless its attempt is proven never carried out.
 * Without one: an equal operation that is unresolved (it is not running: this is its queue).
 */
const equalOperation = (
  { state }: LoadedPayment,
  { kind }: Change,
  request: Recognised,
): Operation | 'reused' | undefined => {
  if (request.identity.keyHash === undefined)
    return unresolvedOperations(state).find((o) => o.kind === kind && isOfSameRequest(o, request));
  const last = operationUnder(state, request);
  if (last === undefined || isFree(last)) return undefined;
  return isOfSameRequest(last, request) ? last : 'reused';
};

/** The unresolved operation under the request's key, as far as memory tells (gaps §8). */
export const earlierChange = (
  deps: Pick<CommandDeps, 'identities' | 'inFlight' | 'paymentLog'>,
  sender: Sender,
  change: Change,
  key: string | undefined,
): EarlierOperation | undefined => {
  const { paymentId } = change;
  const payment = deps.paymentLog.peek(paymentId);
  if (payment === undefined) return undefined;
  const request = requestOf(deps, sender, change, key);
  const operation = unresolvedOperations(payment.state).find((o) => isUnderKeyOf(o, request));
  return operation && { paymentId, mayRun: deps.inFlight.mayRun(payment, operation) };
};
