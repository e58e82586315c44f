/**
 * A person's word never ends the asking (gaps §16, ADR-0099): the provider is asked on about what was
 * resolved by hand, fence included, until it is definite. Where it says the same, that is recorded
 * and the asking ends. Where it says other, nothing is rewritten: the contradiction is recorded, and
 * the provider is asked on, for it may yet correct its side.
 */
import { type Operation, unconfirmedOperations } from '../../shared/payment/payment-state.ts';
import type { CommandDeps } from '../deps.ts';
import { type LoadedPayment, operationOf } from '../loaded-payment.ts';
import { ask } from './ask.ts';

/**
 * Asks about each operation of the payment that was resolved by hand and is not confirmed; stops
 * between two questions when `goOn` says so. Outside of the payment's queue, so that no command
 * waits for the provider because of an operation that has its outcome; only recording waits for its
 * turn. Returns the payment as it is afterwards.
 */
export const confirmByAsking = async (
  deps: CommandDeps,
  payment: LoadedPayment,
  goOn: () => boolean,
): Promise<LoadedPayment> => {
  let after = payment;
  for (const operation of unconfirmedOperations(payment.state)) {
    if (!goOn()) break;
    after = await confirmOne(deps, after, operation);
  }
  return after;
};

const confirmOne = async (
  deps: CommandDeps,
  payment: LoadedPayment,
  operation: Operation,
): Promise<LoadedPayment> => {
  const outcome = await ask(deps, payment, operation);
  if (outcome === undefined || outcome === 'at work') return payment;
  const { paymentId } = payment.state;
  const { operationId, kind, ended } = operation;
  const after = await deps.queues.run(paymentId, () =>
    deps.paymentLog.confirm(payment, operationId, outcome),
  );
  const { confirmation } = operationOf(after, operationId);
  const fields = {
    paymentId,
    operation: kind,
    operationId,
    amountMinor: operation.amountMinor,
    recorded: ended?.outcome,
    provider: outcome.outcome,
  };
  if (confirmation === undefined)
    deps.logger.info(fields, 'the provider confirmed what was resolved by hand');
  else if (operation.confirmation === 'UNCONFIRMED')
    deps.logger.error(
      fields,
      'the provider contradicts what was resolved by hand; nothing is rewritten: see payments unresolved',
    );
  return after;
};
