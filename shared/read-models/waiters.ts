/** The waits of this process for a payment's document to reach a revision. */
import { startTimer as startNodeTimer } from '../runtime/back-off.ts';

type Waiter = { paymentId: string; revision: number; finish(reached: boolean): void };

/** For a driver whose writer lives in the process of its readers (gaps §9). */
export const createRevisionWaiters = (startTimer = startNodeTimer) => {
  /** One for each request under way at most, so looking at all costs less than an index of them. */
  const waiting = new Set<Waiter>();
  let closed = false;

  const giveUp = (): void => {
    for (const { finish } of waiting) finish(false);
  };

  return {
    /** Resolves true when `reached` says so, false after `timeoutMs` or at `close`. */
    wait: (paymentId: string, revision: number, timeoutMs: number): Promise<boolean> => {
      if (closed || timeoutMs <= 0) return Promise.resolve(false);
      return new Promise((resolve) => {
        const finish = (reached: boolean): void => {
          cancelTimer();
          waiting.delete(waiter);
          resolve(reached);
        };
        const cancelTimer = startTimer(() => finish(false), timeoutMs);
        const waiter: Waiter = { paymentId, revision, finish };
        waiting.add(waiter);
      });
    },
    /** Ends with true each wait for this revision of the payment or a lower one. */
    reached: (paymentId: string, revision: number): void => {
      for (const waiter of waiting)
        if (waiter.paymentId === paymentId && waiter.revision <= revision) waiter.finish(true);
    },
    waitingFor: (): string[] => [...new Set([...waiting].map(({ paymentId }) => paymentId))],
    giveUp,
    /** Ends each wait with false, those under way and all later ones. */
    close: (): void => {
      closed = true;
      giveUp();
    },
  };
};
export type RevisionWaiters = ReturnType<typeof createRevisionWaiters>;
