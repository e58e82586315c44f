/**
 * Waits for revisions that another process writes: one query for all waits, repeated after a growing
 * pause (gaps §9). A new wait shortens the pause, unless the last wait to end was in vain: beside a
 * projector that is down the store would be searched each 5 ms.
 */
import { type StartTimer, startTimer as startNodeTimer } from '../../runtime/back-off.ts';
import { createRevisionWaiters, type RevisionWaiters } from '../waiters.ts';

const PAUSE_MS_MIN = 5;
const PAUSE_MS_MAX = 40;

type RevisionPollerOptions = {
  /** Of those payments that are stored. */
  revisionsOf(paymentIds: string[]): Promise<Map<string, number>>;
  startTimer?: StartTimer;
};

export const createRevisionPoller = ({
  revisionsOf,
  startTimer = startNodeTimer,
}: RevisionPollerOptions): RevisionWaiters => {
  const waiters = createRevisionWaiters(startTimer);
  let pauseMs = PAUSE_MS_MIN;
  let cancelTimer: (() => void) | undefined;
  let polling = false;
  let wasInVain = false;

  const poll = async (): Promise<void> => {
    cancelTimer = undefined;
    polling = true;
    // An error ends no wait: each has its own timeout.
    const stored = await revisionsOf(waiters.waitingFor()).catch(() => new Map<string, number>());
    polling = false;
    for (const [paymentId, revision] of stored) waiters.reached(paymentId, revision);
    pauseMs = Math.min(PAUSE_MS_MAX, pauseMs * 2);
    plan();
  };
  const plan = (): void => {
    if (cancelTimer !== undefined || polling || waiters.waitingFor().length === 0) return;
    cancelTimer = startTimer(poll, pauseMs);
  };
  const stop = (): void => {
    cancelTimer?.();
    cancelTimer = undefined;
  };

  return {
    ...waiters,
    wait: async (paymentId, revision, timeoutMs) => {
      const ended = waiters.wait(paymentId, revision, timeoutMs);
      if (!wasInVain) pauseMs = PAUSE_MS_MIN;
      plan();
      const reached = await ended;
      wasInVain = !reached;
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
