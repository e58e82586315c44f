/**
 * A person ends an operation that the provider will never answer for (decision 0013). The word is
 * recorded as the outcome, with who gave it and on what evidence; it is taken only where nothing
 * better can be had.
 */
import type { Outcome } from '../../shared/payment/commands.ts';
import {
  type ExistingPayment,
  type Operation,
  openOperations,
} from '../../shared/payment/state.ts';
import type { Caller, CommandRoom } from '../operate.ts';
import type { LoadedPayment } from '../payment-log.ts';
import { operationOf } from '../responses.ts';

export type Settlement = {
  paymentId: string;
  outcome: 'approved' | 'declined';
  evidence: string;
  /** Which one, where several are open. */
  operationId?: string | undefined;
};

export type Settled =
  | {
      kind: 'settled';
      operation: Operation;
      status: ExistingPayment['status'];
      revision: number;
    }
  | { kind: 'unknown payment' }
  /** In words, for the person; `retryAfterSeconds` where a later try may be taken. */
  | { kind: 'refused'; why: string; retryAfterSeconds?: number };

const refused = (why: string): Settled => ({ kind: 'refused', why });

const WORDS = {
  APPROVED: 'approved',
  DECLINED: 'declined',
  NOT_SENT: 'never sent',
  FENCED: 'never carried out',
} as const;

/** A decline of which nobody knows the provider's reason. */
const outcomeOf = ({ outcome }: Settlement): Outcome =>
  outcome === 'approved'
    ? { result: 'APPROVED' }
    : { result: 'DECLINED', failureCode: 'UNKNOWN_DECLINE' };

/**
 * Records a person's word for the outcome of one open operation. Asks the provider first: what it
 * says for good is recorded instead. Throws what the event store throws.
 */
export const settleByHand = async (
  room: CommandRoom,
  caller: Caller,
  settlement: Settlement,
): Promise<Settled> => {
  const { paymentId } = settlement;
  // Whose it is never changes.
  const { state } = await room.log.load(paymentId, 'cache');
  const isTheirs = caller.merchantId === '*' || caller.merchantId === merchantOf(state);
  // Before the queue: whoever may not see the payment does not wait for what runs on it either.
  if (state.status === 'NONE' || !isTheirs) return { kind: 'unknown payment' };
  return room.queues.run(paymentId, async () => {
    const payment = await room.log.load(paymentId, 'store');
    const open = openOf(payment, settlement);
    if (typeof open === 'string') return refused(open);
    const leftMs = room.recovery.inFlightMs(payment);
    if (leftMs > 0) return stillRuns(leftMs);
    const answered = await room.recovery.ask(payment, open);
    if (answered === 'at work') return stillAtWork();
    if (answered === undefined) return record(room, caller, payment, open, settlement);
    await room.recovery.record(payment, open.operationId, answered, 'recovery');
    return refused(
      `the provider has answered for the ${open.kind} itself, and that is recorded: ${WORDS[answered.result]}`,
    );
  });
};

const merchantOf = (state: LoadedPayment['state']): string | undefined =>
  state.status === 'NONE' ? undefined : state.merchantId;

const stillRuns = (leftMs: number): Settled => ({
  kind: 'refused',
  why: 'its call to the provider may still run; try again when it must have ended',
  retryAfterSeconds: Math.ceil(leftMs / 1000),
});

const AT_WORK_RETRY_SECONDS = 60;

const stillAtWork = (): Settled => ({
  kind: 'refused',
  why: 'the provider says that it still works on it, so that money may yet move; try again later',
  retryAfterSeconds: AT_WORK_RETRY_SECONDS,
});

/** The operation that is meant, or why none is. */
const openOf = ({ state }: LoadedPayment, { operationId }: Settlement): Operation | string => {
  const open = openOperations(state);
  const [first] = open;
  if (first === undefined)
    return 'nothing is open on this payment: every operation has its outcome';
  if (operationId === undefined && open.length === 1) return first;
  const ids = open.map((o) => `${o.operationId} (${o.kind} of ${o.amount})`).join(', ');
  if (operationId === undefined) return `several operations are open, name one: ${ids}`;
  const meant = open.find((o) => o.operationId === operationId);
  return meant ?? `that operation is not open; open are: ${ids}`;
};

const record = async (
  room: CommandRoom,
  caller: Caller,
  payment: LoadedPayment,
  { operationId }: Operation,
  settlement: Settlement,
): Promise<Settled> => {
  const { evidence } = settlement;
  const context = room.contextOf(caller);
  const outcome = outcomeOf(settlement);
  const by = { context, settlement: { evidence } };
  const recorded = await room.recovery.record(payment, operationId, outcome, by);
  const operation = operationOf(recorded, operationId);
  const revision = operation.outcome?.revision;
  const event = recorded.events.findLast((e) => e.revision === revision);
  if (recorded.state.status === 'NONE' || event === undefined || revision === undefined)
    throw new Error('an outcome that was recorded and is not there');
  if (event.context.requestId !== context.requestId) {
    return refused('its outcome was found and recorded in the same moment; look at the payment');
  }
  return { kind: 'settled', operation, status: recorded.state.status, revision };
};
