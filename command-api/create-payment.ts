/**
 * POST /api/v1/payments: identity, intent, provider, outcome, in this order (decisions §6 to §8).
 * The intent is durable before the provider is asked, and its operation id is the only one that
 * this payment's create ever has.
 */

import type { CreateRequest } from '../shared/http/contract.ts';
import { newOperationId, newPaymentId } from '../shared/ids.ts';
import { brandOf, type CardBrand, CardSecret, maskCard } from '../shared/payment/card.ts';
import type { CreateCommand, MerchantRules } from '../shared/payment/commands.ts';
import type { MaskedCard, RequestIdentity } from '../shared/payment/events.ts';
import type { Operation } from '../shared/payment/state.ts';
import {
  type Answer,
  answerTo,
  isFree,
  operationOf,
  refusal,
  replayed,
  tryLater,
} from './answers.ts';
import { type Budget, BudgetSpent } from './budget.ts';
import { type Caller, type CommandRoom, carryOut } from './carry-out.ts';
import type { LoadedPayment } from './execute.ts';

/** What one create is made of; the secret is dropped with it. */
type Attempt = {
  caller: Caller;
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
  room: CommandRoom,
  caller: Caller,
  request: CreateRequest,
  key: string | undefined,
  budget: Budget,
): Promise<Answer> => {
  const numberBrand = brandOf(request.card.number);
  const masked = maskCard(request.card, numberBrand);
  const fingerprint = room.identities.fingerprintOf(comparable(caller, request, masked));
  const rules = room.rulesOf(caller.merchantId);
  const identity = { fingerprint };
  const attempt = { caller, request, masked, numberBrand, identity, rules, budget };
  if (key !== undefined) return createUnderKey(room, attempt, key);
  const joined =
    request.details.merchantReference === undefined
      ? undefined
      : room.recovery.unresolvedCreate(fingerprint);
  if (joined !== undefined) return joinUnresolved(room, joined);
  return begin(room, attempt, newPaymentId());
};

/** Of the card only what tells cards apart without giving one away (decisions §8). */
const comparable = (caller: Caller, request: CreateRequest, masked: MaskedCard): object => {
  const { amount, currency, captureNow, details, card } = request;
  const { bin, last4, holderName, expiryMonth, expiryYear } = masked;
  const brand = card.brand ?? null;
  return {
    merchantId: caller.merchantId,
    amount,
    currency,
    captureNow,
    details,
    card: { bin, last4, holderName, expiryMonth, expiryYear, brand },
  };
};

const createOf = (payment: LoadedPayment): Operation | undefined =>
  payment.state.status === 'NONE' ? undefined : payment.state.operations[0];

const joinUnresolved = (room: CommandRoom, paymentId: string): Promise<Answer> =>
  room.queues.run(paymentId, async () => {
    const payment = await room.recovery.settle(paymentId);
    const create = createOf(payment);
    if (create === undefined) throw new Error('an unresolved create without its payment');
    return answerTo(payment, create);
  });

/** One repeat at a time: the first finds or makes the payment, the others find it. */
const createUnderKey = (room: CommandRoom, attempt: Attempt, key: string): Promise<Answer> => {
  const { caller, budget } = attempt;
  const idOf = (n: number) => room.identities.paymentIdOf(caller.merchantId, key, n);
  return room.queues.run(`create ${idOf(1)}`, async () => {
    for (let n = 1; n <= ATTEMPTS_MAX && budget.leftMs() > 0; n++) {
      const answer = await createOrRepeat(room, attempt, idOf(n), key);
      if (answer !== undefined) return answer;
    }
    throw new BudgetSpent();
  });
};

/** Undefined when this attempt was proven never carried out: the next one is free. */
const createOrRepeat = async (
  room: CommandRoom,
  attempt: Attempt,
  paymentId: string,
  key: string,
): Promise<Answer | undefined> => {
  const { fingerprint } = attempt.identity;
  let payment = await room.log.load(paymentId, 'store');
  let create = createOf(payment);
  if (create === undefined) {
    const keyHash = room.identities.keyHashOf(attempt.caller.merchantId, 'create', '', key);
    return begin(room, { ...attempt, identity: { fingerprint, keyHash } }, paymentId);
  }
  if (isFree(create)) return undefined;
  if (create.identity.fingerprint !== fingerprint) {
    return refusal(422, 'IDEMPOTENCY_KEY_REUSED', [
      'the Idempotency-Key was used for another request; use a new key',
    ]);
  }
  if (create.outcome === undefined) {
    payment = await room.queues.run(paymentId, () => room.recovery.settle(paymentId));
    create = operationOf(payment, create.operationId);
    if (isFree(create)) return undefined;
  }
  const answer = answerTo(payment, create);
  return create.outcome === undefined ? answer : replayed(answer);
};

const begin = (room: CommandRoom, attempt: Attempt, paymentId: string): Promise<Answer> =>
  room.queues.run(paymentId, async () => {
    const { caller, request, masked, numberBrand, identity, rules, budget } = attempt;
    const { amount, currency, captureNow, details } = request;
    const command: CreateCommand = {
      kind: 'create',
      operationId: newOperationId(),
      paymentId,
      merchantId: caller.merchantId,
      amount,
      currency,
      captureNow,
      card: masked,
      numberBrand,
      details,
      identity,
      rules,
    };
    const executed = await room.log.execute(paymentId, command, room.contextOf(caller), budget);
    switch (executed.kind) {
      case 'refused':
        return refusal(422, executed.code, executed.details);
      case 'exists':
      case 'unresolved':
        // Another process was faster under the same key: its answer is found by asking again.
        return tryLater('IDEMPOTENCY_IN_PROGRESS', ['the first request with this key still runs']);
      case 'done':
        return carryOut(
          room,
          executed.payment,
          command.operationId,
          {
            kind: captureNow ? 'SALE' : 'AUTHORIZE',
            card: new CardSecret(request.card),
            descriptor: details.descriptor,
          },
          budget,
        );
    }
  });
