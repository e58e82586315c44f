/**
 * The provider carried out what the log has as never carried out, as a restored log may (gaps §16,
 * §17). Nothing is rewritten: the contradiction is listed until two operators end it.
 */
import { isFree, type Operation } from '../../shared/payment/payment-state.ts';
import type { CommandDeps } from '../deps.ts';
import { type LoadedPayment, operationOf } from '../loaded-payment.ts';
import type { Approved } from '../provider/port.ts';
import { questionAbout } from '../question.ts';

/** Records it once. Throws what the event store throws. */
export const recordContradiction = async (
  { paymentLog, unresolved, logger }: CommandDeps,
  payment: LoadedPayment,
  { operationId, kind, amountMinor, ended, confirmation }: Operation,
  said: Approved,
): Promise<void> => {
  const { paymentId } = payment.state;
  if (confirmation === 'CONTRADICTED') return;
  const after = await paymentLog.confirm(payment, operationId, said);
  unresolved.add(paymentId, operationId, after);
  logger.error(
    { paymentId, operation: kind, operationId, amountMinor, recorded: ended?.outcome },
    'the provider carried out what is recorded as never carried out; two operators have to resolve it: see payments unresolved',
  );
};

/** Asks about an operation of that kind. Never throws: the next reconciliation finds it again. */
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
      if (!isFree(operation) || operation.contradictionEnded || operation.kind === 'void') return;
      const said = await deps.provider.lookUp(questionAbout(payment, operation));
      if (said.outcome === 'APPROVED') await recordContradiction(deps, payment, operation, said);
    });
  } catch (error) {
    deps.logger.warn({ paymentId, err: error }, 'a contradiction could not be recorded');
  }
};
