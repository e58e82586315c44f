/**
 * Every time that a test fails by, with its reason. `TEST_TIME_FACTOR=4` makes each four times as long, for a
 * machine that is slower or busier than two cores with other work.
 */
const { TEST_LONG, TEST_TIME_FACTOR = '1' } = process.env;
const bound = (ms: number, ofLongRun = ms): number =>
  (TEST_LONG === '1' ? ofLongRun : ms) * Number(TEST_TIME_FACTOR);

/** A test hangs: several of the waits below, or in the long run a million payments. */
export const TEST_MS_MAX = bound(300_000, 3_600_000);

/** What a test waits for does not come. A busy machine needs a third of it to start a process. */
export const HANGS_MS = bound(90_000);

/** V2: from the signal to the exit. */
export const STOP_MS_MAX = bound(10_000);

/**
 * A call does not end by its own bound, of two seconds or less: without it, it would take half a minute or
 * for ever. A busy machine adds seconds.
 */
export const ENDS_MS_MAX = bound(15_000);

/**
 * A5: one search of a body takes no longer than so many times JSON.parse of as many bytes: ten times what
 * the dearest takes. One that grows with the square of the bytes takes thousands.
 */
export const TIMES_JSON_PARSE_MAX = 100;

// What the long run measures (docs/reliability.md).

/** From a start after a kill to ready, in the median; a tenth of it on a idle machine. */
export const STARTS_MS_MAX = bound(6_000);
/** Until the read models have followed a load that has ended. */
export const FOLLOWED_MS_MAX = bound(10_000);
/** By how much a projector that stands still may make a create slower. */
export const SLOWER_MS_MAX = bound(50);
/** Until another process delivers, after a stop; and after a loss: 25 s on a idle machine. */
export const HANDED_OVER_MS_MAX = bound(15_000);
export const TAKEN_OVER_MS_MAX = bound(60_000);

/** Settings of a service whose own time-outs no request of a test reaches. */
export const PATIENT = {
  PROVIDER_CONNECT_TIMEOUT_MS: String(bound(60_000)),
  PROVIDER_TIMEOUT_MS: String(bound(60_000)),
  REQUEST_BUDGET_MS: String(bound(60_000)),
};

/** A time-out that a test waits for: everything else that it does has to end before. */
export const AWAITED_MS = bound(2_000);

/** Settings of a service whose time-outs a test waits for. */
export const HASTY = {
  PROVIDER_TIMEOUT_MS: String(AWAITED_MS),
  REQUEST_BUDGET_MS: String(AWAITED_MS),
};
