/** Waiting for what other processes may still be doing on a payment (gaps §7). */
import { setTimeout as wait } from 'node:timers/promises';
import type { CommandDeps } from './operate.ts';
import type { LoadedPayment } from './payment-log.ts';
import { type Budget, BudgetSpent } from './request-budget.ts';

const PAUSE_MS_MIN = 20;
const PAUSE_MS_MAX = 250;

/** The pauses of somebody who waits for another process: growing, uneven, never past the budget. */
export const pauses = (budget: Budget): ((atMostMs?: number) => Promise<void>) => {
  let pauseMs = PAUSE_MS_MIN;
  return async (atMostMs = PAUSE_MS_MAX) => {
    const leftMs = budget.leftMs();
    if (leftMs === 0) throw new BudgetSpent();
    await wait(Math.min(pauseMs * (0.5 + Math.random()), atMostMs, leftMs));
    pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX);
  };
};

/**
 * The payment once no other process's call can be running on it: what is open then is unresolved.
 * Call it in the payment's queue, where no call of this process runs. Throws BudgetSpent.
 */
export const waitForInFlight = async (
  deps: CommandDeps,
  paymentId: string,
  from: 'store' | 'cache',
  budget: Budget,
): Promise<LoadedPayment> => {
  const pause = pauses(budget);
  let payment = await deps.log.load(paymentId, deps.sharedStore ? 'store' : from);
  for (;;) {
    const leftMs = deps.recovery.inFlightMs(payment);
    if (leftMs === 0) return payment;
    await pause(leftMs);
    payment = await deps.log.load(paymentId, 'store');
  }
};
