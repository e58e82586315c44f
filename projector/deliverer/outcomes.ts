/**
 * How an outcome changes a delivery. Pure. An event after the row's checkpoint is read again; one up to it
 * is accepted, not wanted, given up, or listed in the row.
 */
import {
  type DeliveryRow,
  FAILS_MAX,
  isFailing,
  type RetryingPayment,
} from '../../shared/webhooks/delivery-row.ts';
import {
  type Ahead,
  type Delivery,
  type Item,
  isTest,
  type Place,
  type Wanted,
} from './delivery.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** After each failed attempt: 14 attempts in about 70 hours. */
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

/** Between two requests to a failing endpoint; the last one repeats. */
const PROBE_DELAYS_MS = [5 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE];

/** Without a success. */
export const DISABLED_AFTER_MS: number = 72 * HOUR;
/** A longer `Retry-After` is not followed. */
const RETRY_AFTER_MS_MAX = HOUR;

const JITTER = 0.2;

const jitteredBy = (delayMs: number, random: number): number =>
  Math.round(delayMs * (1 - JITTER + 2 * JITTER * random));

const attemptDelayMs = (n: number, random: number): number =>
  jitteredBy(ATTEMPT_DELAYS_MS[Math.min(n, ATTEMPT_DELAYS_MS.length) - 1] ?? 0, random);

const probeDelayMs = (n: number, random: number): number =>
  jitteredBy(PROBE_DELAYS_MS[Math.min(n, PROBE_DELAYS_MS.length - 1)] ?? 0, random);

/** Requests at a time to an endpoint that is well: as many as it bears, up to its merchant's share. */
const WINDOW_MAX = 16;
/** A slow one keeps so many. */
const SLOW_WINDOW = 4;
const SLOW_MS = 1_000;

/** One at a time after an outage, then one more for each quick success. */
const windowAfter = ({ window }: DeliveryRow, latencyMs: number): number => {
  if (latencyMs <= SLOW_MS) return Math.min(WINDOW_MAX, window + 1);
  return window < SLOW_WINDOW ? window + 1 : Math.max(SLOW_WINDOW, window >> 1);
};

const keyOf = (item: Item): string => (item.kind === 'single' ? item.single.id : item.paymentId);

const withAhead = (
  ahead: readonly Ahead[],
  { paymentId, revision }: { paymentId: string; revision: number },
  state: Ahead['state'],
): Ahead[] =>
  ahead.map((one) =>
    one.paymentId === paymentId && one.revision === revision ? { ...one, state } : one,
  );

export const started = (delivery: Delivery, item: Item): Delivery => ({
  ...delivery,
  busy: new Set([...delivery.busy, keyOf(item)]),
  ahead: item.kind === 'unread' ? withAhead(delivery.ahead, item, 'sending') : delivery.ahead,
  last: item.kind,
});

const advanced = (delivery: Delivery): Delivery => {
  const { ahead, readTo, row } = delivery;
  const open = ahead.findIndex(({ state }) => state !== 'done');
  const left = open === -1 ? [] : ahead.slice(open);
  const passed = open === -1 ? readTo : ahead[open - 1]?.place;
  const waits = [
    ...Object.values(row.retrying).map(({ since }) => since),
    ...left.map((one) => one.atMs),
  ];
  const place = passed === undefined ? {} : { checkpoint: passed.position, hash: passed.hash };
  const oldestWaiting = waits.length === 0 ? null : Math.min(...waits);
  return { ...delivery, ahead: left, row: { ...row, ...place, oldestWaiting } };
};

const ended = (delivery: Delivery, item: Item, row: Partial<DeliveryRow>): Delivery => {
  const busy = new Set(delivery.busy);
  busy.delete(keyOf(item));
  const ahead = item.kind === 'unread' ? withAhead(delivery.ahead, item, 'done') : delivery.ahead;
  const next = { ...delivery.row, ...row };
  const isRetried = Object.keys(next.retrying).length > 0 || next.singles.length > 0;
  // A failure days after a test is the first in a row.
  const failures = isRetried ? {} : { fails: 0, failingSince: null, probeAt: 0 };
  return advanced({ ...delivery, busy, ahead, row: { ...next, ...failures } });
};

const afterRevision = (
  retrying: DeliveryRow['retrying'],
  { paymentId, revision }: { paymentId: string; revision: number },
  nowMs: number,
): DeliveryRow['retrying'] => {
  const { [paymentId]: entry, ...others } = retrying;
  if (entry === undefined || revision < entry.from) return retrying;
  if (revision >= entry.to) return others;
  return { ...others, [paymentId]: { ...entry, from: revision + 1, n: 0, nextAt: nowMs } };
};

const withoutItem = (row: DeliveryRow, item: Item, nowMs: number): Partial<DeliveryRow> =>
  item.kind === 'single'
    ? { singles: row.singles.filter(({ id }) => id !== item.single.id) }
    : { retrying: afterRevision(row.retrying, item, nowMs) };

export const accepted = (
  delivery: Delivery,
  item: Item,
  nowMs: number,
  latencyMs: number,
): Delivery => {
  const { row } = delivery;
  const window = isFailing(row) ? 1 : windowAfter(row, latencyMs);
  const well = { fails: 0, failingSince: null, probeAt: 0, window };
  return ended(delivery, item, { ...withoutItem(row, item, nowMs), ...well });
};

export const passed = (delivery: Delivery, item: Item, nowMs: number): Delivery =>
  ended(delivery, item, withoutItem(delivery.row, item, nowMs));

export type Failure = {
  retryAfterMs?: number | undefined;
  /** No request was made, which says nothing about the endpoint. */
  ours?: 'unreadable' | 'interrupted' | undefined;
  random: number;
};

export type Failed = {
  delivery: Delivery;
  nextAt: number | undefined;
  isOver: boolean;
};

const afterFailure = (row: DeliveryRow, nowMs: number, { ours, random }: Failure) => {
  const fails = ours === undefined ? row.fails + 1 : row.fails;
  const failingSince = ours === undefined ? (row.failingSince ?? nowMs) : row.failingSince;
  if (fails < FAILS_MAX)
    return {
      fails,
      failingSince,
      window: ours === undefined ? Math.max(1, row.window >> 1) : row.window,
    };
  const probeAt = nowMs + probeDelayMs(fails - FAILS_MAX, random);
  return { fails, failingSince, probeAt, window: 1 };
};

const extended = (entry: RetryingPayment, revision: number): RetryingPayment => ({
  ...entry,
  from: Math.min(entry.from, revision),
  to: Math.max(entry.to, revision),
});

/** Events of a retrying payment wait in its entry, so that the log can be read on. */
const absorbed = (delivery: Delivery): Delivery => {
  const retrying = { ...delivery.row.retrying };
  const ahead = delivery.ahead.map((one): Ahead => {
    const entry = retrying[one.paymentId];
    if (entry === undefined || one.state !== 'waiting') return one;
    retrying[one.paymentId] = extended(entry, one.revision);
    return { ...one, state: 'done' };
  });
  return { ...delivery, ahead, row: { ...delivery.row, retrying } };
};

const triedAgain = (row: DeliveryRow, item: Item, nowMs: number, { ours, random }: Failure) => {
  const before = item.kind === 'single' ? item.single.n : item.kind === 'retry' ? item.n : 0;
  // Nothing is given up where no request was made.
  if (ours === 'interrupted') return { n: before, nextAt: nowMs + attemptDelayMs(1, random) };
  // While an endpoint accepts nothing, no message is given up for it.
  const n = isFailing(row) ? Math.max(before, 1) : before + 1;
  if (isTest(item) || n >= ATTEMPTS_OF_ONE_MAX) return undefined;
  return { n, nextAt: nowMs + attemptDelayMs(n, random) };
};

const withAgain = (
  row: DeliveryRow,
  item: Item,
  again: { n: number; nextAt: number },
): Partial<DeliveryRow> => {
  if (item.kind === 'single') {
    const { id } = item.single;
    return { singles: row.singles.map((one) => (one.id === id ? { ...one, ...again } : one)) };
  }
  const { paymentId, revision, atMs } = item;
  const entry = row.retrying[paymentId] ?? { from: revision, to: revision, since: atMs };
  return { retrying: { ...row.retrying, [paymentId]: { ...entry, ...again } } };
};

export const failed = (delivery: Delivery, item: Item, nowMs: number, failure: Failure): Failed => {
  const { row } = delivery;
  const again = triedAgain(row, item, nowMs, failure);
  const failures = afterFailure(row, nowMs, failure);
  const kept = again === undefined ? withoutItem(row, item, nowMs) : withAgain(row, item, again);
  const holdUntil = nowMs + Math.min(failure.retryAfterMs ?? 0, RETRY_AFTER_MS_MAX);
  const after = absorbed(ended(delivery, item, { ...kept, ...failures }));
  const { failingSince } = after.row;
  const isTheirs = failure.ours === undefined && isFailing(after.row);
  return {
    delivery: advanced({ ...after, holdUntil: Math.max(after.holdUntil, holdUntil) }),
    nextAt: again && Math.max(again.nextAt, holdUntil),
    isOver: isTheirs && failingSince !== null && nowMs - failingSince >= DISABLED_AFTER_MS,
  };
};

/** `events` are those that the endpoint wants, up to `readTo`. */
export const readOn = (delivery: Delivery, events: readonly Wanted[], readTo: Place): Delivery => {
  const added = events.map((event): Ahead => ({ ...event, state: 'waiting' }));
  return advanced(absorbed({ ...delivery, ahead: [...delivery.ahead, ...added], readTo }));
};
