/** Waits for calls to the provider that may be running in another process. */
import type { CommandDeps } from './deps.ts';
import { pauses } from './in-flight.ts';
import type { LoadedPayment } from './loaded-payment.ts';
import type { Budget } from './request-budget.ts';

/**
 * The payment, if it exists, once no other process's call can be running on it: an operation that
 * has no outcome then is unresolved. Call it in the payment's queue, where no call of this process runs. Throws
 * BudgetSpent.
 */
export const waitForInFlight = async (
  { paymentLog, inFlight, sharedStore }: CommandDeps,
  paymentId: string,
  from: 'store' | 'cache',
  budget: Budget,
): Promise<LoadedPayment | undefined> => {
  const pause = pauses(budget);
  let payment = await paymentLog.load(paymentId, sharedStore ? 'store' : from);
  for (;;) {
    const leftMs = inFlight.leftMs(payment);
    if (leftMs === 0) return payment;
    await pause(leftMs);
    payment = await paymentLog.load(paymentId, 'store');
  }
};
