/**
 * The one place where the provider is asked to move money: after the intent is durable, once,
 * outside any retry loop (decisions §6), and then the outcome is recorded.
 */
import type { EventContext } from '../shared/event-store/port.ts';
import type { CardSecret } from '../shared/payment/card.ts';
import type { MerchantRules } from '../shared/payment/commands.ts';
import { type Answer, answerTo, operationOf, unknownOutcome } from './answers.ts';
import type { Budget } from './budget.ts';
import type { LoadedPayment, PaymentLog } from './execute.ts';
import type { Identities } from './idempotency.ts';
import type { Provider } from './provider/port.ts';
import type { Queues } from './queues.ts';
import { outcomeOf, type Recovery } from './recovery.ts';

/** Who sent a request, as its token says, and which request it was. */
export type Caller = { merchantId: string; actor: string; requestId: string };

/** What the commands work with. */
export type CommandRoom = {
  log: PaymentLog;
  provider: Provider;
  queues: Queues;
  recovery: Recovery;
  identities: Identities;
  rulesOf(merchantId: string): MerchantRules;
  contextOf(caller: Caller): EventContext;
  logger: { error(fields: object, message: string): void };
};

/** What a provider call needs beside what its intent already says. */
export type Call =
  | { kind: 'AUTHORIZE' | 'SALE'; card: CardSecret; descriptor: string | undefined }
  | { kind: 'CAPTURE' | 'VOID' | 'REFUND'; authorizationId: string };

/**
 * Asks the provider to carry the operation out and records what it says. Runs in the payment's
 * queue and goes on to its end whether or not the request still waits. Never throws after the
 * intent: what could not be recorded is left to recovery.
 */
export const carryOut = async (
  room: CommandRoom,
  payment: LoadedPayment,
  operationId: string,
  call: Call,
  budget: Budget,
): Promise<Answer> => {
  const { state } = payment;
  if (state.status === 'NONE') throw new Error('a provider call without its intent');
  const { paymentId, currency } = state;
  budget.begunOn = paymentId;
  const { amount } = operationOf(payment, operationId);
  const answer = await room.provider.execute({ operationId, paymentId, amount, currency, ...call });
  const outcome = outcomeOf(answer);
  if (outcome === undefined) {
    room.recovery.track(paymentId);
    return answerTo(payment, operationOf(payment, operationId));
  }
  try {
    const recorded = await room.recovery.record(payment, operationId, outcome);
    return answerTo(recorded, operationOf(recorded, operationId));
  } catch (error) {
    room.logger.error({ paymentId, err: error }, 'an outcome could not be recorded; recovery will');
    room.recovery.track(paymentId);
    return unknownOutcome(paymentId);
  }
};
