/**
 * The log for many endpoints at once: the latest batches in memory, pages of the store for endpoints behind
 * them. Each asks for more when it can take more, so a slow one costs no memory.
 */
import type { EventStore, LogEvent, Position } from '../../shared/event-store/port.ts';
import { isPaymentEvent } from '../../shared/payment/events.ts';
import { paymentOf } from '../../shared/payment/payment-events.ts';
import { createBoundedMap } from '../../shared/runtime/bounded-map.ts';
import { type MessageType, messageTypeOf } from '../../shared/webhooks/message.ts';
import { checkpointHashOf } from '../subscription.ts';
import type { Place, Wanted } from './delivery.ts';
import { readableEvents } from './messages.ts';
import { createPermits } from './permits.ts';

/** Without a type where the event cannot be read. */
type PaymentFact = Wanted & { merchantId: string; type: MessageType | undefined };

/** Facts of the events up to the place `readTo`. */
export type Portion = { facts: readonly PaymentFact[]; readTo: Place };

const PAGE_EVENTS = 500;
const PAGES_AT_ONCE = 4;
/** For so long an endpoint at the head is not woken by events of other merchants. */
const SKIPPED_MS_MAX = 5_000;
const KEPT_EVENTS_MAX = 2_000;
const PAYMENTS_KNOWN_MAX = 50_000;

type First = { merchantId: string; captureNow: boolean };
type Waiter = { merchantId: string; sinceMs: number } & PromiseWithResolvers<Portion>;

/** `from` is the head of the log at first. */
export const createLogFeed = (
  store: Pick<EventStore, 'readAll' | 'readStream'>,
  from: Position | null,
) => ({
  store,
  head: from,
  /** The latest batches, the oldest first. */
  kept: [] as { before: Position | null; portion: Portion; events: number }[],
  /** Endpoints at the head. */
  waiting: new Set<Waiter>(),
  pages: createPermits(PAGES_AT_ONCE, PAGES_AT_ONCE),
  /** What the first event of a payment says, by stream. */
  firsts: createBoundedMap<First>(PAYMENTS_KNOWN_MAX),
});

export type LogFeed = ReturnType<typeof createLogFeed>;

const firstIn = (event: LogEvent | undefined): First | undefined => {
  if (event === undefined || 'unreadable' in event) return undefined;
  if (event.event.type !== 'PaymentCreated') return undefined;
  const { merchantId, captureNow } = event.event.data;
  return { merchantId, captureNow };
};

const factOf = async (feed: LogFeed, event: LogEvent): Promise<PaymentFact | undefined> => {
  const { stream, position, revision } = event;
  const paymentId = paymentOf(stream);
  if (paymentId === undefined) return undefined;
  const here = revision === 0 ? firstIn(event) : feed.firsts.get(stream);
  const first = here ?? firstIn((await readableEvents(feed.store, stream))[0]);
  if (first === undefined) return undefined;
  feed.firsts.set(stream, first);
  const place = { position, hash: checkpointHashOf(event) };
  const fact = { place, paymentId, revision, merchantId: first.merchantId };
  if ('unreadable' in event) return { ...fact, atMs: 0, type: undefined };
  const type = isPaymentEvent(event.event) ? messageTypeOf(event.event, first) : undefined;
  return type === undefined ? undefined : { ...fact, atMs: Date.parse(event.time), type };
};

/** Undefined for no events. */
const portionOf = async (
  feed: LogFeed,
  events: readonly LogEvent[],
): Promise<Portion | undefined> => {
  const last = events.at(-1);
  if (last === undefined) return undefined;
  const facts: PaymentFact[] = [];
  for (const event of events) {
    const fact = await factOf(feed, event);
    if (fact !== undefined) facts.push(fact);
  }
  return { facts, readTo: { position: last.position, hash: checkpointHashOf(last) } };
};

const handOut = ({ waiting }: LogFeed, portion: Portion): void => {
  const merchants = new Set(portion.facts.map(({ merchantId }) => merchantId));
  const nowMs = performance.now();
  for (const waiter of waiting) {
    const { merchantId, sinceMs, resolve } = waiter;
    if (!merchants.has(merchantId) && nowMs - sinceMs < SKIPPED_MS_MAX) continue;
    waiting.delete(waiter);
    resolve(portion);
  }
};

/** What follows the head of the log. */
export const addToFeed = async (feed: LogFeed, events: readonly LogEvent[]): Promise<void> => {
  const { kept } = feed;
  const portion = await portionOf(feed, events);
  if (portion === undefined) return;
  kept.push({ before: feed.head, portion, events: events.length });
  let total = kept.reduce((sum, batch) => sum + batch.events, 0);
  while (total > KEPT_EVENTS_MAX && kept.length > 1) total -= kept.shift()?.events ?? 0;
  feed.head = portion.readTo.position;
  handOut(feed, portion);
};

const pageOf = (
  feed: LogFeed,
  merchantId: string,
  after: Position | null,
  upTo: Position | null,
  signal: AbortSignal,
): Promise<Portion | undefined> =>
  feed.pages.with(merchantId, signal, async () =>
    portionOf(feed, await feed.store.readAll(after, PAGE_EVENTS, upTo)),
  );

/** Skips batches without an event of the merchant. */
const fromHead = async (
  { waiting }: LogFeed,
  merchantId: string,
  signal: AbortSignal,
): Promise<Portion> => {
  const resolvers = Promise.withResolvers<Portion>();
  const waiter = { merchantId, sinceMs: performance.now(), ...resolvers };
  const leave = (): void => waiter.reject(signal.reason);
  signal.addEventListener('abort', leave, { once: true });
  waiting.add(waiter);
  try {
    return await waiter.promise;
  } finally {
    waiting.delete(waiter);
    signal.removeEventListener('abort', leave);
  }
};

/**
 * What follows a place, once it has something of the merchant, or some seconds later. With `upTo` nothing
 * beyond it, and undefined at its end. Throws StoreUnavailable, and the signal's reason.
 */
export const nextPortion = async (
  feed: LogFeed,
  merchantId: string,
  after: Position | null,
  upTo: Position | null,
  signal: AbortSignal,
): Promise<Portion | undefined> => {
  if (upTo !== null)
    return after === upTo ? undefined : pageOf(feed, merchantId, after, upTo, signal);
  while (true) {
    signal.throwIfAborted();
    const batch = feed.kept.find(({ before }) => before === after);
    if (batch !== undefined) return batch.portion;
    const end = feed.head;
    if (end === after) return fromHead(feed, merchantId, signal);
    const found = end === null ? undefined : await pageOf(feed, merchantId, after, end, signal);
    if (found !== undefined) return found;
    // Nothing lies between: the subscription has not come to the place.
    if (feed.head === end) await fromHead(feed, merchantId, signal);
  }
};
