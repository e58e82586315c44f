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

export type Scheduled<T> = { readonly paymentId: string; known: T };

type RetrySchedulesOptions<T> = {
  delaysMs: readonly number[];
  /** Before each look; the last one repeats. */
  looksMs(merchantId: string): readonly number[];
  nowMs: () => number;
  startTimer?: StartTimer;
  /** What is known of a payment whose schedule begins. */
  unknown: T;
  /** A false `goOn` ends it between two questions. */
  attempt(schedule: Scheduled<T>, goOn: () => boolean): Promise<Attempted<T>>;
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

type Schedule<T> = Scheduled<T> & {
  /** Empty where it is not known: those take turns as one merchant. */
  merchantId: string;
  attempts: number;
  /** Defined while the shopper is waited for. */
  looks: number | undefined;
  nextAttemptAtMs: number | undefined;
  cancelTimer?: () => void;
  queued: boolean;
};

const pastFlight = (leftMs: number): number => leftMs + jittered(PAST_FLIGHT_MS, NARROW_JITTER);

/** How long to wait before the next look whether the shopper was there. */
const nextLookMs = <T>(
  schedule: Schedule<T>,
  { looksMs }: RetrySchedulesOptions<T>,
  leftMs: number,
): number => {
  const { looks = 0, merchantId } = schedule;
  const waitsMs = looksMs(merchantId);
  schedule.looks = looks + 1;
  return pastFlight(Math.min(waitsMs[looks] ?? waitsMs.at(-1) ?? leftMs, leftMs));
};

/** How long to wait after this attempt; `failed` where it gave no outcome. */
const nextAttempt = <T>(
  schedule: Schedule<T>,
  options: RetrySchedulesOptions<T>,
  attempted: Exclude<Attempted<T>, { kind: 'resolved' }> | { error: unknown },
): { waitMs: number; failed?: FailedAttempt } => {
  if (!('error' in attempted)) {
    schedule.known = attempted.known;
    if (attempted.kind === 'waiting')
      return { waitMs: nextLookMs(schedule, options, attempted.leftMs) };
    schedule.looks = undefined;
    if (attempted.kind === 'too early') return { waitMs: pastFlight(attempted.leftMs) };
  }
  schedule.attempts += 1;
  const { attempts } = schedule;
  const waitMs = jittered(options.delaysMs[attempts - 1] ?? HOUR_MS, NARROW_JITTER);
  const error = 'error' in attempted ? attempted.error : undefined;
  return { waitMs, failed: { attempts, nextAttemptMs: waitMs, error } };
};

export const createRetrySchedules = <T>(options: RetrySchedulesOptions<T>) => {
  const { nowMs, startTimer = startBackgroundTimer } = options;
  const all = new Map<string, Schedule<T>>();
  const schedulePlaces = createTurns(RETRY_SCHEDULES_MAX, RETRY_SCHEDULES_MAX / 2);
  const questions = createTurns(QUESTIONS_AT_ONCE);
  const looks = createTurns(LOOKS_AT_ONCE);
  let allAttemptedAtMs = Number.NEGATIVE_INFINITY;
  let stopped = false;

  const attemptIn = (schedule: Schedule<T>, delayMs: number): void => {
    schedule.cancelTimer?.();
    schedule.nextAttemptAtMs = nowMs() + delayMs;
    schedule.cancelTimer = startTimer(() => enqueue(schedule), delayMs);
  };

  const attemptNow = async (schedule: Schedule<T>): Promise<void> => {
    const { paymentId } = schedule;
    if (all.get(paymentId) !== schedule || stopped) return;
    schedule.queued = false;
    const attempting = options.attempt(schedule, () => !stopped);
    const attempted = await attempting.catch((error: unknown) => ({ error }));
    // Begun anew, or ended, meanwhile: this attempt decides nothing.
    if (all.get(paymentId) !== schedule || schedule.queued || stopped) return;
    if ('kind' in attempted && attempted.kind === 'resolved') return end(paymentId);
    const { waitMs, failed } = nextAttempt(schedule, options, attempted);
    attemptIn(schedule, waitMs);
    if (failed !== undefined) options.onFailed(paymentId, failed, schedule.known);
  };

  const enqueue = (schedule: Schedule<T>): void => {
    if (schedule.queued) return;
    schedule.cancelTimer?.();
    schedule.nextAttemptAtMs = undefined;
    schedule.queued = true;
    const places = schedule.looks === undefined ? questions : looks;
    void places.with(schedule.merchantId, undefined, () => attemptNow(schedule));
  };

  /** Also where one runs: another operation is unresolved. `waitsMs`: how long for the shopper. */
  const beginAnew = (paymentId: string, merchantId: string, waitsMs?: number): void => {
    if (stopped || (!all.has(paymentId) && !schedulePlaces.take(merchantId))) return;
    const begun = { looks: undefined, nextAttemptAtMs: undefined, queued: false };
    const { unknown: known } = options;
    const schedule = all.get(paymentId) ?? { paymentId, merchantId, attempts: 0, known, ...begun };
    all.set(paymentId, schedule);
    schedule.attempts = 0;
    schedule.looks = undefined;
    if (waitsMs === undefined) enqueue(schedule);
    else attemptIn(schedule, nextLookMs(schedule, options, waitsMs));
  };

  const end = (paymentId: string): void => {
    const schedule = all.get(paymentId);
    schedule?.cancelTimer?.();
    if (all.delete(paymentId)) schedulePlaces.giveBack(schedule?.merchantId ?? '');
  };

  return {
    all: all as ReadonlyMap<string, Schedule<T>>,
    begin: (paymentId: string, merchantId: string): void => {
      if (!all.has(paymentId)) beginAnew(paymentId, merchantId);
    },
    beginAnew,
    end,
    /** The provider is back. Those of each merchant are asked about in turn. */
    attemptAll: (): void => {
      if (stopped || Math.abs(nowMs() - allAttemptedAtMs) < ALL_EVERY_MS) return;
      allAttemptedAtMs = nowMs();
      for (const schedule of all.values()) if (schedule.looks === undefined) enqueue(schedule);
    },
    /** What is known stays. */
    stop: (): void => {
      stopped = true;
      for (const { cancelTimer } of all.values()) cancelTimer?.();
    },
  };
};
