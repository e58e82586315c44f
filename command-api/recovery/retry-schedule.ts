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

/** `too early`: a call may still run elsewhere. `waiting`: for the shopper. */
export type Attempted<T> =
  | { kind: 'resolved' }
  | { kind: 'unresolved'; known: T }
  | { kind: 'too early' | 'waiting'; leftMs: number; known: T };

export type FailedAttempt = { attempts: number; nextAttemptMs: number; error?: unknown };

type RetrySchedulesOptions<T> = {
  delaysMs: readonly number[];
  /** Before each look; the last one repeats. */
  looksMs(merchantId: string): readonly number[];
  nowMs: () => number;
  startTimer?: StartTimer;
  /** What is known of a payment whose schedule begins. */
  unknown: T;
  /** A false `goOn` ends it between two questions. */
  attempt(paymentId: string, known: T, goOn: () => boolean): Promise<Attempted<T>>;
  onFailed(paymentId: string, failed: FailedAttempt, known: T): void;
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
  /** Defined while the shopper is waited for. */
  looks: number | undefined;
  nextAttemptAtMs: number | undefined;
  cancelTimer?: () => void;
  queued: boolean;
  known: T;
};

export const createRetrySchedules = <T>(options: RetrySchedulesOptions<T>) => {
  const { nowMs, startTimer = startBackgroundTimer } = options;
  const schedules = new Map<string, Schedule<T>>();
  const schedulePlaces = createTurns(RETRY_SCHEDULES_MAX, RETRY_SCHEDULES_MAX / 2);
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
    const nextAttemptMs = jittered(options.delaysMs[attempts - 1] ?? HOUR_MS, NARROW_JITTER);
    attemptIn(paymentId, schedule, nextAttemptMs);
    options.onFailed(paymentId, { attempts, nextAttemptMs, error }, schedule.known);
  };

  const lookLater = (paymentId: string, schedule: Schedule<T>, leftMs: number): void => {
    const { looks = 0, merchantId } = schedule;
    const waitsMs = options.looksMs(merchantId);
    const waitMs = Math.min(waitsMs[looks] ?? waitsMs.at(-1) ?? leftMs, leftMs);
    schedule.looks = looks + 1;
    attemptIn(paymentId, schedule, waitMs + jittered(PAST_FLIGHT_MS, NARROW_JITTER));
  };

  const attemptNow = async (paymentId: string, schedule: Schedule<T>): Promise<void> => {
    if (schedules.get(paymentId) !== schedule || stopped) return;
    schedule.queued = false;
    const attempting = options.attempt(paymentId, schedule.known, () => !stopped);
    const attempted = await attempting.catch((error: unknown) => ({ error }));
    // Begun anew, or ended, meanwhile: this attempt decides nothing.
    if (schedules.get(paymentId) !== schedule || schedule.queued || stopped) return;
    if ('error' in attempted) return attemptLater(paymentId, schedule, attempted.error);
    if (attempted.kind === 'resolved') return end(paymentId);
    schedule.known = attempted.known;
    if (attempted.kind === 'waiting') return lookLater(paymentId, schedule, attempted.leftMs);
    schedule.looks = undefined;
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

  const open = (paymentId: string, merchantId: string): Schedule<T> | undefined => {
    if (stopped || !schedulePlaces.take(merchantId)) return undefined;
    const now = { looks: undefined, nextAttemptAtMs: undefined, queued: false };
    const begun = { merchantId, attempts: 0, ...now, known: options.unknown };
    schedules.set(paymentId, begun);
    return begun;
  };

  const beginAnew = (paymentId: string, merchantId: string, waitsMs?: number): void => {
    const schedule = schedules.get(paymentId) ?? open(paymentId, merchantId);
    if (schedule === undefined || stopped) return;
    schedule.attempts = 0;
    schedule.looks = undefined;
    if (waitsMs === undefined) enqueue(paymentId, schedule);
    else lookLater(paymentId, schedule, waitsMs);
  };

  const end = (paymentId: string): void => {
    const schedule = schedules.get(paymentId);
    if (schedule === undefined) return;
    schedule.cancelTimer?.();
    schedules.delete(paymentId);
    schedulePlaces.giveBack(schedule.merchantId);
  };

  return {
    /** Undefined where it cannot begin. */
    begin: (paymentId: string, merchantId: string): Schedule<T> | undefined => {
      if (!schedules.has(paymentId)) beginAnew(paymentId, merchantId);
      return schedules.get(paymentId);
    },
    /** Also where one runs: another operation is unresolved. `waitsMs`: how long for the shopper. */
    beginAnew,
    end,
    /** The provider is back. Those of each merchant are asked about in turn. */
    attemptAll: (): void => {
      if (stopped || Math.abs(nowMs() - allAttemptedAtMs) < ALL_EVERY_MS) return;
      allAttemptedAtMs = nowMs();
      for (const [paymentId, schedule] of schedules)
        if (schedule.looks === undefined) enqueue(paymentId, schedule);
    },
    get: (paymentId: string): Schedule<T> | undefined => schedules.get(paymentId),
    entries: () => schedules.entries(),
    /** What is known stays. */
    stop: (): void => {
      stopped = true;
      for (const { cancelTimer } of schedules.values()) cancelTimer?.();
    },
  };
};
