/** The waits of this process for a payment's document to reach a revision. */
import { startTimer as startNodeTimer } from '../runtime/back-off.ts';

type Waiter = { revision: number; finish(reached: boolean): void };

/** For a driver whose writer lives in the process of its readers (gaps §9). */
export const createRevisionWaiters = (startTimer = startNodeTimer) => {
  const waiting = new Map<string, Set<Waiter>>();
  let closed = false;

  const enter = (paymentId: string, waiter: Waiter): void => {
    const waiters = waiting.get(paymentId);
    if (waiters === undefined) waiting.set(paymentId, new Set([waiter]));
    else waiters.add(waiter);
  };
  const leave = (paymentId: string, waiter: Waiter): void => {
    const waiters = waiting.get(paymentId);
    waiters?.delete(waiter);
    if (waiters?.size === 0) waiting.delete(paymentId);
  };
  const giveUp = (): void => {
    for (const waiters of [...waiting.values()])
      for (const waiter of [...waiters]) waiter.finish(false);
  };

  return {
    /** Resolves true when `reached` says so, false after `timeoutMs` or at `close`. */
    wait: (paymentId: string, revision: number, timeoutMs: number): Promise<boolean> => {
      if (closed || timeoutMs <= 0) return Promise.resolve(false);
      return new Promise((resolve) => {
        const finish = (reached: boolean): void => {
          cancelTimer();
          leave(paymentId, waiter);
          resolve(reached);
        };
        const cancelTimer = startTimer(() => finish(false), timeoutMs);
        const waiter: Waiter = { revision, finish };
        enter(paymentId, waiter);
      });
    },
    /** Ends with true each wait for this revision of the payment or a lower one. */
    reached: (paymentId: string, revision: number): void => {
      const waiters = waiting.get(paymentId);
      if (waiters === undefined) return;
      for (const waiter of [...waiters]) if (waiter.revision <= revision) waiter.finish(true);
    },
    waitingFor: (): string[] => [...waiting.keys()],
    giveUp,
    /** Ends each wait with false, those under way and all later ones. */
    close: (): void => {
      closed = true;
      giveUp();
    },
  };
};
export type RevisionWaiters = ReturnType<typeof createRevisionWaiters>;
