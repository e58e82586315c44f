/** The provider carried out what the log has as NOT_SENT (gaps §16, §17): listed until two operators end it. */
import type { Approved } from '../../providers/port.ts';
import { isNeverCarriedOut, type Operation } from '../../shared/payment/state.ts';
import type { CommandDeps } from '../deps.ts';
import { BY_RECOVERY, type LoadedPayment, operationOf } from '../payment-log.ts';
import { type CommandResponse, responseTo, unknownOn } from '../responses.ts';
import { questionAbout } from './ask.ts';

const recordContradiction = async (
  { paymentLog, unresolved, logger }: CommandDeps,
  payment: LoadedPayment,
  { operationId, kind, amount, ended, confirmation }: Operation,
  said: Approved,
): Promise<void> => {
  const { paymentId } = payment.state;
  if (confirmation === 'CONTRADICTED') return;
  const command = { kind: 'confirm', operationId, ...said } as const;
  unresolved.add(paymentId, operationId, await paymentLog.record(payment, command, BY_RECOVERY));
  logger.error(
    { paymentId, operation: kind, operationId, amount, recorded: ended?.outcome },
    'the provider carried out what is recorded as never carried out; two operators have to resolve it: see payments unresolved',
  );
};

/** For a difference that reconciliation found. Never throws: the next one finds it again. */
export const askAboutNeverSent = async (
  deps: CommandDeps,
  { paymentId, operationId }: { paymentId: string; operationId: string },
): Promise<void> => {
  try {
    await deps.queues.run(paymentId, async () => {
      const payment = await deps.paymentLog.load(paymentId, 'store');
      if (payment === undefined) return;
      const operation = operationOf(payment, operationId);
      // A void moves no money: the next one brings the log level.
      const { contradictionEnded, kind } = operation;
      if (!isNeverCarriedOut(operation) || contradictionEnded || kind === 'void') return;
      const said = await deps.provider.lookUp(questionAbout(payment, operation));
      if (said.outcome === 'APPROVED') await recordContradiction(deps, payment, operation, said);
    });
  } catch (error) {
    deps.logger.warn({ paymentId, err: error }, 'a contradiction could not be recorded');
  }
};

/**
 * Fences an attempt that was never sent before its key gets another one (ADR-0103): a restored log would send
 * it again and charge twice. Undefined once the next may be made. Call it in the payment's queue, or the key's.
 */
export const responseUnlessFenced = async (
  deps: CommandDeps,
  payment: LoadedPayment,
  operation: Operation,
): Promise<CommandResponse | undefined> => {
  const { ended, kind, contradictionEnded } = operation;
  // Two operators have ended the contradiction: its money was given back.
  if (ended?.outcome !== 'NOT_SENT' || contradictionEnded) return undefined;
  const { paymentId } = payment.state;
  // Without a provider's name the one that is set fences it: that one gets the next attempt.
  const { provider: _, ...question } = questionAbout(payment, operation);
  const fence = await deps.provider.fence(question);
  if (fence.outcome === 'UNKNOWN')
    return deps.isLevel()
      ? responseTo(payment, operation)
      : unknownOn(
          paymentId,
          'the provider cannot say now whether an earlier attempt was carried out; repeat it under the same key',
        );
  // A void cannot happen twice: the next attempt brings the log level.
  if (fence.outcome !== 'APPROVED' || kind === 'void') return undefined;
  await recordContradiction(deps, payment, operation, fence);
  return unknownOn(
    paymentId,
    'the provider carried it out although it is recorded as never sent: an operator has to resolve it; do not send it again under another key',
  );
};
