/**
 * POST /api/v1/payments: identity, intent, provider, outcome, in this order (gaps §6 to §8).
 * The intent is durable before the provider is asked, and its operation id is the only one that
 * this payment's create ever has.
 */

import { brandOf, type CardBrand, CardSecret, maskCard } from '../shared/payment/card.ts';
import type { CreateCommand, MerchantRules } from '../shared/payment/commands.ts';
import { decide } from '../shared/payment/decide.ts';
import type { MaskedCard, RequestIdentity } from '../shared/payment/payment-events.ts';
import { isFree, type Operation, unresolvedOperations } from '../shared/payment/state.ts';
import { newOperationId, newPaymentId } from '../shared/runtime/ids.ts';
import { waitForInFlight } from './in-flight.ts';
import { intend } from './intend.ts';
import { claimReference, stillClaims } from './merchant-reference.ts';
import { type CommandDeps, operate, type Principal } from './operate.ts';
import type { LoadedPayment } from './payment-log.ts';
import type { CreateRequest } from './request/payment-request.ts';
import { type Budget, BudgetSpent } from './request-budget.ts';
import { type CommandResponse, operationOf, rejection, replayed, responseTo } from './responses.ts';

/** What one create is made of; the secret is dropped with it. */
type Attempt = {
  principal: Principal;
  request: CreateRequest;
  masked: MaskedCard;
  /** The brand that the number itself shows. */
  numberBrand: CardBrand | undefined;
  identity: RequestIdentity;
  rules: MerchantRules;
  budget: Budget;
};

/** How many attempts under one key are looked through: each was proven never carried out. */
const ATTEMPTS_MAX = 1000;

/**
 * Creates a payment, joins an equal unresolved one, or answers a repeat under a key.
 * Throws BudgetSpent when the request's budget ends first, and what the event store throws.
 */
export const createPayment = async (
  deps: CommandDeps,
  principal: Principal,
  request: CreateRequest,
  key: string | undefined,
  budget: Budget,
): Promise<CommandResponse> => {
  const numberBrand = brandOf(request.card.number);
  const masked = maskCard(request.card, numberBrand);
  const fingerprint = deps.identities.fingerprintOf(comparable(principal, request, masked));
  const rules = deps.rulesOf(principal.merchantId);
  const identity = { fingerprint };
  const attempt = { principal, request, masked, numberBrand, identity, rules, budget };
  if (key !== undefined) return createUnderKey(deps, attempt, key);
  return createOrJoin(deps, attempt);
};

/** Joins equal creates that are unresolved, one after the other, before it makes a new payment. */
const createOrJoin = async (deps: CommandDeps, attempt: Attempt): Promise<CommandResponse> => {
  const { request, identity, budget } = attempt;
  for (;;) {
    const joined =
      request.details.merchantReference === undefined
        ? undefined
        : deps.recovery.unresolvedCreate(identity.fingerprint);
    if (joined === undefined) return createWithoutKey(deps, attempt);
    const response = await joinUnresolved(deps, joined, budget);
    if (response !== undefined) return response;
  }
};

/** Again where another create took the reference in between: the next try finds that one. */
const createWithoutKey = async (deps: CommandDeps, attempt: Attempt): Promise<CommandResponse> => {
  while (attempt.budget.leftMs() > 0) {
    const begun = await begin(deps, attempt, newPaymentId());
    if (begun === 'exists') throw new Error('a new id that a payment has already');
    if (begun !== 'reference lost') return begun;
  }
  throw new BudgetSpent();
};

/** Of the card only what tells cards apart without giving one away (gaps §8). */
const comparable = (principal: Principal, request: CreateRequest, masked: MaskedCard): object => {
  const { amount, currency, captureNow, details, card } = request;
  const { bin, last4, holderName, expiryMonth, expiryYear } = masked;
  const brand = card.brand ?? null;
  return {
    merchantId: principal.merchantId,
    // seeded bug: create-fingerprint
    amount,
    currency,
    captureNow,
    details,
    card: { bin, last4, holderName, expiryMonth, expiryYear, brand },
  };
};

const createOf = (payment: LoadedPayment): Operation | undefined =>
  payment.state === undefined ? undefined : payment.state.operations[0];

/** Undefined where somebody else has proven meanwhile that it was never carried out. */
const joinUnresolved = (
  deps: CommandDeps,
  paymentId: string,
  budget: Budget,
): Promise<CommandResponse | undefined> =>
  deps.queues.run(paymentId, async () => {
    const before = createOf(await waitForInFlight(deps, paymentId, 'store', budget));
    // Also where nothing is open any more: then this process did not know, and knows now.
    const payment = await deps.recovery.resolve(paymentId);
    if (before === undefined) throw new Error('an unresolved create without its payment');
    return isFree(before)
      ? undefined
      : responseTo(payment, operationOf(payment, before.operationId));
  });

/** One repeat at a time: the first finds or makes the payment, the others find it. */
const createUnderKey = (
  deps: CommandDeps,
  attempt: Attempt,
  key: string,
): Promise<CommandResponse> => {
  const { principal, budget } = attempt;
  const idOf = (n: number) => deps.identities.paymentIdOf(principal.merchantId, key, n);
  return deps.queues.run(`create ${idOf(1)}`, async () => {
    for (let n = 1; n <= ATTEMPTS_MAX && budget.leftMs() > 0; n++) {
      const response = await createOrRepeat(deps, attempt, idOf(n), key);
      if (response !== undefined) return response;
    }
    throw new BudgetSpent();
  });
};

/** Undefined when this attempt was proven never carried out: the next one is free. */
const createOrRepeat = async (
  deps: CommandDeps,
  attempt: Attempt,
  paymentId: string,
  key: string,
): Promise<CommandResponse | undefined> => {
  const { fingerprint } = attempt.identity;
  let payment = await deps.log.load(paymentId, 'store');
  let create = createOf(payment);
  if (create === undefined) {
    const keyHash = deps.identities.keyHashOf(attempt.principal.merchantId, 'create', '', key);
    const identity = { fingerprint, keyHash };
    const begun = await begin(deps, { ...attempt, identity }, paymentId);
    // Another process was faster under the same key: now its payment is there.
    if (begun === 'exists') return createOrRepeat(deps, attempt, paymentId, key);
    return begun === 'reference lost' ? undefined : begun;
  }
  if (isFree(create)) return undefined;
  if (create.identity.fingerprint !== fingerprint) {
    return rejection(422, 'IDEMPOTENCY_KEY_REUSED', [
      'the Idempotency-Key was used for another request; use a new key',
    ]);
  }
  if (create.ended === undefined) {
    payment = await resolvedPayment(deps, paymentId, attempt.budget);
    create = operationOf(payment, create.operationId);
    if (isFree(create)) return undefined;
  }
  const response = responseTo(payment, create);
  return create.ended === undefined ? response : replayed(response);
};

const resolvedPayment = (
  deps: CommandDeps,
  paymentId: string,
  budget: Budget,
): Promise<LoadedPayment> =>
  deps.queues.run(paymentId, async () => {
    const quiet = await waitForInFlight(deps, paymentId, 'store', budget);
    return unresolvedOperations(quiet.state).length > 0 ? deps.recovery.resolve(paymentId) : quiet;
  });

const createCommandOf = (attempt: Attempt, paymentId: string): CreateCommand => {
  const { principal, request, masked, numberBrand, identity, rules } = attempt;
  const { amount, currency, captureNow, details } = request;
  return {
    kind: 'create',
    operationId: newOperationId(),
    paymentId,
    merchantId: principal.merchantId,
    amountMinor: amount,
    currency,
    captureNow,
    // seeded bug: masked-card
    card: masked,
    numberBrand,
    details,
    identity,
    rules,
  };
};

/** The reference that has to be this payment's alone, where there is one. */
const uniqueReference = ({ rules, request }: Attempt): string | undefined =>
  rules.uniqueReferences === true ? request.details.merchantReference : undefined;

const begin = (
  deps: CommandDeps,
  attempt: Attempt,
  paymentId: string,
): Promise<CommandResponse | 'exists' | 'reference lost'> =>
  deps.queues.run(paymentId, async () => {
    const { principal, budget } = attempt;
    const command = createCommandOf(attempt, paymentId);
    const reference = uniqueReference(attempt);
    if (reference !== undefined) {
      // What the rules refuse claims nothing.
      const decision = decide(undefined, command);
      if (decision.kind === 'refused') return rejection(422, decision.code, decision.details);
      const claimed = await claimReference(deps, principal, command, reference, budget);
      if (claimed.kind === 'held') return claimed.response;
    }
    // seeded bug: intent-before-call
    const executed = await intend(deps, command, paymentId, principal, budget);
    switch (executed.kind) {
      case 'refused':
        return rejection(422, executed.code, executed.details);
      case 'exists':
      case 'unresolved':
      case 'repeated':
        return 'exists';
      case 'done':
        if (reference !== undefined && !(await keepsReference(deps, executed, command, reference)))
          return 'reference lost';
        return callProvider(deps, attempt, executed.payment, command.operationId);
    }
  });

/** Whether the reference is still this payment's; where it is not, the payment has ended FAILED. */
const keepsReference = async (
  deps: CommandDeps,
  { payment }: { payment: LoadedPayment },
  command: CreateCommand,
  reference: string,
): Promise<boolean> => {
  const { paymentId, operationId } = command;
  try {
    // seeded bug: reference-read-again
    if (await stillClaims(deps, command, reference)) return true;
    await deps.recovery.record(payment, operationId, { outcome: 'NOT_SENT' });
    return false;
  } catch (error) {
    // The intent stands and no call will follow: recovery fences it.
    deps.recovery.callEnded(paymentId, operationId, 'open', payment);
    throw error;
  }
};

const callProvider = (
  deps: CommandDeps,
  { request, budget }: Attempt,
  payment: LoadedPayment,
  operationId: string,
): Promise<CommandResponse> => {
  const { card, captureNow, details } = request;
  const kind = captureNow ? 'SALE' : 'AUTHORIZE';
  const call = { kind, card: new CardSecret(card), descriptor: details.descriptor } as const;
  return operate(deps, payment, operationId, call, budget);
};
