/**
 * Waits for revisions that another process writes: one question for all who wait, asked again
 * after a growing pause, so that many waiters cost the store no more than one (gaps §9).
 */
import { type StartTimer, startTimer as startNodeTimer } from '../../runtime/timer.ts';
import { createRevisionWaiters, type RevisionWaiters } from '../waiters.ts';

const PAUSE_MS_MIN = 5;
const PAUSE_MS_MAX = 40;

export type RevisionPollerOptions = {
  /** The revisions that are stored now, of those payments that are. */
  revisionsOf(paymentIds: string[]): Promise<Map<string, number>>;
  startTimer?: StartTimer;
};

export type RevisionPoller = RevisionWaiters & {
  /** Lets everybody who waits now go with false: there is nobody to ask. */
  giveUp(): void;
};

export const createRevisionPoller = ({
  revisionsOf,
  startTimer = startNodeTimer,
}: RevisionPollerOptions): RevisionPoller => {
  const waiters = createRevisionWaiters(startTimer);
  let pauseMs = PAUSE_MS_MIN;
  let cancelTimer: (() => void) | undefined;
  let asking = false;

  const ask = async (): Promise<void> => {
    cancelTimer = undefined;
    asking = true;
    // An error is the store's to notice; who waits has a time of his own.
    const stored = await revisionsOf(waiters.waitingFor()).catch(() => new Map<string, number>());
    asking = false;
    for (const [paymentId, revision] of stored) waiters.reached(paymentId, revision);
    pauseMs = Math.min(PAUSE_MS_MAX, pauseMs * 2);
    plan();
  };
  const plan = (): void => {
    if (cancelTimer !== undefined || asking || waiters.waitingFor().length === 0) return;
    cancelTimer = startTimer(ask, pauseMs);
  };
  const stop = (): void => {
    cancelTimer?.();
    cancelTimer = undefined;
  };

  return {
    ...waiters,
    wait: (paymentId, revision, timeoutMs) => {
      const reached = waiters.wait(paymentId, revision, timeoutMs);
      pauseMs = PAUSE_MS_MIN;
      plan();
      return reached;
    },
    giveUp: () => {
      stop();
      waiters.giveUp();
    },
    close: () => {
      stop();
      waiters.close();
    },
  };
};
