/**
 * A merchantReference that names one payment (gaps §8, `MERCHANT_REFERENCE=unique`), over
 * races and over several processes. A create claims the reference, is appended, reads the claims
 * again, and goes to the provider only while the last one is its own.
 *
 * Why two creates never both go to the provider: the later claimant looks at the earlier one's
 * payment after its own claim is durable. Either that payment exists by then, and the later create
 * yields, or it is appended afterwards, and its create then finds that the last claim is another's.
 * So every payment that ever claimed is looked at, not the last one alone.
 */
import { contextOf } from '../shared/http/event-context.ts';
import type { CreateCommand } from '../shared/payment/commands.ts';
import { createOf, isOfSameRequest } from '../shared/payment/payment-state.ts';
import { bodyOf } from '../shared/payment/response.ts';
import type { CommandDeps } from './deps.ts';
import { pauses } from './in-flight.ts';
import type { LoadedPayment } from './loaded-payment.ts';
import { resolvedInTurn } from './recovery/ask.ts';
import type { Claims } from './reference-claims.ts';
import { type Budget, BudgetSpent } from './request-budget.ts';
import { type CommandResponse, rejection, responseTo, unknownOutcome } from './responses.ts';
import type { Sender } from './sender.ts';

/** How long a claimant has from its claim to its PaymentCreated; then its claim no longer counts. */
const CLAIM_MS_MAX = 2_000;

/** `ours`: this claim is the create's; else the response of the payment that has the reference. */
export type Claimed =
  | { kind: 'ours'; claimId: string }
  | { kind: 'held'; response: CommandResponse };

/** Claims a reference for a create that is not appended yet. Throws BudgetSpent. */
export const claimReference = async (
  deps: CommandDeps,
  sender: Sender,
  create: CreateCommand,
  reference: string,
  budget: Budget,
): Promise<Claimed> => {
  const { paymentId, merchantId, operationId, amountMinor: amount, currency } = create;
  if (amount === 'too large')
    throw new Error(`payment ${paymentId} claims a reference with an amount that the rules refuse`);
  const pause = pauses(budget);
  const startedMs = performance.now();
  let claimId: string | undefined;
  for (;;) {
    if (budget.leftMs() === 0) throw new BudgetSpent();
    const claims = await deps.claims.read(merchantId, reference);
    const judged = await judge(deps, claims, create, budget);
    if (typeof judged === 'object') return { kind: 'held', response: judged };
    const waitedMs = Math.max(claims.lastAgeMs, performance.now() - startedMs);
    if (judged === 'just claimed' && waitedMs < CLAIM_MS_MAX) {
      await pause();
      continue;
    }
    // Every earlier claimant was looked at after our own claim was durable: our claim stands.
    if (claimId !== undefined && claims.lastId === claimId) return { kind: 'ours', claimId };
    const data = { paymentId, merchantId, operationId, amount, currency };
    claimId = await deps.claims.claim(claims, data, contextOf(sender));
  }
};

/** Whether this claim is still the last one. Throws what the event store throws. */
export const stillClaims = async (
  deps: CommandDeps,
  { merchantId }: CreateCommand,
  reference: string,
  claimId: string,
): Promise<boolean> => (await deps.claims.read(merchantId, reference)).lastId === claimId;

/** Undefined when no payment holds the reference. */
const judge = async (
  deps: CommandDeps,
  claims: Claims,
  create: CreateCommand,
  budget: Budget,
): Promise<CommandResponse | 'just claimed' | undefined> => {
  const last = claims.paymentIds.at(-1);
  const others = new Set(claims.paymentIds.filter((id) => id !== create.paymentId));
  for (const id of others) {
    const payment = await ended(deps, id, budget);
    if (payment?.state.status === 'FAILED') continue;
    if (payment !== undefined) return responseOf(payment, id, create);
    if (id === last) return 'just claimed';
  }
  return undefined;
};

/** The payment, if it exists, after its create has ended, as far as that can be known. */
const ended = async (
  deps: CommandDeps,
  id: string,
  budget: Budget,
): Promise<LoadedPayment | undefined> => {
  const known = deps.paymentLog.peek(id);
  if (known?.state.status === 'FAILED') return known;
  const payment = await deps.paymentLog.load(id, 'store');
  if (payment?.state.status !== 'PENDING') return payment;
  // The create of a PENDING payment no longer waits for a reference, so the two never wait for each other.
  return resolvedInTurn(deps, id, budget);
};

const responseOf = (payment: LoadedPayment, id: string, create: CreateCommand): CommandResponse => {
  const { state } = payment;
  const first = createOf(state);
  if (!isOfSameRequest(first, create)) {
    return rejection('BUSINESS_RULE_VIOLATION', [
      `merchantReference names another payment already, ${id}`,
    ]);
  }
  if (state.status === 'PENDING') return { ...unknownOutcome(id), ...seenOf(payment, id) };
  const { readModel } = state;
  if (first.ended?.revision === readModel.revision) return responseTo(payment, first);
  return {
    status: 200,
    body: bodyOf(readModel),
    headers: { etag: `"${readModel.revision}"` },
    outcome: 'approved',
    ...seenOf(payment, id),
  };
};

const seenOf = ({ events }: LoadedPayment, paymentId: string) => ({
  seen: { paymentId, revision: events.length - 1 },
});
