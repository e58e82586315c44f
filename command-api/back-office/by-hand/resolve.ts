/**
 * Resolving by hand (gaps §16, ADR-0098): one operator's word is stored as a request, and a second
 * one's equal word within a day records it. The provider is asked each time, and its definite
 * outcome goes first. Two operators end a contradiction the same way.
 */
import { contextOf, type Sender } from '../../../shared/http/request.ts';
import type { ResolveCommand } from '../../../shared/payment/commands.ts';
import {
  type Operation,
  type PaymentState,
  unconfirmedOperations,
  unresolvedOperations,
} from '../../../shared/payment/state.ts';
import { isOfOperation } from '../../../shared/payment/transitions.ts';
import type { CommandDeps } from '../../deps.ts';
import { BY_RECOVERY, type LoadedPayment, operationOf } from '../../payment-log.ts';
import { askProvider } from '../../recovery/ask.ts';

/** For the operation of `operationId`, else for the only one that it can be for. */
type Resolution = Pick<ResolveCommand, 'outcome' | 'evidence' | 'withoutFence'> & {
  paymentId: string;
  operationId?: string | undefined;
};

export type Resolved =
  /** Requested, where the operation has a request; else resolved. */
  | { kind: 'taken'; operation: Operation; status: PaymentState['status']; revision: number }
  | { kind: 'unknown payment' }
  | { kind: 'rejected'; why: string; retryAfterSeconds: number | undefined };

const rejected = (why: string, retryAfterSeconds?: number): Resolved => ({
  kind: 'rejected',
  why,
  retryAfterSeconds,
});

const STILL_RUNS = 'its call to the provider may still run; try again when it must have ended';
const STILL_AT_WORK = rejected(
  'the provider says that it still works on it, so that money may yet move; try again later',
  60,
);

const WORDS = {
  APPROVED: 'approved',
  DECLINED: 'declined',
  NOT_SENT: 'never sent',
  FENCED: 'never carried out',
} as const;

export const resolveByHand = async (
  deps: CommandDeps,
  operator: Sender,
  resolution: Resolution,
): Promise<Resolved> => {
  const { paymentId } = resolution;
  return deps.queues.run(paymentId, async () => {
    const payment = await deps.paymentLog.load(paymentId, 'store');
    if (payment === undefined) return { kind: 'unknown payment' };
    const operation = meantOf(payment, resolution);
    if (typeof operation === 'string') return rejected(operation);
    const leftMs = deps.inFlight.leftMs(payment);
    if (leftMs > 0) return rejected(STILL_RUNS, Math.ceil(leftMs / 1000));
    const instead = await outcomeInstead(deps, payment, operation, resolution);
    if (instead !== undefined) return instead;
    const { operationId } = operation;
    const { outcome, evidence, withoutFence } = resolution;
    const said = { outcome, evidence, withoutFence, actor: operator.actor, atMs: deps.nowMs() };
    const command = { kind: 'resolve', operationId, ...said } as const;
    const after = await deps.paymentLog.record(payment, command, contextOf(operator));
    const { confirmation } = operationOf(after, operationId);
    if (confirmation === 'UNCONFIRMED') deps.unresolved.add(paymentId, operationId, after);
    else deps.unresolved.update(paymentId, after);
    return resolvedOf(after, operation, operator);
  });
};

const meantOf = ({ state }: LoadedPayment, { operationId }: Resolution): Operation | string => {
  const contradicted = unconfirmedOperations(state).filter(
    ({ confirmation }) => confirmation === 'CONTRADICTED',
  );
  const open = [...unresolvedOperations(state), ...contradicted];
  const [first] = open;
  if (first === undefined)
    return 'nothing is unresolved on this payment: every operation has its outcome';
  if (operationId === undefined && open.length === 1) return first;
  const ids = open.map((o) => `${o.operationId} (${o.kind} of ${o.amount})`).join(', ');
  if (operationId === undefined) return `several operations are unresolved, name one: ${ids}`;
  const meant = open.find((o) => o.operationId === operationId);
  return meant ?? `that operation is not unresolved; unresolved are: ${ids}`;
};

const NO_FENCE =
  'the provider does not promise that it will never carry the operation out, so declined needs "withoutFence": true (--without-fence): only where you know of another way that no money moves';

const outcomeInstead = async (
  deps: CommandDeps,
  payment: LoadedPayment,
  operation: Operation,
  { outcome: word, withoutFence }: Resolution,
): Promise<Resolved | undefined> => {
  const { ended, kind, operationId } = operation;
  if (ended !== undefined && (ended.outcome === 'APPROVED') !== (word === 'APPROVED'))
    return rejected(
      `the ${kind} is recorded as ${WORDS[ended.outcome]}, and nothing is rewritten; correct the provider's side, then resolve it as what is recorded`,
    );
  const outcome = await askProvider(deps, payment, operation);
  if (ended !== undefined) {
    if (outcome === undefined || outcome === 'at work') return undefined;
    const command = { kind: 'confirm', operationId, ...outcome } as const;
    const after = await deps.paymentLog.record(payment, command, BY_RECOVERY);
    deps.unresolved.update(payment.state.paymentId, after);
    return operationOf(after, operationId).confirmation === undefined
      ? rejected(`the provider agrees with the ${kind} by now, and that is recorded`)
      : undefined;
  }
  if (outcome === 'at work') return STILL_AT_WORK;
  if (outcome === undefined)
    return word === 'DECLINED' && !withoutFence ? rejected(NO_FENCE) : undefined;
  const command = { kind: 'record', operationId, ...outcome } as const;
  const recorded = await deps.paymentLog.record(payment, command, BY_RECOVERY);
  deps.unresolved.update(payment.state.paymentId, recorded);
  if (operationOf(recorded, operationId).ended === undefined) return STILL_AT_WORK;
  return rejected(
    `the provider has answered for the ${kind} itself, and that is recorded: ${WORDS[outcome.outcome]}`,
  );
};

const resolvedOf = (
  { events, state }: LoadedPayment,
  { operationId, ended: endedBefore }: Operation,
  operator: Sender,
): Resolved => {
  const operation = operationOf({ state }, operationId);
  const { status } = state;
  if (operation.resolutionRequest !== undefined)
    return { kind: 'taken', operation, status, revision: events.length - 1 };
  const last = events.findLast(({ event }) => isOfOperation(event, operationId));
  if (last?.context.requestId !== operator.requestId)
    return rejected('its outcome was found and recorded in the same moment; look at the payment');
  const revision = endedBefore === undefined ? operation.ended?.revision : last.revision;
  return { kind: 'taken', operation, status, revision: revision ?? last.revision };
};
