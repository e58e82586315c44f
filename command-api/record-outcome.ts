/** The append of an outcome: the provider's, recovery's, or a person's word for it. */
import type { EventContext } from '../shared/event-store/port.ts';
import type { FinalOutcomeDetails } from '../shared/payment/outcome.ts';
import type { CommandDeps } from './deps.ts';
import type { LoadedPayment } from './payment-log.ts';
import { startBudget } from './request-budget.ts';

/** A person's word for an outcome in place of the provider's (operator/resolve.ts). */
export type RecordedBy = { context?: EventContext; resolution?: { evidence: string } };

/** How long the store may take to accept an outcome; the request's own budget does not bound it. */
const RECORD_BUDGET_MS = 10_000;

const contextOf = (intent: EventContext, intentId: string, by: RecordedBy | 'recovery') => {
  if (by === 'recovery') return { ...intent, actor: 'recovery', causationId: intentId };
  return { ...(by.context ?? intent), causationId: intentId };
};

/**
 * Records the outcome of one operation; where another process was faster, its outcome stays. Call
 * it in the payment's queue. Returns the payment as it is afterwards. Throws what the event store
 * throws.
 */
export const recordOutcome = async (
  { paymentLog }: Pick<CommandDeps, 'paymentLog'>,
  payment: LoadedPayment,
  operationId: string,
  outcome: FinalOutcomeDetails,
  by: RecordedBy | 'recovery' = {},
): Promise<LoadedPayment> => {
  const { paymentId } = payment.state;
  const intent = payment.events.find(({ event }) => event.data.operationId === operationId);
  if (intent === undefined) throw new Error(`${operationId}: an outcome without its intent`);
  const resolution = by === 'recovery' ? undefined : by.resolution;
  const command = {
    kind: 'record',
    operationId,
    ...outcome,
    ...(resolution !== undefined && { resolution }),
  } as const;
  const context = contextOf(intent.context, intent.id, by);
  const budget = startBudget(RECORD_BUDGET_MS);
  const recorded = await paymentLog.execute(paymentId, command, context, budget);
  if (recorded.kind !== 'done') throw new Error(`${operationId}: an outcome was ${recorded.kind}`);
  return recorded.payment;
};
