/**
 * POST capture, void and refund: wait for what runs elsewhere, resolve what is open, intent,
 * provider, outcome (gaps §5 to §8). All of it runs in the payment's queue, so one at a time
 * within this process.
 */

import type { RequestedAmount } from '../shared/payment/commands.ts';
import type { RequestIdentity } from '../shared/payment/payment-events.ts';
import {
  authorizationIdOf,
  isFree,
  type Operation,
  operationUnder,
  unresolvedOperations,
} from '../shared/payment/state.ts';
import { newOperationId } from '../shared/runtime/ids.ts';
import { waitForInFlight } from './in-flight.ts';
import { intend } from './intend.ts';
import { type CommandDeps, operate, type Principal } from './operate.ts';
import type { LoadedPayment } from './payment-log.ts';
import { type Budget, BudgetSpent } from './request-budget.ts';
import {
  type CommandResponse,
  operationOf,
  rejection,
  replayed,
  responseTo,
  unknownOutcome,
} from './responses.ts';

export type ChangeKind = 'capture' | 'void' | 'refund';

/** A capture, void or refund as it was parsed; an omitted amount is not the same as a given one. */
export type Change = {
  kind: ChangeKind;
  paymentId: string;
  amount?: RequestedAmount | undefined;
  reason?: string | undefined;
};

const CALL_KINDS = { capture: 'CAPTURE', void: 'VOID', refund: 'REFUND' } as const;

/**
 * Carries a change out, joins an equal unresolved one, or answers a repeat under a key. The
 * payment must exist and be the caller's. Throws BudgetSpent when its turn comes too late, and
 * what the event store throws.
 */
export const changePayment = (
  deps: CommandDeps,
  principal: Principal,
  change: Change,
  key: string | undefined,
  budget: Budget,
): Promise<CommandResponse> => {
  const identity = identityOf(deps, principal, change, key);
  return deps.queues.run(change.paymentId, async () => {
    for (;;) {
      const response = await changeOrRepeat(deps, principal, change, identity, budget);
      if (response !== undefined) return response;
    }
  });
};

/** Undefined when another process was faster: wait for it, and judge anew. */
const changeOrRepeat = async (
  deps: CommandDeps,
  principal: Principal,
  change: Change,
  identity: RequestIdentity,
  budget: Budget,
): Promise<CommandResponse | undefined> => {
  if (budget.leftMs() === 0) throw new BudgetSpent();
  const hasKey = identity.keyHash !== undefined;
  // A replay is only ever given from a stream just read; a new operation is guarded by its revision.
  let payment = await waitForInFlight(deps, change.paymentId, hasKey ? 'store' : 'cache', budget);
  const earlier = equalOperation(payment, change, identity);
  if (earlier === 'reused') {
    return rejection(422, 'IDEMPOTENCY_KEY_REUSED', [
      'the Idempotency-Key was used for another request; use a new key',
    ]);
  }
  if (unresolvedOperations(payment.state).length > 0) {
    payment = await deps.recovery.resolve(change.paymentId);
  }
  if (earlier !== undefined) {
    const operation = operationOf(payment, earlier.operationId);
    // Under a key a fenced attempt frees it; whoever joined without one gets the attempt's answer.
    if (!hasKey) return responseTo(payment, operation);
    if (operation.ended === undefined) return responseTo(payment, operation);
    // seeded bug: repeat-replayed
    if (!isFree(operation)) return replayed(responseTo(payment, operation));
  }
  return begin(deps, principal, change, identity, budget);
};

/** The keyed hashes that a repeat of this change is recognised by (gaps §8). */
export const identityOf = (
  deps: CommandDeps,
  principal: Principal,
  { kind, paymentId, amount, reason }: Change,
  key: string | undefined,
): RequestIdentity => {
  const { identities } = deps;
  const fingerprint = identities.fingerprintOf({
    route: kind,
    paymentId,
    // seeded bug: change-fingerprint
    amount: amount ?? null,
    reason: reason ?? null,
  });
  if (key === undefined) return { fingerprint };
  return { fingerprint, keyHash: identities.keyHashOf(principal.merchantId, kind, paymentId, key) };
};

/**
 * With a key: the latest operation under it, unless its attempt is proven never carried out.
 * Without one: an equal operation that is unresolved (it is not running: this is its queue).
 */
const equalOperation = (
  { state }: LoadedPayment,
  { kind }: Change,
  { fingerprint, keyHash }: RequestIdentity,
): Operation | 'reused' | undefined => {
  if (state === undefined) return undefined;
  if (keyHash === undefined) {
    return unresolvedOperations(state).find(
      (o) => o.kind === kind && o.identity.fingerprint === fingerprint,
    );
  }
  const last = operationUnder(state, keyHash);
  if (last === undefined || isFree(last)) return undefined;
  return last.identity.fingerprint === fingerprint ? last : 'reused';
};

const begin = async (
  deps: CommandDeps,
  principal: Principal,
  { kind, paymentId, amount, reason }: Change,
  identity: RequestIdentity,
  budget: Budget,
): Promise<CommandResponse | undefined> => {
  const operationId = newOperationId();
  const command = { kind, operationId, amountMinor: amount, reason, identity };
  const executed = await intend(deps, command, paymentId, principal, budget);
  // Refused because of what another process is about to end: that is no last word.
  if (executed.kind !== 'done' && deps.recovery.inFlightMs(executed.payment) > 0) return undefined;
  switch (executed.kind) {
    case 'refused':
      return rejection(422, executed.code, executed.details);
    case 'unresolved':
      return unknownOutcome(paymentId);
    // Another process was faster under the same key.
    case 'repeated':
      return undefined;
    case 'exists':
      throw new Error('a change cannot find that its payment exists already');
    case 'done': {
      const { payment } = executed;
      if (payment.state === undefined) throw new Error('a change of a payment that is not there');
      const authorizationId = authorizationIdOf(payment.state);
      const call = { kind: CALL_KINDS[kind], authorizationId };
      return operate(deps, payment, operationId, call, budget);
    }
  }
};
