/**
 * The one place where the provider is asked to move money: after the intent is durable, once,
 * outside any retry loop (gaps §6), and then the outcome is recorded.
 */
import type { EventContext } from '../shared/event-store/port.ts';
import type { CardSecret } from '../shared/payment/card.ts';
import type { MerchantRules } from '../shared/payment/commands.ts';
import type { FinalOutcome, FinalOutcomeDetails } from '../shared/payment/outcome.ts';
import type { Operation } from '../shared/payment/state.ts';
import type { Identities } from './idempotency.ts';
import type { LoadedPayment, PaymentLog } from './payment-log.ts';
import type { Provider } from './provider/port.ts';
import type { Queues } from './queues.ts';
import { outcomeOf, type Recovery } from './recovery/recovery.ts';
import type { ReferenceClaims } from './reference-claims.ts';
import type { Budget } from './request-budget.ts';
import { type CommandResponse, operationOf, responseTo, unknownOutcome } from './responses.ts';

/** Who sent a request, as its token says, and which request it was. */
export type Principal = { merchantId: string; actor: string; requestId: string };

/** What the commands work with. */
export type CommandDeps = {
  log: PaymentLog;
  provider: Provider;
  queues: Queues;
  recovery: Recovery;
  identities: Identities;
  claims: ReferenceClaims;
  /**
   * Other processes append to the same store: what this one last saw of a payment may be old, and
   * a call may be running that it knows nothing of.
   */
  sharedStore: boolean;
  rulesOf(merchantId: string): MerchantRules;
  contextOf(principal: Principal): EventContext;
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
export const operate = async (
  deps: CommandDeps,
  payment: LoadedPayment,
  operationId: string,
  call: Call,
  budget: Budget,
): Promise<CommandResponse> => {
  const { state } = payment;
  if (state === undefined) throw new Error('a provider call without its intent');
  const { paymentId } = state;
  const operation = operationOf(payment, operationId);
  // Its append took so long that somebody else has ended it already.
  if (operation.ended !== undefined) return responseTo(payment, operation);
  deps.recovery.callBegins(operationId);
  const outcome = await outcomeFrom(deps, payment, operation, call, budget);
  if (outcome === undefined) {
    deps.recovery.callEnded(paymentId, operationId, 'open', payment);
    return responseTo(payment, operation);
  }
  try {
    const recorded = await deps.recovery.record(payment, operationId, outcome);
    deps.recovery.callEnded(paymentId, operationId, 'recorded');
    const known = operationOf(recorded, operationId);
    sayWhereItDiffers(deps, paymentId, known, outcome);
    return responseTo(recorded, known);
  } catch (error) {
    deps.logger.error({ paymentId, err: error }, 'an outcome could not be recorded; recovery will');
    deps.recovery.callEnded(paymentId, operationId, 'open', payment);
    return unknownOutcome(paymentId);
  }
};

const outcomeFrom = async (
  { provider, recovery }: CommandDeps,
  payment: LoadedPayment,
  operation: Operation,
  call: Call,
  budget: Budget,
): Promise<FinalOutcomeDetails | undefined> => {
  if (payment.state === undefined) return undefined;
  // The client has been told that nothing was begun, and may already have sent it again.
  // seeded bug: budget-spent
  if (budget.spent === true) return { outcome: 'NOT_SENT' };
  // Another process may hold it for ended by the time this call would end: it is not begun at all.
  // seeded bug: too-late-to-call
  if (recovery.isTooLate(payment, operation)) return { outcome: 'NOT_SENT' };
  const { paymentId, currency } = payment.state;
  budget.begunOn = paymentId;
  const { operationId, amountMinor: amount } = operation;
  // seeded bug: call-under-operation-id
  return outcomeOf(await provider.execute({ operationId, paymentId, amount, currency, ...call }));
};

const neverHappened = (outcome: FinalOutcome | undefined): boolean =>
  outcome === 'NOT_SENT' || outcome === 'FENCED';

/** The log keeps what came first; a provider that now says otherwise has broken its own word. */
const sayWhereItDiffers = (
  { logger }: CommandDeps,
  paymentId: string,
  { kind, ended }: Operation,
  late: FinalOutcomeDetails,
): void => {
  const recorded = ended?.outcome;
  if (recorded === late.outcome || (neverHappened(recorded) && neverHappened(late.outcome))) return;
  logger.error(
    { paymentId, operation: kind, recorded, responded: late.outcome },
    'the provider answered other than what is recorded; reconcile with its ledger',
  );
};
