/**
 * When the provider is asked again about an unresolved payment (gaps §7): at once, then after each
 * wait of the retry schedule, then hourly. At most eight payments are asked about at a time, and
 * each wait has a jitter of 10%, so that payments that became unresolved together are not asked
 * about together.
 */

import { jittered, NARROW_JITTER } from '../../shared/runtime/back-off.ts';
import { type StartTimer, startBackgroundTimer } from '../../shared/runtime/timer.ts';

/** `in flight`: a call may still be running elsewhere, so that it is too early to ask. */
export type Attempted =
  | { kind: 'unresolved' }
  | { kind: 'resolved' }
  | { kind: 'in flight'; leftMs: number };

/** `attempts` have failed so far; the next one comes after `nextAttemptMs`. */
export type FailedAttempt = { attempts: number; nextAttemptMs: number; error?: unknown };

export type RetrySchedule = {
  /** How many attempts have failed. */
  attempts: number;
  /** Wall clock of the next attempt; undefined while one waits for its turn or runs. */
  nextAttemptAtMs: number | undefined;
};

export type RetrySchedules = {
  /** Begins a payment's schedule with an attempt at once; a schedule that runs is left alone. */
  begin(paymentId: string): void;
  /** Begins it anew, also where one runs: another operation of the payment is unresolved. */
  beginAnew(paymentId: string): void;
  end(paymentId: string): void;
  get(paymentId: string): RetrySchedule | undefined;
  /** Ends all schedules, and lets none begin. */
  stop(): void;
};

export type RetrySchedulesOptions = {
  /** Waits between attempts, in milliseconds; after the last one, hourly (`RECOVERY_DELAYS_MS`). */
  delaysMs: readonly number[];
  nowMs: () => number;
  startTimer?: StartTimer;
  /** An attempt that throws has failed. */
  attempt(paymentId: string): Promise<Attempted>;
  /** Called after an attempt that threw, or that left the payment unresolved. */
  onFailed(paymentId: string, failed: FailedAttempt): void;
};

const HOUR_MS = 3_600_000;
/** How many payments are asked about at once. */
const AT_ONCE_MAX = 8;
/** Above it no schedule begins: the sweep finds what is left out, once there is room. */
export const RETRY_SCHEDULES_MAX = 100_000;
/** How long after the latest end of another process's call the next attempt is made, about. */
const PAST_FLIGHT_MS = 100;

type Running = RetrySchedule & { cancelTimer?: () => void; queued: boolean };

export const createRetrySchedules = (options: RetrySchedulesOptions): RetrySchedules => {
  const { delaysMs, nowMs, startTimer = startBackgroundTimer, attempt, onFailed } = options;
  const schedules = new Map<string, Running>();
  const waiting: string[] = [];
  let running = 0;
  let stopped = false;

  const attemptIn = (paymentId: string, schedule: Running, delayMs: number): void => {
    schedule.cancelTimer?.();
    schedule.nextAttemptAtMs = nowMs() + delayMs;
    schedule.cancelTimer = startTimer(() => enqueue(paymentId, schedule), delayMs);
  };

  const attemptLater = (paymentId: string, schedule: Running, error?: unknown): void => {
    schedule.attempts += 1;
    const { attempts } = schedule;
    const nextAttemptMs = jittered(delaysMs[attempts - 1] ?? HOUR_MS, NARROW_JITTER);
    attemptIn(paymentId, schedule, nextAttemptMs);
    onFailed(paymentId, { attempts, nextAttemptMs, ...(error !== undefined && { error }) });
  };

  const attemptNow = async (paymentId: string): Promise<void> => {
    const schedule = schedules.get(paymentId);
    if (schedule === undefined) return;
    schedule.queued = false;
    const attempted = await attempt(paymentId).catch((error: unknown) => ({ error }));
    // Begun anew, or ended, meanwhile: then this attempt decides nothing.
    if (schedules.get(paymentId) !== schedule || schedule.queued || stopped) return;
    if ('error' in attempted) attemptLater(paymentId, schedule, attempted.error);
    else if (attempted.kind === 'resolved') end(paymentId);
    else if (attempted.kind === 'unresolved') attemptLater(paymentId, schedule);
    else attemptIn(paymentId, schedule, attempted.leftMs + jittered(PAST_FLIGHT_MS, NARROW_JITTER));
  };

  const drain = (): void => {
    while (running < AT_ONCE_MAX) {
      const paymentId = waiting.shift();
      if (paymentId === undefined) return;
      running += 1;
      void attemptNow(paymentId).finally(() => {
        running -= 1;
        drain();
      });
    }
  };

  const enqueue = (paymentId: string, schedule: Running): void => {
    if (schedule.queued) return;
    schedule.cancelTimer?.();
    schedule.nextAttemptAtMs = undefined;
    schedule.queued = true;
    waiting.push(paymentId);
    drain();
  };

  const begin: RetrySchedules['begin'] = (paymentId) => {
    if (stopped || schedules.has(paymentId) || schedules.size >= RETRY_SCHEDULES_MAX) return;
    const schedule: Running = { attempts: 0, nextAttemptAtMs: undefined, queued: false };
    schedules.set(paymentId, schedule);
    enqueue(paymentId, schedule);
  };

  const end: RetrySchedules['end'] = (paymentId) => {
    schedules.get(paymentId)?.cancelTimer?.();
    schedules.delete(paymentId);
  };

  return {
    begin,
    beginAnew: (paymentId) => {
      const schedule = schedules.get(paymentId);
      if (schedule === undefined) return begin(paymentId);
      schedule.attempts = 0;
      enqueue(paymentId, schedule);
    },
    end,
    get: (paymentId) => schedules.get(paymentId),
    stop: () => {
      stopped = true;
      for (const paymentId of [...schedules.keys()]) end(paymentId);
    },
  };
};
