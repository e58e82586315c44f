/**
 * When the provider is asked about a payment: at once, after each wait, then hourly (gaps §7); while its
 * shopper is waited for, in places of their own (gaps §21). Jitter parts payments that began together.
 */
import {
  jittered,
  NARROW_JITTER,
  type StartTimer,
  startBackgroundTimer,
} from '../../shared/runtime/back-off.ts';
import { createTurns } from '../../shared/runtime/fair-turns.ts';

/** `too early`: a call may still run elsewhere. `waiting`: for the shopper; only a look asks then. */
export type Attempted =
  | { kind: 'unresolved' }
  | { kind: 'resolved' }
  | { kind: 'too early' | 'waiting'; leftMs: number };

export type FailedAttempt = { attempts: number; nextAttemptMs: number; error?: unknown };

type RetrySchedulesOptions<T> = {
  delaysMs: readonly number[];
  /** Between two looks; the last one repeats. */
  looksMs(merchantId: string): readonly number[];
  nowMs: () => number;
  startTimer?: StartTimer;
  /** What is known of a payment whose schedule begins. */
  unknown: T;
  attempt(paymentId: string, isLook: boolean): Promise<Attempted>;
  onFailed(paymentId: string, failed: FailedAttempt): void;
};

const HOUR_MS = 3_600_000;
const QUESTIONS_AT_ONCE = 8;
const LOOKS_AT_ONCE = 2;
/** Above it no schedule begins: the sweep finds the rest once there is room. */
export const RETRY_SCHEDULES_MAX = 100_000;
const PAST_FLIGHT_MS = 100;
/** The provider may come and go: all that is unresolved is not asked about each time. */
const ALL_EVERY_MS = 60_000;

type Schedule<T> = {
  /** Empty where it is not known: those take turns as one merchant. */
  merchantId: string;
  attempts: number;
  /** Present while the shopper is waited for. */
  looks?: number;
  nextAttemptAtMs: number | undefined;
  cancelTimer?: () => void;
  queued: boolean;
  known: T;
};

export const createRetrySchedules = <T>(options: RetrySchedulesOptions<T>) => {
  const {
    delaysMs,
    looksMs,
    nowMs,
    startTimer = startBackgroundTimer,
    attempt,
    onFailed,
  } = options;
  const schedules = new Map<string, Schedule<T>>();
  const room = createTurns(RETRY_SCHEDULES_MAX, RETRY_SCHEDULES_MAX / 2);
  const questions = createTurns(QUESTIONS_AT_ONCE);
  const looks = createTurns(LOOKS_AT_ONCE);
  let allAttemptedAtMs = Number.NEGATIVE_INFINITY;
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

  const lookLater = (paymentId: string, schedule: Schedule<T>, leftMs: number): void => {
    const { looks: before = 0, merchantId } = schedule;
    schedule.looks = before + 1;
    const waitsMs = looksMs(merchantId);
    const waitMs = Math.min(waitsMs[before] ?? waitsMs.at(-1) ?? leftMs, leftMs);
    attemptIn(paymentId, schedule, waitMs + jittered(PAST_FLIGHT_MS, NARROW_JITTER));
  };

  const attemptNow = async (paymentId: string, schedule: Schedule<T>): Promise<void> => {
    if (schedules.get(paymentId) !== schedule || stopped) return;
    const isLook = schedule.looks !== undefined;
    schedule.queued = false;
    const attempted = await attempt(paymentId, isLook).catch((error: unknown) => ({ error }));
    // Begun anew, or ended, meanwhile: this attempt decides nothing.
    if (schedules.get(paymentId) !== schedule || schedule.queued || stopped) return;
    if ('error' in attempted) return attemptLater(paymentId, schedule, attempted.error);
    if (attempted.kind === 'resolved') return end(paymentId);
    if (attempted.kind === 'waiting') {
      if (isLook) return lookLater(paymentId, schedule, attempted.leftMs);
      schedule.looks = 0;
      return enqueue(paymentId, schedule);
    }
    delete schedule.looks;
    if (attempted.kind === 'unresolved') attemptLater(paymentId, schedule);
    else attemptIn(paymentId, schedule, attempted.leftMs + jittered(PAST_FLIGHT_MS, NARROW_JITTER));
  };

  const enqueue = (paymentId: string, schedule: Schedule<T>): void => {
    if (schedule.queued) return;
    schedule.cancelTimer?.();
    schedule.nextAttemptAtMs = undefined;
    schedule.queued = true;
    const places = schedule.looks === undefined ? questions : looks;
    void places.with(schedule.merchantId, undefined, () => attemptNow(paymentId, schedule));
  };

  const known = (paymentId: string, merchantId: string): Schedule<T> | undefined => {
    const before = schedules.get(paymentId);
    if (before !== undefined || stopped || !room.take(merchantId)) return before;
    const begun: Schedule<T> = {
      ...{ merchantId, attempts: 0, nextAttemptAtMs: undefined, queued: false },
      known: options.unknown,
    };
    schedules.set(paymentId, begun);
    return begun;
  };

  const end = (paymentId: string): void => {
    const schedule = schedules.get(paymentId);
    if (schedule === undefined) return;
    schedule.cancelTimer?.();
    schedules.delete(paymentId);
    room.giveBack(schedule.merchantId);
  };

  return {
    /** Undefined where it cannot begin. */
    begin: (paymentId: string, merchantId: string): Schedule<T> | undefined => {
      const isNew = !schedules.has(paymentId);
      const schedule = known(paymentId, merchantId);
      if (isNew && schedule !== undefined) enqueue(paymentId, schedule);
      return schedule;
    },
    /** Also where one runs: another operation of the payment is unresolved. */
    beginAnew: (paymentId: string, merchantId: string): void => {
      const schedule = known(paymentId, merchantId);
      if (schedule === undefined || stopped) return;
      schedule.attempts = 0;
      enqueue(paymentId, schedule);
    },
    /** The provider has just asked for the shopper. */
    beginToLook: (paymentId: string, merchantId: string, leftMs: number): void => {
      const schedule = known(paymentId, merchantId);
      if (schedule !== undefined && !stopped) lookLater(paymentId, schedule, leftMs);
    },
    end,
    /** The provider is back. Those of each merchant are asked about in turn. */
    attemptAll: (): void => {
      if (stopped || Math.abs(nowMs() - allAttemptedAtMs) < ALL_EVERY_MS) return;
      allAttemptedAtMs = nowMs();
      for (const [paymentId, schedule] of schedules)
        if (schedule.looks === undefined) enqueue(paymentId, schedule);
    },
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
