/** When a message is tried again, and how often a failing endpoint is asked. In milliseconds. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The wait after each failed attempt: 14 attempts in about 70 hours. */
const ATTEMPT_DELAYS_MS: readonly number[] = [
  5 * SECOND,
  30 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  1 * HOUR,
  2 * HOUR,
  4 * HOUR,
  6 * HOUR,
  8 * HOUR,
  12 * HOUR,
  12 * HOUR,
  12 * HOUR,
  12 * HOUR,
];
export const ATTEMPTS_OF_ONE_MAX: number = ATTEMPT_DELAYS_MS.length + 1;

/** Between two requests to a failing endpoint; the last one for ever. */
const PROBE_DELAYS_MS = [5 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE];

/** Without a success for so long, an endpoint is disabled. */
export const DISABLED_AFTER_MS: number = 72 * HOUR;
/** A longer `Retry-After` is not followed. */
export const RETRY_AFTER_MS_MAX: number = HOUR;

const JITTER = 0.2;

/** `random` from 0 to 1. */
const jitteredBy = (delayMs: number, random: number): number =>
  Math.round(delayMs * (1 - JITTER + 2 * JITTER * random));

/** After the `n`th failed attempt at a message, from 1. */
export const attemptDelayMs = (n: number, random: number): number =>
  jitteredBy(ATTEMPT_DELAYS_MS[Math.min(n, ATTEMPT_DELAYS_MS.length) - 1] ?? 0, random);

/** After the `n`th failure in a row of a failing endpoint, from 0. */
export const probeDelayMs = (n: number, random: number): number =>
  jitteredBy(PROBE_DELAYS_MS[Math.min(n, PROBE_DELAYS_MS.length - 1)] ?? 0, random);
