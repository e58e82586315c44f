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

type RetrySchedulesOptions<T> = {
  delaysMs: readonly number[];
  nowMs: () => number;
  startTimer?: StartTimer;
  /** What is known of a payment whose schedule begins. */
  unknown: T;
  attempt(paymentId: string): Promise<Attempted>;
  onFailed(paymentId: string, failed: FailedAttempt): void;
};

const HOUR_MS = 3_600_000;
const AT_ONCE_MAX = 8;
/** Above it no schedule begins: the sweep finds the rest once there is room. */
export const RETRY_SCHEDULES_MAX = 100_000;
const PAST_FLIGHT_MS = 100;

type Schedule<T> = {
  attempts: number;
  nextAttemptAtMs: number | undefined;
  cancelTimer?: () => void;
  queued: boolean;
  known: T;
};

export const createRetrySchedules = <T>(options: RetrySchedulesOptions<T>) => {
  const { delaysMs, nowMs, startTimer = startBackgroundTimer, attempt, onFailed } = options;
  const schedules = new Map<string, Schedule<T>>();
  const atOnce = bulkhead(AT_ONCE_MAX, Number.POSITIVE_INFINITY);
  let stopped = false;

  const attemptIn = (paymentId: string, schedule: Schedule<T>, delayMs: number): void => {
    schedule.cancelTimer?.();
    schedule.nextAttemptAtMs = nowMs() + delayMs;
    schedule.cancelTimer = startTimer(() => enqueue(paymentId, schedule), delayMs);
  };

  const attemptLater = (paymentId: string, schedule: Schedule<T>, error?: unknown): void => {
    schedule.attempts += 1;
    const { attempts } = schedule;
    const nextAttemptMs = jittered(delaysMs[attempts - 1] ?? HOUR_MS, NARROW_JITTER);
    attemptIn(paymentId, schedule, nextAttemptMs);
    onFailed(paymentId, { attempts, nextAttemptMs, error });
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

  const enqueue = (paymentId: string, schedule: Schedule<T>): void => {
    if (schedule.queued) return;
    schedule.cancelTimer?.();
    schedule.nextAttemptAtMs = undefined;
    schedule.queued = true;
    void atOnce.execute(() => attemptNow(paymentId));
  };

  const begin = (paymentId: string): Schedule<T> | undefined => {
    const known = schedules.get(paymentId);
    if (known !== undefined || stopped || schedules.size >= RETRY_SCHEDULES_MAX) return known;
    const begun = {
      attempts: 0,
      nextAttemptAtMs: undefined,
      queued: false,
      known: options.unknown,
    };
    schedules.set(paymentId, begun);
    enqueue(paymentId, begun);
    return begun;
  };

  const end = (paymentId: string): void => {
    schedules.get(paymentId)?.cancelTimer?.();
    schedules.delete(paymentId);
  };

  return {
    /** Undefined where it cannot begin. */
    begin,
    /** Also where one runs: another operation of the payment is unresolved. */
    beginAnew: (paymentId: string): void => {
      const schedule = schedules.get(paymentId);
      if (schedule === undefined) begin(paymentId);
      if (schedule === undefined || stopped) return;
      schedule.attempts = 0;
      enqueue(paymentId, schedule);
    },
    end,
    /** Until the stop. */
    goOn: (): boolean => !stopped,
    get: (paymentId: string): Schedule<T> | undefined => schedules.get(paymentId),
    entries: () => schedules.entries(),
    /** What is known stays. */
    stop: (): void => {
      stopped = true;
      for (const { cancelTimer } of schedules.values()) cancelTimer?.();
    },
  };
};
