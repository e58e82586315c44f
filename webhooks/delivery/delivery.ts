/**
 * Picks the next message to one endpoint and applies its outcome. Pure. A payment's revisions leave in order.
 * Events after the row's checkpoint are read again; others are accepted, not wanted, given up or in the row.
 */
import {
  type DeliveryRow,
  FAILS_MAX,
  isFailing,
  NO_FAILURES,
  type Single,
} from './delivery-row.ts';

export type LogPlace = { position: string | null; hash: string | null };

export type Wanted = { place: LogPlace; paymentId: string; revision: number; atMs: number };

/** A message to send, after `n` failed attempts. `id` is the payment's, or the single's. */
export type Item = Omit<Single, 'kind'> & { kind: 'unread' | 'retry' | Single['kind'] };

/** The kinds take turns, so that one that always fails keeps no other waiting. */
const TURNS = ['unread', 'retry', 'single'] as const;
type ItemTurn = (typeof TURNS)[number];

export const turnOf = ({ kind }: Item): ItemTurn =>
  kind === 'unread' || kind === 'retry' ? kind : 'single';

export type Delivery = {
  row: DeliveryRow;
  /** Read, and neither ended nor listed in the row; the log is read from `before` to find it again. */
  ahead: readonly (Wanted & { before: LogPlace })[];
  readTo: LogPlace;
  /** Ids of the payments and singles that a request is under way for. */
  busy: ReadonlySet<string>;
  holdUntil: number;
  last: ItemTurn;
};

export const RETRYING_MAX = 100;
const AHEAD_MAX = 100;

export const beginDelivery = (row: DeliveryRow): Delivery => ({
  row,
  ahead: [],
  readTo: { position: row.checkpoint, hash: row.hash },
  busy: new Set(),
  holdUntil: 0,
  last: 'single',
});

/** What the row lists and no request is under way for. */
const waitingIn = ({ row, busy }: Delivery): Item[] => {
  const retries = Object.entries(row.retrying).map(([paymentId, entry]): Item => {
    const { from: revision, n, since, nextAt } = entry;
    return { id: paymentId, kind: 'retry', paymentId, revision, n, since, nextAt };
  });
  return [...retries, ...row.singles].filter(({ id }) => !busy.has(id));
};

const firstDue = (waiting: readonly Item[], nowMs: number): Item | undefined =>
  waiting.filter(({ nextAt }) => nextAt <= nowMs).sort((a, b) => a.nextAt - b.nextAt)[0];

const unread = ({ row, ahead, busy }: Delivery): Item | undefined => {
  if (Object.keys(row.retrying).length + busy.size >= RETRYING_MAX) return undefined;
  const next = ahead.find(({ paymentId }) => !busy.has(paymentId));
  if (next === undefined) return undefined;
  const { paymentId, revision, atMs: since } = next;
  return { id: paymentId, kind: 'unread', paymentId, revision, n: 0, since, nextAt: 0 };
};

const inTurn = (delivery: Delivery, waiting: readonly Item[], nowMs: number): Item | undefined => {
  const { row, last } = delivery;
  const firstOf = (turn: ItemTurn): Item | undefined => {
    if (turn === 'unread') return unread(delivery);
    const items = waiting.filter((item) => turnOf(item) === turn && item.kind !== 'test');
    // The schedule of a failing endpoint says when: then whichever message waits is due.
    const isDue = turn === 'retry' && isFailing(row);
    return firstDue(items, isDue ? Number.POSITIVE_INFINITY : nowMs);
  };
  const next = TURNS.indexOf(last) + 1;
  const order = [...TURNS.slice(next), ...TURNS.slice(0, next)];
  return order.map(firstOf).find((item) => item !== undefined);
};

const sendable = (delivery: Delivery, waiting: readonly Item[], nowMs: number) => {
  const { row, busy, holdUntil } = delivery;
  if (busy.size >= row.window) return undefined;
  // One test at a time. A person waits for it, so neither `Retry-After` nor the next probe delays it.
  const isTesting = row.singles.some(({ id, kind }) => kind === 'test' && busy.has(id));
  const tests = isTesting ? [] : waiting.filter(({ kind }) => kind === 'test');
  const test = firstDue(tests, nowMs);
  if (test !== undefined) return test;
  const isHeld = holdUntil > nowMs || (isFailing(row) && row.probeAt > nowMs);
  return isHeld ? undefined : inTurn(delivery, waiting, nowMs);
};

/** What to send now, whether the log may be read on, and when something is due next, if ever. */
export const nextStep = (delivery: Delivery, nowMs: number) => {
  const { row, ahead, holdUntil } = delivery;
  const waiting = waitingIn(delivery);
  const isFull = ahead.length >= AHEAD_MAX || Object.keys(row.retrying).length >= RETRYING_MAX;
  const due = waiting.map(({ nextAt }) => nextAt);
  const times = [...due, row.probeAt, holdUntil].filter((time) => time > nowMs);
  const send = sendable(delivery, waiting, nowMs);
  return { send, read: !isFull, untilMs: Math.min(...times) };
};

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** After each failed attempt: 14 attempts in about 70 hours. */
const ATTEMPT_DELAYS_MS: readonly number[] = [
  ...[5 * SECOND, 30 * SECOND, 5 * MINUTE, 30 * MINUTE],
  ...[1, 2, 4, 6, 8, 12, 12, 12, 12].map((hours) => hours * HOUR),
];
export const ATTEMPTS_OF_ONE_MAX: number = ATTEMPT_DELAYS_MS.length + 1;

/** Between two requests to a failing endpoint; the last one repeats. */
const PROBE_DELAYS_MS = [5 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE];

/** Without a success. */
const DISABLED_AFTER_MS: number = 72 * HOUR;
/** A longer `Retry-After` is not followed. */
const RETRY_AFTER_MS_MAX = HOUR;

const JITTER = 0.2;

/** The delay after `n` others, or the last one; `random` is from 0 to 1. */
const delayMs = (delaysMs: readonly number[], n: number, random: number): number => {
  const ms = delaysMs[Math.min(n, delaysMs.length - 1)] ?? 0;
  return Math.round(ms * (1 - JITTER + 2 * JITTER * random));
};

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

export const started = (delivery: Delivery, item: Item): Delivery => ({
  ...delivery,
  busy: new Set([...delivery.busy, item.id]),
  last: turnOf(item),
});

/** Events of a retrying payment wait in its entry, so that the log can be read on. */
const advanced = (delivery: Delivery): Delivery => {
  const retrying = { ...delivery.row.retrying };
  for (const { paymentId, revision } of delivery.ahead) {
    const entry = retrying[paymentId];
    if (entry === undefined) continue;
    const [from, to] = [Math.min(entry.from, revision), Math.max(entry.to, revision)];
    retrying[paymentId] = { ...entry, from, to };
  }
  const ahead = delivery.ahead.filter(({ paymentId }) => retrying[paymentId] === undefined);
  const { position: checkpoint, hash } = ahead[0]?.before ?? delivery.readTo;
  const since = Object.values(retrying).map((entry) => entry.since);
  const waits = [...since, ...ahead.map(({ atMs }) => atMs)];
  const oldestWaiting = waits.length === 0 ? null : Math.min(...waits);
  return {
    ...delivery,
    ahead,
    row: { ...delivery.row, retrying, checkpoint, hash, oldestWaiting },
  };
};

/** `events` are those that the endpoint wants, up to `readTo`. */
export const readOn = (
  delivery: Delivery,
  events: readonly Wanted[],
  readTo: LogPlace,
): Delivery => {
  const added = events.map((event, at) => ({
    ...event,
    before: events[at - 1]?.place ?? delivery.readTo,
  }));
  return advanced({ ...delivery, ahead: [...delivery.ahead, ...added], readTo });
};

const ended = (delivery: Delivery, item: Item, change: Partial<DeliveryRow>): Delivery => {
  const busy = new Set(delivery.busy);
  busy.delete(item.id);
  const ahead = delivery.ahead.filter(
    ({ paymentId, revision }) =>
      item.kind !== 'unread' || paymentId !== item.id || revision !== item.revision,
  );
  const row = { ...delivery.row, ...change };
  const isRetried = Object.keys(row.retrying).length > 0 || row.singles.length > 0;
  // A failure days after a test is the first in a row.
  return advanced({ ...delivery, busy, ahead, row: isRetried ? row : { ...row, ...NO_FAILURES } });
};

type Again = Pick<Single, 'n' | 'nextAt'>;

/** `again`: it is tried once more. */
const rowAfter = ({ singles, retrying }: DeliveryRow, item: Item, nowMs: number, again?: Again) => {
  const { id, revision, since } = item;
  if (turnOf(item) === 'single') {
    const isIt = (one: Single): boolean => one.id === id;
    if (again === undefined) return { singles: singles.filter((one) => !isIt(one)) };
    return { singles: singles.map((one) => (isIt(one) ? { ...one, ...again } : one)) };
  }
  const { [id]: entry, ...others } = retrying;
  const first = { from: revision, to: revision, since };
  if (again !== undefined)
    return { retrying: { ...retrying, [id]: { ...first, ...entry, ...again } } };
  if (entry === undefined || revision < entry.from) return {};
  if (revision >= entry.to) return { retrying: others };
  const next = { ...entry, from: revision + 1, n: 0, nextAt: nowMs };
  return { retrying: { ...others, [id]: next } };
};

export const accepted = (delivery: Delivery, item: Item, nowMs: number, latencyMs: number) => {
  const { row } = delivery;
  const window = isFailing(row) ? 1 : windowAfter(row, latencyMs);
  return ended(delivery, item, { ...rowAfter(row, item, nowMs), ...NO_FAILURES, window });
};

export const passed = (delivery: Delivery, item: Item, nowMs: number): Delivery =>
  ended(delivery, item, rowAfter(delivery.row, item, nowMs));

type Failure = {
  retryAfterMs?: number | undefined;
  /** No request was made, which says nothing about the endpoint. */
  ours?: 'unreadable' | 'interrupted' | undefined;
  random: number;
};

const afterFailure = (row: DeliveryRow, nowMs: number, { ours, random }: Failure) => {
  const isTheirs = ours === undefined;
  const fails = isTheirs ? row.fails + 1 : row.fails;
  const failingSince = isTheirs ? (row.failingSince ?? nowMs) : row.failingSince;
  if (fails < FAILS_MAX)
    return { fails, failingSince, window: isTheirs ? Math.max(1, row.window >> 1) : row.window };
  const probeAt = nowMs + delayMs(PROBE_DELAYS_MS, fails - FAILS_MAX, random);
  return { fails, failingSince, probeAt, window: 1 };
};

const againAfter = (
  row: DeliveryRow,
  { n: before, kind }: Item,
  nowMs: number,
  { ours, random }: Failure,
): Again | undefined => {
  const nextAt = (n: number): number => nowMs + delayMs(ATTEMPT_DELAYS_MS, n - 1, random);
  // Nothing is given up where no request was made.
  if (ours === 'interrupted') return { n: before, nextAt: nextAt(1) };
  // While an endpoint accepts nothing, no message is given up for it.
  const n = isFailing(row) ? Math.max(before, 1) : before + 1;
  return kind === 'test' || n >= ATTEMPTS_OF_ONE_MAX ? undefined : { n, nextAt: nextAt(n) };
};

export const failed = (delivery: Delivery, item: Item, nowMs: number, failure: Failure) => {
  const { row } = delivery;
  const again = againAfter(row, item, nowMs, failure);
  const kept = rowAfter(row, item, nowMs, again);
  const holdUntil = nowMs + Math.min(failure.retryAfterMs ?? 0, RETRY_AFTER_MS_MAX);
  const after = ended(delivery, item, { ...kept, ...afterFailure(row, nowMs, failure) });
  const { failingSince } = after.row;
  const isTheirs = failure.ours === undefined && isFailing(after.row);
  return {
    delivery: { ...after, holdUntil: Math.max(after.holdUntil, holdUntil) },
    nextAt: again && Math.max(again.nextAt, holdUntil),
    isOver: isTheirs && failingSince !== null && nowMs - failingSince >= DISABLED_AFTER_MS,
  };
};
