/**
 * POST /api/v1/payments: finds out which payment the request is about (a repeat under its key, an
 * equal create that is unresolved, or a new payment), and gives a new one to operate.ts (gaps §6 to
 * §8). A payment's create has one operation id, that of its intent.
 */
import { CardSecret, type TokenInput } from '../shared/payment/card.ts';
import type { CreateCommand, MerchantRules } from '../shared/payment/commands.ts';
import { decide } from '../shared/payment/decide.ts';
import {
  createOf,
  isFree,
  isOfSameRequest,
  type Recognised,
} from '../shared/payment/payment-state.ts';
import { type Config, merchantRules } from '../shared/runtime/config.ts';
import { newOperationId, newPaymentId } from '../shared/runtime/ids.ts';
import { comparableCreate, describeToken, type ShownCard, shownCardOf } from './card-of-request.ts';
import type { CommandDeps } from './deps.ts';
import { type CreateIds, createIdsUnder, type Identities } from './idempotency.ts';
import { type LoadedPayment, notInLog } from './loaded-payment.ts';
import { claimReference, stillClaims } from './merchant-reference.ts';
import { metEarlierFence, type OperationRequest, operate } from './operate.ts';
import type { CallDetails } from './provider/port.ts';
import { resolveByAsking, resolvedInTurn, responseUnlessFenced } from './recovery/ask.ts';
import type { CreateRequest } from './request/payment-request.ts';
import { type Budget, BudgetSpent } from './request-budget.ts';
import { type CommandResponse, keyReused, rejection, replayed, responseTo } from './responses.ts';
import type { Sender } from './sender.ts';
import { waitForInFlight } from './wait-for-in-flight.ts';

/** What one request asks for. The card secret lives in `call`, no longer than the request's command. */
type Attempt = {
  sender: Sender;
  /** The command, without its card and the ids that a new payment gets. */
  command: Omit<CreateCommand, 'operationId' | 'paymentId' | keyof ShownCard>;
  /** The card as it is kept; a token until its provider has described it. */
  shown: ShownCard | TokenInput;
  call: CallDetails;
  budget: Budget;
};

/**
 * Creates a payment, joins an equal unresolved create, or answers a repeat under a key.
 * Throws BudgetSpent when the request's budget ends first, and what the event store throws.
 */
export const createPayment = (
  deps: CommandDeps,
  sender: Sender,
  request: CreateRequest,
  key: string | undefined,
  budget: Budget,
): Promise<CommandResponse> => {
  const shown = 'token' in request.card ? request.card : shownCardOf(request.card);
  const command = commandOf(deps, sender, request, shown);
  const attempt = { sender, command, shown, call: callOf(request), budget };
  return key === undefined ? createOrJoin(deps, attempt) : createUnderKey(deps, attempt, key);
};

/** The rules that the settings have for a merchant's creates. */
export const rulesOf =
  (config: Config) =>
  (merchantId: string): MerchantRules => {
    const { maxAmount, acceptedBrands, merchantReference } = merchantRules(config, merchantId);
    return {
      maxAmountMinor: maxAmount,
      ...(acceptedBrands && { acceptedBrands }),
      uniqueReferences: merchantReference === 'unique',
    };
  };

const commandOf = (
  { identities, rulesOf, providers }: CommandDeps,
  { merchantId }: Sender,
  request: CreateRequest,
  shown: Attempt['shown'],
): Attempt['command'] => {
  const { amount, currency, captureNow, details } = request;
  const fingerprintBy = (by: Identities): string =>
    by.fingerprintOf(comparableCreate(by, merchantId, request, shown));
  const { previous } = identities;
  return {
    kind: 'create',
    merchantId,
    amountMinor: amount,
    currency,
    captureNow,
    details,
    identity: { fingerprint: fingerprintBy(identities) },
    previousIdentity: previous && { fingerprint: fingerprintBy(previous) },
    rules: rulesOf(merchantId),
    providers,
  };
};

const callOf = ({ card, captureNow, details }: CreateRequest): CallDetails => ({
  kind: captureNow ? 'SALE' : 'AUTHORIZE',
  card: new CardSecret(card),
  descriptor: details.descriptor,
});

/** Joins equal creates that are unresolved, one after the other, before it makes a new payment. */
const createOrJoin = async (deps: CommandDeps, attempt: Attempt): Promise<CommandResponse> => {
  const { command, budget } = attempt;
  for (;;) {
    const joined =
      command.details.merchantReference === undefined ? undefined : equalCreate(deps, command);
    if (joined === undefined) return createWithoutKey(deps, attempt);
    const response = await joinUnresolved(deps, joined, budget);
    if (response !== undefined) return response;
  }
};

const equalCreate = (
  { unresolved }: CommandDeps,
  { identity, previousIdentity }: Recognised,
): string | undefined =>
  unresolved.equalCreate(identity.fingerprint) ??
  (previousIdentity && unresolved.equalCreate(previousIdentity.fingerprint));

/** Again where another create took the reference in between: the next attempt finds that one. */
const createWithoutKey = async (deps: CommandDeps, attempt: Attempt): Promise<CommandResponse> => {
  while (attempt.budget.leftMs() > 0) {
    const ids = { paymentId: newPaymentId(), operationId: newOperationId() };
    const response = await createNew(deps, attempt, ids);
    if (response !== undefined) return response;
  }
  throw new BudgetSpent();
};

/** Undefined where the create was proven never carried out before this request had its turn. */
const joinUnresolved = (
  deps: CommandDeps,
  paymentId: string,
  budget: Budget,
): Promise<CommandResponse | undefined> =>
  deps.queues.run(paymentId, async () => {
    const before = await waitForInFlight(deps, paymentId, 'store', budget);
    // Also where the create has its outcome already: the unresolved index drops it then.
    const payment = await resolveByAsking(deps, paymentId);
    if (before === undefined || payment === undefined) throw notInLog(paymentId);
    return isFree(createOf(before.state))
      ? undefined
      : responseTo(payment, createOf(payment.state));
  });

/** One repeat at a time: the first finds or makes the payment, the others find it. */
const createUnderKey = (
  deps: CommandDeps,
  attempt: Attempt,
  key: string,
): Promise<CommandResponse> => {
  const { sender, command, budget } = attempt;
  const { identities, queues } = deps;
  const keyHash = identities.keyHashOf(sender.merchantId, 'create', '', key);
  const keyed = { ...attempt, command: { ...command, identity: { ...command.identity, keyHash } } };
  const idsUnder = (by: Identities, n: number): CreateIds =>
    createIdsUnder(by, sender.merchantId, key, n);
  const { previous } = identities;
  return queues.run(`create ${idsUnder(identities, 1).paymentId}`, async () => {
    // A payment of the time before the rotation has an id by the older secret.
    let tried = previous && (await lastOf(deps, keyed, (n) => idsUnder(previous, n).paymentId));
    for (let n = 1; budget.leftMs() > 0; n++) {
      if (tried !== undefined && 'response' in tried) break;
      const ids = idsUnder(identities, n);
      tried = await createOrRepeat(deps, keyed, ids, tried?.free);
      if ('response' in tried && metEarlierFence(deps, tried.response, n))
        tried = (await repeatOf(deps, keyed, ids.paymentId)) ?? tried;
    }
    if (tried !== undefined && 'response' in tried) return tried.response;
    throw new BudgetSpent();
  });
};

/** The response by a payment that has the key already, else the last payment that left it free. */
const lastOf = async (
  deps: CommandDeps,
  attempt: Attempt,
  idOf: (n: number) => string,
): Promise<Tried | undefined> => {
  let last: Tried | undefined;
  for (let n = 1; attempt.budget.leftMs() > 0; n++) {
    const tried = await repeatOf(deps, attempt, idOf(n));
    if (tried === undefined) return last;
    if ('response' in tried) return tried;
    last = tried;
  }
  throw new BudgetSpent();
};

/** `free`: the payment whose create was proven never carried out, so that the next id is free. */
type Tried = { response: CommandResponse } | { free: LoadedPayment };

/** `before` is the payment of the attempt before this one, where there was one. */
const createOrRepeat = async (
  deps: CommandDeps,
  attempt: Attempt,
  ids: CreateIds,
  before: LoadedPayment | undefined,
): Promise<Tried> => {
  const repeated = await repeatOf(deps, attempt, ids.paymentId);
  if (repeated !== undefined) return repeated;
  const barred = before && (await responseUnlessFenced(deps, before, createOf(before.state)));
  const response = barred ?? (await createNew(deps, attempt, ids));
  // Undefined where another process was faster under the same key, or with the same reference.
  return response === undefined ? createOrRepeat(deps, attempt, ids, before) : { response };
};

/** Undefined where no such payment exists. */
const repeatOf = async (
  deps: CommandDeps,
  attempt: Attempt,
  paymentId: string,
): Promise<Tried | undefined> => {
  const payment = await deps.paymentLog.load(paymentId, 'store');
  if (payment === undefined) return undefined;
  const create = createOf(payment.state);
  if (isFree(create)) return { free: payment };
  if (!isOfSameRequest(create, attempt.command)) return { response: keyReused() };
  if (create.ended !== undefined) return { response: replayed(responseTo(payment, create)) };
  return repeatUnresolved(deps, attempt, paymentId);
};

const repeatUnresolved = async (
  deps: CommandDeps,
  { budget }: Attempt,
  paymentId: string,
): Promise<Tried> => {
  const payment = await resolvedInTurn(deps, paymentId, budget);
  if (payment === undefined) throw notInLog(paymentId);
  const create = createOf(payment.state);
  if (isFree(create)) return { free: payment };
  const response = responseTo(payment, create);
  return { response: create.ended === undefined ? response : replayed(response) };
};

/** Undefined where another request has the id or the reference: look at the payments again. */
const createNew = async (
  deps: CommandDeps,
  { sender, command: requested, shown: given, call, budget }: Attempt,
  { paymentId, operationId }: CreateIds,
): Promise<CommandResponse | undefined> => {
  const shown = 'token' in given ? await describeToken(deps, given, requested.merchantId) : given;
  if ('response' in shown) return shown.response;
  const command = { ...requested, ...shown, paymentId, operationId };
  const request = { paymentId, command, call, sender, budget };
  const reference = command.rules.uniqueReferences && command.details.merchantReference;
  return deps.queues.run(paymentId, () =>
    reference ? createUnique(deps, request, command, reference) : operate(deps, request),
  );
};

/** Claims the reference first, and goes to the provider only while the claim stands (gaps §8). */
const createUnique = async (
  deps: CommandDeps,
  request: OperationRequest,
  command: CreateCommand,
  reference: string,
): Promise<CommandResponse | undefined> => {
  // What the rules refuse claims nothing.
  const decision = decide(undefined, command);
  if (decision.kind === 'refused') return rejection(decision.code, decision.details);
  const { sender, budget } = request;
  const claimed = await claimReference(deps, sender, command, reference, budget);
  if (claimed.kind === 'held') return claimed.response;
  const mayGoOn = () => stillClaims(deps, command, reference, claimed.claimId);
  return operate(deps, { ...request, mayGoOn });
};
