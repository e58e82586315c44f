/**
 * What a request and its outcome change of a delivery. Pure: the clock and chance are given. Whatever
 * happens, an event after the row's checkpoint is read again, and one up to it is accepted, not
 * wanted, given up, or listed in the row.
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
import {
  ATTEMPTS_OF_ONE_MAX,
  attemptDelayMs,
  DISABLED_AFTER_MS,
  probeDelayMs,
  RETRY_AFTER_MS_MAX,
} from './schedule.ts';

/** Requests at a time to an endpoint that is well. */
const WINDOW_MAX = 4;

const keyOf = (item: Item): string => (item.kind === 'single' ? item.single.id : item.paymentId);

const withAhead = (
  ahead: readonly Ahead[],
  { paymentId, revision }: { paymentId: string; revision: number },
  state: Ahead['state'],
): Ahead[] =>
  ahead.map((one) =>
    one.paymentId === paymentId && one.revision === revision ? { ...one, state } : one,
  );

/** The delivery while an item is being sent. */
export const started = (delivery: Delivery, item: Item): Delivery => ({
  ...delivery,
  busy: new Set([...delivery.busy, keyOf(item)]),
  ahead: item.kind === 'unread' ? withAhead(delivery.ahead, item, 'sending') : delivery.ahead,
  last: item.kind,
});

/** Moves the checkpoint over what needs no more attention. */
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
  // Failures are in a row while something is tried again; a failure days after a test is a first one.
  const failures = isRetried ? {} : { fails: 0, failingSince: null, probeAt: 0 };
  return advanced({ ...delivery, busy, ahead, row: { ...next, ...failures } });
};

/** The retrying payments once a revision of one of them needs no more attention. */
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

/** The endpoint accepted an item. */
export const accepted = (delivery: Delivery, item: Item, nowMs: number): Delivery => {
  const { row } = delivery;
  // One at a time after an outage, then one more for each success: no herd.
  const window = isFailing(row) ? 1 : Math.min(WINDOW_MAX, row.window + 1);
  const well = { fails: 0, failingSince: null, probeAt: 0, window };
  return ended(delivery, item, { ...withoutItem(row, item, nowMs), ...well });
};

/** An item turned out to have no message: the endpoint does not want it. */
export const passed = (delivery: Delivery, item: Item, nowMs: number): Delivery =>
  ended(delivery, item, withoutItem(delivery.row, item, nowMs));

export type Failure = {
  /** What the endpoint asked for, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** Why no request was made, where none was: that says nothing about the endpoint. */
  ours?: 'unreadable' | 'store out of reach' | undefined;
  /** From 0 to 1. */
  random: number;
};

export type Failed = {
  delivery: Delivery;
  /** When the item is tried again; undefined: it was given up. */
  nextAt: number | undefined;
  /** The endpoint had no success for so long that it is to be disabled. */
  isOver: boolean;
};

/** The row's failures after one more of the endpoint's, or after one of ours. */
const afterFailure = (row: DeliveryRow, nowMs: number, { ours, random }: Failure) => {
  const fails = ours === undefined ? row.fails + 1 : row.fails;
  const failingSince = ours === undefined ? (row.failingSince ?? nowMs) : row.failingSince;
  if (fails < FAILS_MAX) return { fails, failingSince };
  const probeAt = nowMs + probeDelayMs(fails - FAILS_MAX, random);
  return { fails, failingSince, probeAt, window: 1 };
};

const extended = (entry: RetryingPayment, revision: number): RetryingPayment => ({
  ...entry,
  from: Math.min(entry.from, revision),
  to: Math.max(entry.to, revision),
});

/** Events of a retrying payment wait there, so that the log can be read on. */
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

/** The row's entry of an item after one more failed attempt; undefined where it is given up. */
const triedAgain = (row: DeliveryRow, item: Item, nowMs: number, { ours, random }: Failure) => {
  const before = item.kind === 'single' ? item.single.n : item.kind === 'retry' ? item.n : 0;
  // No request was made: nothing is given up for it, not even a test.
  if (ours === 'store out of reach')
    return { n: before, nextAt: nowMs + attemptDelayMs(1, random) };
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

/** The endpoint did not accept an item, or it could not be sent. */
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

/** More of the log was read, up to a place; `events` are the wanted ones. */
export const readOn = (delivery: Delivery, events: readonly Wanted[], readTo: Place): Delivery => {
  const added = events.map((event): Ahead => ({ ...event, state: 'waiting' }));
  return advanced(absorbed({ ...delivery, ahead: [...delivery.ahead, ...added], readTo }));
};
