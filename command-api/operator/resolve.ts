/**
 * Resolving by hand (ADR-0013): an operator gives the outcome of an unresolved operation for which
 * the provider will never give one. The outcome is recorded with the operator and the evidence, and
 * only where the provider, asked once more, gives none.
 */
import type { FinalOutcomeDetails } from '../../shared/payment/outcome.ts';
import {
  type Operation,
  type PaymentState,
  unresolvedOperations,
} from '../../shared/payment/state.ts';
import type { CommandDeps, Sender } from '../deps.ts';
import type { LoadedPayment } from '../payment-log.ts';
import { ask } from '../recovery/ask.ts';
import { operationOf } from '../responses.ts';

export type Resolution = {
  paymentId: string;
  outcome: 'approved' | 'declined';
  evidence: string;
  /** Which one, where several operations are unresolved. */
  operationId?: string | undefined;
};

export type Resolved =
  | {
      kind: 'resolved';
      operation: Operation;
      status: PaymentState['status'];
      revision: number;
    }
  | { kind: 'unknown payment' }
  /** In words, for the operator; `retryAfterSeconds` where a later request may be accepted. */
  | { kind: 'rejected'; why: string; retryAfterSeconds?: number };

const rejected = (why: string): Resolved => ({ kind: 'rejected', why });

const WORDS = {
  APPROVED: 'approved',
  DECLINED: 'declined',
  NOT_SENT: 'never sent',
  FENCED: 'never carried out',
} as const;

/** An operator knows no reason of a decline, so its failure code is UNKNOWN_DECLINE. */
const outcomeOf = ({ outcome }: Resolution): FinalOutcomeDetails =>
  outcome === 'approved'
    ? { outcome: 'APPROVED' }
    : { outcome: 'DECLINED', failureCode: 'UNKNOWN_DECLINE' };

/**
 * Records an operator's word for the outcome of one unresolved operation. Asks the provider first: a
 * final outcome of its own is recorded instead. Throws what the event store throws.
 */
export const resolveByHand = async (
  deps: CommandDeps,
  operator: Sender,
  resolution: Resolution,
): Promise<Resolved> => {
  const { paymentId } = resolution;
  // Before the queue: an actor who may not see the payment does not wait for what runs on it either.
  // The cache will do, for the merchant of a payment never changes.
  const seen = await deps.paymentLog.load(paymentId, 'cache');
  if (!isOf(seen, operator)) return { kind: 'unknown payment' };
  return deps.queues.run(paymentId, async () => {
    const payment = await deps.paymentLog.load(paymentId, 'store');
    if (payment === undefined) return { kind: 'unknown payment' };
    const operation = meantOf(payment, resolution);
    if (typeof operation === 'string') return rejected(operation);
    const leftMs = deps.inFlight.leftMs(payment);
    if (leftMs > 0) return stillRuns(leftMs);
    // seeded bug: person-asks-provider
    const outcome = await ask(deps, payment, operation);
    if (outcome === 'at work') return stillAtWork();
    if (outcome === undefined) return record(deps, operator, payment, operation, resolution);
    const { operationId } = operation;
    const recorded = await deps.paymentLog.recordOutcome(payment, operationId, outcome, 'recovery');
    deps.unresolved.update(paymentId, recorded);
    return rejected(
      `the provider has answered for the ${operation.kind} itself, and that is recorded: ${WORDS[outcome.outcome]}`,
    );
  });
};

const isOf = (payment: LoadedPayment | undefined, { merchantId }: Sender): boolean =>
  payment !== undefined && (merchantId === '*' || merchantId === payment.state.merchantId);

const stillRuns = (leftMs: number): Resolved => ({
  kind: 'rejected',
  why: 'its call to the provider may still run; try again when it must have ended',
  retryAfterSeconds: Math.ceil(leftMs / 1000),
});

const AT_WORK_RETRY_SECONDS = 60;

const stillAtWork = (): Resolved => ({
  kind: 'rejected',
  why: 'the provider says that it still works on it, so that money may yet move; try again later',
  retryAfterSeconds: AT_WORK_RETRY_SECONDS,
});

/** The operation that the request means, or why it means none. */
const meantOf = ({ state }: LoadedPayment, { operationId }: Resolution): Operation | string => {
  const unresolved = unresolvedOperations(state);
  const [first] = unresolved;
  if (first === undefined)
    return 'nothing is unresolved on this payment: every operation has its outcome';
  if (operationId === undefined && unresolved.length === 1) return first;
  const ids = unresolved.map((o) => `${o.operationId} (${o.kind} of ${o.amountMinor})`).join(', ');
  if (operationId === undefined) return `several operations are unresolved, name one: ${ids}`;
  const meant = unresolved.find((o) => o.operationId === operationId);
  return meant ?? `that operation is not unresolved; unresolved are: ${ids}`;
};

const record = async (
  deps: CommandDeps,
  operator: Sender,
  payment: LoadedPayment,
  { operationId }: Operation,
  resolution: Resolution,
): Promise<Resolved> => {
  const by = { operator, evidence: resolution.evidence };
  const outcome = outcomeOf(resolution);
  const recorded = await deps.paymentLog.recordOutcome(payment, operationId, outcome, by);
  deps.unresolved.update(payment.state.paymentId, recorded);
  const operation = operationOf(recorded, operationId);
  const revision = operation.ended?.revision;
  const event = recorded.events.findLast((e) => e.revision === revision);
  if (event === undefined || revision === undefined)
    throw new Error(`operation ${operationId} has no event of the outcome that was just recorded`);
  if (event.context.requestId !== operator.requestId) {
    return rejected('its outcome was found and recorded in the same moment; look at the payment');
  }
  return { kind: 'resolved', operation, status: recorded.state.status, revision };
};
