/** At once, after each wait, then hourly (gaps §7). Jitter parts payments that began together. */
import { bulkhead } from 'cockatiel';
import {
  jittered,
  NARROW_JITTER,
  type StartTimer,
  startBackgroundTimer,
} from '../../shared/runtime/back-off.ts';

/** `too early`: a call may still run elsewhere, or the shopper is waited for. */
export type Attempted =
  | { kind: 'unresolved' }
  | { kind: 'resolved' }
  | { kind: 'too early'; leftMs: number };

export type FailedAttempt = { attempts: number; nextAttemptMs: number; error?: unknown };

type RetrySchedulesOptions = {
  delaysMs: readonly number[];
  nowMs: () => number;
  startTimer?: StartTimer;
  attempt(paymentId: string): Promise<Attempted>;
  onFailed(paymentId: string, failed: FailedAttempt): void;
};

const HOUR_MS = 3_600_000;
const AT_ONCE_MAX = 8;
/** Above it no schedule begins: the sweep finds the rest once there is room. */
export const RETRY_SCHEDULES_MAX = 100_000;
const PAST_FLIGHT_MS = 100;

type Schedule = {
  attempts: number;
  nextAttemptAtMs: number | undefined;
  cancelTimer?: () => void;
  queued: boolean;
};

export const createRetrySchedules = (options: RetrySchedulesOptions) => {
  const { delaysMs, nowMs, startTimer = startBackgroundTimer, attempt, onFailed } = options;
  const schedules = new Map<string, Schedule>();
  const atOnce = bulkhead(AT_ONCE_MAX, Number.POSITIVE_INFINITY);
  let stopped = false;

  const attemptIn = (paymentId: string, schedule: Schedule, delayMs: number): void => {
    schedule.cancelTimer?.();
    schedule.nextAttemptAtMs = nowMs() + delayMs;
    schedule.cancelTimer = startTimer(() => enqueue(paymentId, schedule), delayMs);
  };

  const attemptLater = (paymentId: string, schedule: Schedule, error?: unknown): void => {
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
    // Begun anew, or ended, meanwhile: this attempt decides nothing.
    if (schedules.get(paymentId) !== schedule || schedule.queued || stopped) return;
    if ('error' in attempted) attemptLater(paymentId, schedule, attempted.error);
    else if (attempted.kind === 'resolved') end(paymentId);
    else if (attempted.kind === 'unresolved') attemptLater(paymentId, schedule);
    else attemptIn(paymentId, schedule, attempted.leftMs + jittered(PAST_FLIGHT_MS, NARROW_JITTER));
  };

  const enqueue = (paymentId: string, schedule: Schedule): void => {
    if (schedule.queued) return;
    schedule.cancelTimer?.();
    schedule.nextAttemptAtMs = undefined;
    schedule.queued = true;
    void atOnce.execute(() => attemptNow(paymentId));
  };

  const begin = (paymentId: string): void => {
    if (stopped || schedules.has(paymentId) || schedules.size >= RETRY_SCHEDULES_MAX) return;
    const schedule: Schedule = { attempts: 0, nextAttemptAtMs: undefined, queued: false };
    schedules.set(paymentId, schedule);
    enqueue(paymentId, schedule);
  };

  const end = (paymentId: string): void => {
    schedules.get(paymentId)?.cancelTimer?.();
    schedules.delete(paymentId);
  };

  return {
    begin,
    /** Also where one runs: another operation of the payment is unresolved. */
    beginAnew: (paymentId: string) => {
      const schedule = schedules.get(paymentId);
      if (schedule === undefined) return begin(paymentId);
      schedule.attempts = 0;
      enqueue(paymentId, schedule);
    },
    end,
    /** Until the stop. */
    goOn: (): boolean => !stopped,
    get: (paymentId: string): Schedule | undefined => schedules.get(paymentId),
    stop: (): void => {
      stopped = true;
      for (const paymentId of [...schedules.keys()]) end(paymentId);
    },
  };
};
