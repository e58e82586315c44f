/** Capture, void and refund in the payment's turn: new ones (repeats.ts) go to operate.ts (gaps §5 to §8). */
import { sealBox } from '../personal-data/box.ts';
import { decide } from '../shared/payment/decide.ts';
import { streamOf } from '../shared/payment/events.ts';
import { authorizationOf } from '../shared/payment/state.ts';
import { newOperationId } from '../shared/runtime/ids.ts';
import type { CommandDeps } from './deps.ts';
import { operate } from './operate.ts';
import { CHANGE_KINDS } from './recovery/ask.ts';
import { responseUnlessFenced } from './recovery/contradiction.ts';
import { findChange, type NextChange, respondOrBegin, type SentChange } from './repeats.ts';
import { type CommandResponse, rejection } from './responses.ts';

export const changePayment = (deps: CommandDeps, sent: SentChange): Promise<CommandResponse> => {
  const find = () => findChange(deps, sent);
  const begin = (next: NextChange) => changeAnew(deps, sent, next);
  return deps.queues.run(sent.change.paymentId, () => respondOrBegin(deps, sent, find, begin));
};

const INTENTS_OF = {
  capture: 'PaymentCaptureRequested',
  void: 'PaymentVoidRequested',
  refund: 'PaymentRefundRequested',
} as const;

/** Undefined if another request was faster. Throws KeysUnavailable. */
const changeAnew = async (
  deps: CommandDeps,
  { sender, change, key, request, budget, reach }: SentChange,
  { attempt, payment, freed }: NextChange,
): Promise<CommandResponse | undefined> => {
  const { kind, paymentId, amount, reason } = change;
  const { identities, operationsMax, providers } = deps;
  // Derived under a key, with the number of the attempt (gaps §17).
  const operationId =
    key === undefined
      ? newOperationId()
      : identities.operationIdOf(sender.merchantId, kind, paymentId, key, attempt);
  const place = { stream: streamOf(paymentId), eventType: INTENTS_OF[kind], field: 'reason' };
  const sealed = reason && sealBox(await deps.keys.take(budget.leftMs()), place, reason);
  const intended = { kind, operationId, amount, reason: sealed || undefined };
  const command = { ...intended, ...request, operationsMax, providers };
  if (freed !== undefined) {
    // A change that the rules refuse makes no attempt, so the one before needs no fence.
    const decision = decide(payment.state, command);
    if (decision.kind === 'refused') return rejection(decision.code, decision.details);
    const barred = await responseUnlessFenced(deps, payment, freed);
    if (barred !== undefined) return barred;
  }
  const call = { kind: CHANGE_KINDS[kind], ...authorizationOf(payment.state) };
  return operate(deps, { paymentId, command, call, sender, budget, reach });
};
