/**
 * The append of an intent. Where nobody can say whether it was stored, no call follows it, and it
 * is followed up: as an intent without an outcome it would bar the payment (gaps §7).
 */
import { AppendOutcomeUnknown } from '../shared/event-store/errors.ts';
import type { ChangeCommand, CreateCommand } from '../shared/payment/commands.ts';
import type { CommandDeps, Principal } from './operate.ts';
import type { Executed } from './payment-log.ts';
import { type Budget, BudgetSpent } from './request-budget.ts';

/** Decides and appends the intent. Throws BudgetSpent, and what PaymentLog.execute throws. */
export const intend = async (
  deps: CommandDeps,
  command: CreateCommand | ChangeCommand,
  paymentId: string,
  principal: Principal,
  budget: Budget,
): Promise<Executed> => {
  // Told that nothing was begun, a client may have sent it again: it must not happen behind it.
  if (budget.leftMs() === 0) throw new BudgetSpent();
  budget.appending = true;
  try {
    return await deps.log.execute(paymentId, command, deps.contextOf(principal), budget);
  } catch (error) {
    if (error instanceof AppendOutcomeUnknown)
      deps.recovery.callEnded(paymentId, command.operationId, 'open');
    throw error;
  } finally {
    budget.appending = false;
  }
};
