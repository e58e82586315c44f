/**
 * When an unresolved payment is asked about again (gaps §7): at once, after each wait of the
 * retry schedule, then hourly; so many at a time, and each wait a little shorter or longer than its step,
 * so that what broke at once does not ask at once.
 */
import { type StartTimer, startBackgroundTimer } from '../../shared/runtime/timer.ts';

/** `open`: still unresolved. `none`: nothing is open any more. `in flight`: too early to ask. */
export type Attempted = { kind: 'open' } | { kind: 'none' } | { kind: 'in flight'; leftMs: number };

export type RetrySchedule = {
  /** How often it was asked for in vain. */
  attempts: number;
  /** Wall clock of the next try; undefined while one waits for its turn or runs. */
  nextTryAtMs: number | undefined;
};

export type RetrySchedules = {
  /** Begins a retry schedule with a try at once; one that runs already is left alone. */
  begin(paymentId: string): void;
  /** Begins it anew, also where one runs: something else of the payment is unresolved. */
  beginAnew(paymentId: string): void;
  /** Ends it. */
  end(paymentId: string): void;
  get(paymentId: string): RetrySchedule | undefined;
  /** Ends all, and lets none begin. */
  stop(): void;
};

export type RetrySchedulesOptions = {
  /** Waits between tries, in milliseconds; after the last one, hourly (`RECOVERY_DELAYS_MS`). */
  delaysMs: readonly number[];
  nowMs: () => number;
  startTimer?: StartTimer;
  /** One try. What it throws counts as a try in vain. */
  attempt(paymentId: string): Promise<Attempted>;
  /** After a try in vain. */
  onVain(
    paymentId: string,
    retrySchedule: { attempts: number; nextAttemptMs: number; error?: unknown },
  ): void;
};

const HOUR_MS = 3_600_000;
/** How many payments are asked about at once. */
const AT_ONCE_MAX = 8;
/** Above it none begins: the sweep finds what is left out, once there is room. */
export const RETRY_SCHEDULES_MAX = 100_000;

type Running = RetrySchedule & { cancelTimer?: () => void; queued: boolean };

const jittered = (delayMs: number): number => delayMs * (0.9 + Math.random() * 0.2);

export const createRetrySchedules = (options: RetrySchedulesOptions): RetrySchedules => {
  const { delaysMs, nowMs, startTimer = startBackgroundTimer, attempt, onVain } = options;
  const retrySchedules = new Map<string, Running>();
  const waiting: string[] = [];
  let running = 0;
  let stopped = false;

  const tryIn = (paymentId: string, retrySchedule: Running, delayMs: number): void => {
    retrySchedule.cancelTimer?.();
    retrySchedule.nextTryAtMs = nowMs() + delayMs;
    retrySchedule.cancelTimer = startTimer(() => enqueue(paymentId, retrySchedule), delayMs);
  };

  const climb = (paymentId: string, retrySchedule: Running, error?: unknown): void => {
    // seeded bug: attempts-without-end
    retrySchedule.attempts += 1;
    const nextAttemptMs = jittered(delaysMs[retrySchedule.attempts - 1] ?? HOUR_MS);
    tryIn(paymentId, retrySchedule, nextAttemptMs);
    onVain(paymentId, {
      attempts: retrySchedule.attempts,
      nextAttemptMs,
      ...(error !== undefined && { error }),
    });
  };

  const tryOnce = async (paymentId: string): Promise<void> => {
    const retrySchedule = retrySchedules.get(paymentId);
    if (retrySchedule === undefined) return;
    retrySchedule.queued = false;
    const tried = await attempt(paymentId).catch((error: unknown) => ({ error }));
    // Begun anew, or ended, meanwhile: then this try has nothing more to say.
    if (retrySchedules.get(paymentId) !== retrySchedule || retrySchedule.queued || stopped) return;
    if ('error' in tried) climb(paymentId, retrySchedule, tried.error);
    else if (tried.kind === 'none') end(paymentId);
    else if (tried.kind === 'open') climb(paymentId, retrySchedule);
    else tryIn(paymentId, retrySchedule, tried.leftMs + jittered(PAST_FLIGHT_MS));
  };

  const drain = (): void => {
    while (running < AT_ONCE_MAX) {
      const paymentId = waiting.shift();
      if (paymentId === undefined) return;
      running += 1;
      void tryOnce(paymentId).finally(() => {
        running -= 1;
        drain();
      });
    }
  };

  const enqueue = (paymentId: string, retrySchedule: Running): void => {
    if (retrySchedule.queued) return;
    retrySchedule.cancelTimer?.();
    retrySchedule.nextTryAtMs = undefined;
    retrySchedule.queued = true;
    waiting.push(paymentId);
    drain();
  };

  const begin: RetrySchedules['begin'] = (paymentId) => {
    if (stopped || retrySchedules.has(paymentId) || retrySchedules.size >= RETRY_SCHEDULES_MAX)
      return;
    const retrySchedule: Running = { attempts: 0, nextTryAtMs: undefined, queued: false };
    retrySchedules.set(paymentId, retrySchedule);
    enqueue(paymentId, retrySchedule);
  };

  const end: RetrySchedules['end'] = (paymentId) => {
    retrySchedules.get(paymentId)?.cancelTimer?.();
    retrySchedules.delete(paymentId);
  };

  return {
    begin,
    beginAnew: (paymentId) => {
      const retrySchedule = retrySchedules.get(paymentId);
      if (retrySchedule === undefined) return begin(paymentId);
      retrySchedule.attempts = 0;
      enqueue(paymentId, retrySchedule);
    },
    end,
    get: (paymentId) => retrySchedules.get(paymentId),
    stop: () => {
      stopped = true;
      for (const paymentId of [...retrySchedules.keys()]) end(paymentId);
    },
  };
};

/** How long after another's call must have ended it is looked at, about. */
const PAST_FLIGHT_MS = 100;
