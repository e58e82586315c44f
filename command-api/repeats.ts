/**
 * Decides what a request is (gaps §7, §8): new, a repeat, which gets the earlier response, another one under a
 * used key, or the next attempt under a freed key. It waits for calls in flight, ours in turn, others by age.
 */
import {
  type CreateIds,
  createIdsUnder,
  type Identities,
  recognisedBy,
} from '../shared/http/idempotency.ts';
import type { Sender } from '../shared/http/request.ts';
import { type Begins, type Budget, BudgetSpent } from '../shared/http/request-budget.ts';
import type { CreateCommand, RequestedAmount } from '../shared/payment/commands.ts';
import {
  createOf,
  isFree,
  isOfSameRequest,
  isUnderKeyOf,
  type Operation,
  operationUnder,
  type Recognised,
  unresolvedOperations,
} from '../shared/payment/state.ts';
import { newOperationId, newPaymentId } from '../shared/runtime/ids.ts';
import type { CommandDeps } from './deps.ts';
import { waitForInFlight } from './in-flight.ts';
import { addressAgain } from './merchant-reference.ts';
import { type LoadedPayment, notInLog, operationOf } from './payment-log.ts';
import {
  type CommandResponse,
  type EarlierOperation,
  keyReused,
  replayed,
  responseTo,
} from './responses.ts';

type Responded = { response: CommandResponse };

/** `begunOn` has an equal unresolved operation. `join`: its response; undefined if it was never carried out. */
type Joined = { begunOn: string; join: () => Promise<CommandResponse | undefined> };

/** Attempts under one key that follow each other by themselves. */
const ATTEMPTS_MAX = 16;

/**
 * Gives the response that `find` found, or begins what is new. Looks again if another request was faster, or if
 * the attempt met a lost log's fence (gaps §8). `attempt` is 0 without a key. Throws BudgetSpent, and what `begin` throws.
 */
export const respondOrBegin = async <N extends { attempt: number }>(
  { isLevel }: Pick<CommandDeps, 'isLevel'>,
  { budget, reach }: Begins,
  find: () => Promise<Responded | Joined | N>,
  begin: (next: N) => Promise<CommandResponse | undefined>,
): Promise<CommandResponse> => {
  while (budget.leftMs() > 0) {
    const found = await find();
    if ('response' in found) return found.response;
    if ('join' in found) {
      reach({ begunOn: found.begunOn });
      const response = await found.join();
      if (response !== undefined) return response;
      reach(undefined);
      continue;
    }
    const response = await begin(found);
    const hasNext = found.attempt > 0 && found.attempt < ATTEMPTS_MAX && !isLevel();
    if (response !== undefined && !(hasNext && response.outcome === 'not_sent')) return response;
  }
  throw new BudgetSpent();
};

/** The response to a repeat of `earlier`, which is under its key; undefined while it has no outcome. */
const judgeRepeat = (
  payment: LoadedPayment,
  earlier: Operation,
  request: Recognised,
): Responded | 'free' | undefined => {
  if (isFree(earlier)) return 'free';
  if (!isOfSameRequest(earlier, request)) return { response: keyReused() };
  return earlier.ended && { response: replayed(responseTo(payment, earlier)) };
};

/** `freed`: the payment whose create was proven never carried out. */
export type NextCreate = CreateIds & { attempt: number; freed?: LoadedPayment | undefined };

type CreateToFind = Omit<Begins, 'reach'> & {
  command: Recognised & { details: Pick<CreateCommand['details'], 'merchantReference'> };
};

/** The create under the key or its next attempt; without a key an equal unresolved one, or a new one. */
export const findCreate = async (
  deps: CommandDeps,
  sent: CreateToFind,
  key: string | undefined,
): Promise<Responded | Joined | NextCreate> => {
  if (key !== undefined) return findCreateUnder(deps, sent, key);
  const begunOn = equalCreate(deps, sent.command);
  return begunOn === undefined
    ? { attempt: 0, paymentId: newPaymentId(), operationId: newOperationId() }
    : { begunOn, join: () => joinCreate(deps, begunOn, sent.budget) };
};

const joinCreate = (deps: CommandDeps, paymentId: string, budget: Budget) =>
  deps.queues.run(paymentId, async () => {
    const before = await waitForInFlight(deps, paymentId, 'store', budget);
    // A create may have its outcome already: the unresolved index drops it then.
    const payment = await deps.unresolved.resolve(paymentId);
    if (before === undefined || payment === undefined) throw notInLog(paymentId);
    const isGone = isFree(createOf(before.state));
    return isGone ? undefined : responseTo(payment, createOf(payment.state));
  });

const equalCreate = (
  { unresolved }: CommandDeps,
  command: CreateToFind['command'],
): string | undefined => {
  if (command.details.merchantReference === undefined) return undefined;
  for (const [paymentId, { known }] of unresolved.all) {
    const { fingerprint } = known;
    if (fingerprint && isOfSameRequest({ identity: { fingerprint } }, command)) return paymentId;
  }
  return undefined;
};

/** Call it in the key's turn. */
const findCreateUnder = async (
  deps: CommandDeps,
  sent: CreateToFind,
  key: string,
): Promise<Responded | NextCreate> => {
  const { identities } = deps;
  // The older secret's ids are for payments from before the rotation; it makes no new ones.
  const older = identities.previous && (await attemptUnder(deps, sent, identities.previous, key));
  if (older !== undefined && 'response' in older) return older;
  const found = await attemptUnder(deps, sent, identities, key);
  return 'response' in found ? found : { ...found, freed: found.freed ?? older?.freed };
};

/** The first attempt that is not free, or that was never made. Throws BudgetSpent. */
const attemptUnder = async (
  deps: CommandDeps,
  sent: CreateToFind,
  by: Identities,
  key: string,
): Promise<Responded | NextCreate> => {
  let freed: LoadedPayment | undefined;
  for (let attempt = 1; sent.budget.leftMs() > 0; attempt += 1) {
    const ids = createIdsUnder(by, sent.sender.merchantId, key, attempt);
    const payment = await deps.paymentLog.load(ids.paymentId, 'store');
    if (payment === undefined) return { ...ids, attempt, freed };
    const judged = await judgeCreate(deps, sent, payment);
    if ('response' in judged) return judged;
    freed = judged;
  }
  throw new BudgetSpent();
};

/** The payment itself if its create frees the key. */
const judgeCreate = async (
  deps: CommandDeps,
  { command, budget }: CreateToFind,
  found: LoadedPayment,
): Promise<Responded | LoadedPayment> => {
  const first = createOf(found.state);
  const known = judgeRepeat(found, first, command);
  if (known !== undefined) return known === 'free' ? found : known;
  const payment = deps.inFlight.wasJustLookedUp(first)
    ? found
    : await deps.unresolved.resolveInTurn(found.state.paymentId, budget);
  if (payment === undefined) throw notInLog(found.state.paymentId);
  const create = createOf(payment.state);
  const judged = judgeRepeat(payment, create, command);
  if (judged !== undefined) return judged === 'free' ? payment : judged;
  const waiting = addressAgain(deps, payment);
  return { response: waiting ? replayed(waiting) : responseTo(payment, create) };
};

export type ChangeKind = 'capture' | 'void' | 'refund';

type Change = {
  kind: ChangeKind;
  paymentId: string;
  amount?: RequestedAmount | undefined;
  reason?: string | undefined;
};

export type SentChange = Begins & {
  change: Change;
  key: string | undefined;
  request: Recognised;
};

/** `freed`: the operation under the key that was proven never carried out. */
export type NextChange = {
  attempt: number;
  payment: LoadedPayment;
  freed: Operation | undefined;
};

/** As `findCreate`, by the key's latest operation. Call it in the payment's turn. Throws BudgetSpent. */
export const findChange = async (
  deps: CommandDeps,
  { change, key, request, budget }: SentChange,
): Promise<Responded | Joined | NextChange> => {
  const { paymentId, kind } = change;
  const { unresolved, inFlight } = deps;
  // A replay is only ever given from a stream just read; a new operation is protected by its revision.
  const from = key !== undefined || deps.sharedStore ? 'store' : 'cache';
  const found = await waitForInFlight(deps, paymentId, from, budget);
  if (found === undefined) throw notInLog(paymentId);
  const open = unresolvedOperations(found.state);
  const resolve = async () => (await unresolved.resolve(paymentId)) ?? found;
  const equal = open.find((one) => one.kind === kind && isOfSameRequest(one, request));
  // It gets that operation's response, also if that turns out never carried out.
  if (key === undefined && equal !== undefined)
    return { begunOn: paymentId, join: async () => responseNow(await resolve(), equal) };
  const last = operationUnder(found.state, request);
  const known = last && judgeRepeat(found, last, request);
  if (known !== undefined && known !== 'free') return known;
  const payment = open.every(inFlight.isWaiting) ? found : await resolve();
  if (last !== undefined && known === undefined) {
    const judged = judgeRepeat(payment, operationOf(payment, last.operationId), request);
    if (judged !== 'free') return judged ?? { response: responseNow(payment, last) };
  }
  const attempts = payment.state.operations.filter((one) => isUnderKeyOf(one, request)).length;
  const attempt = key === undefined ? 0 : attempts + 1;
  return { attempt, payment, freed: operationUnder(payment.state, request) };
};

const responseNow = (payment: LoadedPayment, { operationId }: Operation): CommandResponse =>
  responseTo(payment, operationOf(payment, operationId));

export const changeRequestOf = (
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

/** The create under the request's key that has no outcome yet, as far as memory tells (gaps §8). */
export const earlierCreate = (
  deps: CommandDeps,
  { merchantId }: Sender,
  key: string | undefined,
): EarlierOperation | undefined => {
  const { identities } = deps;
  if (key === undefined) return undefined;
  const under = (by: Identities) =>
    unresolvedUnder(deps, (attempt) => createIdsUnder(by, merchantId, key, attempt));
  return under(identities) ?? (identities.previous && under(identities.previous));
};

const unresolvedUnder = (
  deps: CommandDeps,
  idsOf: (attempt: number) => CreateIds,
  attempt = 1,
): EarlierOperation | undefined => {
  const { inFlight, paymentLog } = deps;
  const { paymentId, operationId } = idsOf(attempt);
  // A live operation counts even before its intent is stored.
  if (inFlight.isLive(operationId)) return { paymentId, mayRun: true };
  const payment = paymentLog.peek(paymentId);
  if (payment === undefined) return undefined;
  const create = createOf(payment.state);
  if (isFree(create)) return unresolvedUnder(deps, idsOf, attempt + 1);
  if (create.ended !== undefined) return undefined;
  return { paymentId, mayRun: inFlight.mayRun(payment, create) };
};

/** The unresolved operation under the request's key, as far as memory tells (gaps §8). */
export const earlierChange = (
  { paymentLog, inFlight }: CommandDeps,
  { change: { paymentId }, request }: Pick<SentChange, 'change' | 'request'>,
): EarlierOperation | undefined => {
  const payment = paymentLog.peek(paymentId);
  const operation = unresolvedOperations(payment?.state).find((o) => isUnderKeyOf(o, request));
  return payment && operation && { paymentId, mayRun: inFlight.mayRun(payment, operation) };
};
