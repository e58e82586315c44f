/**
 * A merchantReference that names one payment (decisions §8, `MERCHANT_REFERENCE=unique`), over
 * races and over several processes. A create claims the reference, is appended, reads the claims
 * again, and goes to the provider only while the last one is its own.
 *
 * Why two of them never both go: of two claimants the later one looks at the earlier one's payment
 * after its own claim is durable. Either that payment is there by then, and the later one yields,
 * or it is appended afterwards, and then finds that the last claim is no longer its own. So every
 * payment that ever claimed is looked at, not the last one alone.
 */
import type { CreateCommand } from '../shared/payment/commands.ts';
import { bodyOf } from '../shared/payment/response.ts';
import { openOperations } from '../shared/payment/state.ts';
import { pauses, quietPayment } from './in-flight.ts';
import type { Caller, CommandRoom } from './operate.ts';
import type { LoadedPayment } from './payment-log.ts';
import type { Claims } from './reference-claims.ts';
import { type Budget, BudgetSpent } from './request-budget.ts';
import { type Answer, answerTo, refusal, unknownOutcome } from './responses.ts';

/** How long a claimant has from its claim to its payment before it is passed over. */
const CLAIM_MS_MAX = 2_000;

/** `ours`: the reference is claimed for this create; else the answer of the payment that has it. */
export type Claimed = { kind: 'ours' } | { kind: 'held'; answer: Answer };

/** Claims a reference for a create that is not appended yet. Throws BudgetSpent. */
export const claimReference = async (
  room: CommandRoom,
  caller: Caller,
  create: CreateCommand,
  reference: string,
  budget: Budget,
): Promise<Claimed> => {
  const { paymentId, merchantId, operationId, amount, currency } = create;
  if (amount === 'too large') throw new Error('a claim for what the rules refuse');
  const pause = pauses(budget);
  const startedMs = performance.now();
  for (;;) {
    if (budget.leftMs() === 0) throw new BudgetSpent();
    const claims = await room.claims.read(merchantId, reference);
    const judged = await judge(room, claims, create, budget);
    if (typeof judged === 'object') return { kind: 'held', answer: judged };
    const waitedMs = Math.max(claims.lastAgeMs, performance.now() - startedMs);
    if (judged === 'just claimed' && waitedMs < CLAIM_MS_MAX) {
      await pause();
      continue;
    }
    // Everybody before was looked at after our own claim: it stands.
    if (claims.lastOperationId === operationId) return { kind: 'ours' };
    const data = { paymentId, merchantId, operationId, amount, currency };
    await room.claims.claim(claims, data, room.contextOf(caller));
  }
};

/** Whether the last claim is still this create's. Throws what the event store throws. */
export const stillClaims = async (
  room: CommandRoom,
  { merchantId, operationId }: CreateCommand,
  reference: string,
): Promise<boolean> =>
  (await room.claims.read(merchantId, reference)).lastOperationId === operationId;

/** Undefined when no payment holds the reference. */
const judge = async (
  room: CommandRoom,
  claims: Claims,
  create: CreateCommand,
  budget: Budget,
): Promise<Answer | 'just claimed' | undefined> => {
  const last = claims.paymentIds.at(-1);
  const others = new Set(claims.paymentIds.filter((id) => id !== create.paymentId));
  for (const id of others) {
    const payment = await ended(room, id, budget);
    const { state } = payment;
    if (state.status === 'FAILED') continue;
    if (state.status !== 'NONE') return answerOf(payment, id, create);
    if (id === last) return 'just claimed';
  }
  return undefined;
};

/** The payment after its create has ended, as far as that can be known. */
const ended = async (room: CommandRoom, id: string, budget: Budget): Promise<LoadedPayment> => {
  const known = room.log.peek(id);
  if (known?.state.status === 'FAILED') return known;
  const payment = await room.log.load(id, 'store');
  if (payment.state.status !== 'PENDING') return payment;
  // Whoever is PENDING waits for nobody's reference, so this queue moves on.
  return room.queues.run(id, async () => {
    const quiet = await quietPayment(room, id, 'store', budget);
    return openOperations(quiet.state).length > 0 ? room.recovery.settle(id) : quiet;
  });
};

const answerOf = (payment: LoadedPayment, id: string, create: CreateCommand): Answer => {
  const { state, view } = payment;
  if (state.status === 'NONE' || view === undefined) throw new Error('nobody holds the reference');
  const [first] = state.operations;
  if (first?.identity.fingerprint !== create.identity.fingerprint) {
    return refusal(422, 'BUSINESS_RULE_VIOLATION', [
      `merchantReference names another payment already, ${id}`,
    ]);
  }
  if (state.status === 'PENDING') return { ...unknownOutcome(id), ...seenOf(payment, id) };
  if (first.outcome?.revision === view.revision) return answerTo(payment, first);
  return {
    status: 200,
    body: bodyOf(view),
    headers: { etag: `"${view.revision}"` },
    outcome: 'approved',
    ...seenOf(payment, id),
  };
};

const seenOf = ({ events }: LoadedPayment, paymentId: string) => ({
  seen: { paymentId, revision: events.length - 1 },
});
