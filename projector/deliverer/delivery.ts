/** The next message to one endpoint. Pure. The revisions of a payment leave in their order. */
import { type DeliveryRow, isFailing, type Single } from '../../shared/webhooks/delivery-row.ts';

export type Place = { position: string | null; hash: string | null };

export type Wanted = {
  place: Place;
  paymentId: string;
  revision: number;
  atMs: number;
};

export type Item =
  | { kind: 'unread'; paymentId: string; revision: number; atMs: number }
  | { kind: 'retry'; paymentId: string; revision: number; n: number; atMs: number }
  | { kind: 'single'; single: Single };

/** A test is tried once, and before everything else. */
export const isTest = (item: Item): boolean =>
  item.kind === 'single' && item.single.kind === 'test';

export type Ahead = Wanted & { state: 'waiting' | 'sending' | 'done' };

export type Delivery = {
  row: DeliveryRow;
  /** Read and not all accepted, in the order of the log. */
  ahead: Ahead[];
  readTo: Place;
  busy: ReadonlySet<string>;
  holdUntil: number;
  last: Item['kind'];
};

/** The kinds take turns, so that one that always fails keeps no other waiting. */
const TURNS: readonly Item['kind'][] = ['unread', 'retry', 'single'];

export const RETRYING_MAX = 100;
const AHEAD_MAX = 100;

export const deliveryOf = (row: DeliveryRow): Delivery => ({
  row,
  ahead: [],
  readTo: { position: row.checkpoint, hash: row.hash },
  busy: new Set(),
  holdUntil: 0,
  last: 'single',
});

export type NextStep = {
  send: Item | undefined;
  read: boolean;
  untilMs: number | undefined;
};

const unread = ({ row, ahead, busy }: Delivery): Item | undefined => {
  const sending = ahead.filter(({ state }) => state === 'sending').length;
  if (Object.keys(row.retrying).length + sending >= RETRYING_MAX) return undefined;
  const blocked = new Set(busy);
  for (const one of ahead) {
    if (one.state === 'done') continue;
    const { paymentId, revision, atMs } = one;
    if (one.state === 'waiting' && !blocked.has(paymentId))
      return { kind: 'unread', paymentId, revision, atMs };
    blocked.add(paymentId);
  }
  return undefined;
};

const soonest = <T extends { nextAt: number }>(all: readonly T[]): T | undefined =>
  all.reduce<T | undefined>((a, b) => (a === undefined || b.nextAt < a.nextAt ? b : a), undefined);

const idleRetries = ({ row, busy }: Delivery) =>
  Object.entries(row.retrying)
    .filter(([paymentId]) => !busy.has(paymentId))
    .map(([paymentId, entry]) => ({ paymentId, ...entry }));

const idleSingles = ({ row, busy }: Delivery) => row.singles.filter(({ id }) => !busy.has(id));

const retryItem = (
  delivery: Delivery,
  nowMs: number,
): Extract<Item, { kind: 'retry' }> | undefined => {
  const entry = soonest(idleRetries(delivery));
  // The schedule of a failing endpoint says when: then whichever message waits is due.
  if (entry === undefined || (entry.nextAt > nowMs && !isFailing(delivery.row))) return undefined;
  const { paymentId, from: revision, n, since } = entry;
  return { kind: 'retry', paymentId, revision, n, atMs: since };
};

const dueOf = (singles: readonly Single[], nowMs: number): Item | undefined => {
  const single = soonest(singles);
  return single === undefined || single.nextAt > nowMs ? undefined : { kind: 'single', single };
};

const singleItem = (delivery: Delivery, nowMs: number): Item | undefined =>
  dueOf(
    idleSingles(delivery).filter(({ kind }) => kind !== 'test'),
    nowMs,
  );

/** One test at a time. */
const testItem = ({ row, busy }: Delivery, nowMs: number): Item | undefined => {
  const tests = row.singles.filter(({ kind }) => kind === 'test');
  return tests.some(({ id }) => busy.has(id)) ? undefined : dueOf(tests, nowMs);
};

const inTurn = (delivery: Delivery, nowMs: number): Item | undefined => {
  const items = {
    unread: unread(delivery),
    retry: retryItem(delivery, nowMs),
    single: singleItem(delivery, nowMs),
  };
  const next = TURNS.indexOf(delivery.last) + 1;
  const order = [...TURNS.slice(next), ...TURNS.slice(0, next)];
  return order.map((kind) => items[kind]).find((item) => item !== undefined);
};

const sendable = (delivery: Delivery, nowMs: number): Item | undefined => {
  const { row, busy, holdUntil } = delivery;
  if (busy.size >= row.window) return undefined;
  const test = testItem(delivery, nowMs);
  // A person waits for its outcome, so neither `Retry-After` nor the next probe delays it.
  if (test !== undefined) return test;
  if (isFailing(row) && row.probeAt > nowMs) return undefined;
  return holdUntil > nowMs ? undefined : inTurn(delivery, nowMs);
};

export const nextStep = (delivery: Delivery, nowMs: number): NextStep => {
  const { row, ahead, holdUntil } = delivery;
  const waiting = ahead.filter(({ state }) => state !== 'done').length;
  const isFull = waiting >= AHEAD_MAX || Object.keys(row.retrying).length >= RETRYING_MAX;
  const due = [...idleRetries(delivery), ...idleSingles(delivery)].map(({ nextAt }) => nextAt);
  const times = [...due, row.probeAt, holdUntil].filter((time) => time > nowMs);
  return {
    send: sendable(delivery, nowMs),
    read: !isFull,
    untilMs: times.length === 0 ? undefined : Math.min(...times),
  };
};
