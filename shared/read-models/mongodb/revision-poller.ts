/**
 * Waits for revisions that another process writes: one query for all waits, repeated after a growing
 * pause (gaps §9). A new wait shortens the pause, unless the last wait to end was in vain: beside a
 * projector that is down the store would be searched each 5 ms. After some waits in vain one at a time
 * goes on, for which nothing waits, until a wait finds that the projector moves again.
 */
import { type StartTimer, startTimer as startNodeTimer } from '../../runtime/back-off.ts';
import { createRevisionWaiters, type RevisionWaiters } from '../waiters.ts';

const PAUSE_MS_MIN = 5;
const PAUSE_MS_MAX = 40;
const IN_VAIN_MAX = 3;

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
  let inVain = 0;
  let probing = false;

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
      const standsStill = inVain >= IN_VAIN_MAX;
      if (standsStill && probing) return false;
      const ended = waiters.wait(paymentId, revision, timeoutMs);
      if (inVain === 0) pauseMs = PAUSE_MS_MIN;
      plan();
      probing = standsStill;
      const noted = ended.then((reached) => {
        inVain = reached ? 0 : inVain + 1;
        probing = false;
        return reached;
      });
      return standsStill ? false : noted;
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
