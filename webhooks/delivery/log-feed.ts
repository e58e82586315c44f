/** One log for many endpoints: latest batches in memory, else store pages. A slow one costs no memory. */
import { isOfPayment } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, LogEvent, Position } from '../../shared/event-store/port.ts';
import { isPaymentEvent, paymentOf } from '../../shared/payment/events.ts';
import { createBoundedMap } from '../../shared/runtime/bounded-map.ts';
import { createTurns } from '../../shared/runtime/fair-turns.ts';
import { checkpointHashOf } from '../../shared/subscription/subscription.ts';
import { messageTypeOf, readableEvents, type WebhookType } from '../message.ts';
import type { LogPlace, Wanted } from './delivery.ts';

/** Without a type where the event cannot be read. */
type PaymentFact = Wanted & { merchantId: string; type: WebhookType | undefined };

/** Facts of the events up to the place `readTo`. */
export type Portion = { facts: readonly PaymentFact[]; readTo: LogPlace };

const PAGE_EVENTS = 500;
const PAGES_AT_ONCE = 4;
const KEPT_EVENTS_MAX = 2_000;
const PAYMENTS_KNOWN_MAX = 50_000;

type First = { merchantId: string; captureNow: boolean };

export const createLogFeed = (store: Pick<EventStore, 'readAll' | 'readStream'>) => ({
  store,
  /** Of the log, as far as it is followed. */
  head: { position: null, hash: null } as LogPlace,
  /** The latest batches, the oldest first. */
  kept: [] as (Portion & { before: Position | null; events: number })[],
  pages: createTurns(PAGES_AT_ONCE),
  /** What the first event of a payment says, by stream. */
  firsts: createBoundedMap<First>(PAYMENTS_KNOWN_MAX),
});

export type LogFeed = ReturnType<typeof createLogFeed>;

const firstIn = (event: LogEvent | undefined): First | undefined => {
  if (event === undefined || 'unreadable' in event || !isOfPayment(event)) return undefined;
  if (event.event.type !== 'PaymentCreated') return undefined;
  const { merchantId, captureNow } = event.event.data;
  return { merchantId, captureNow };
};

const placeOf = (event: LogEvent): LogPlace => ({
  position: event.position,
  hash: checkpointHashOf(event),
});

const factOf = async (feed: LogFeed, event: LogEvent): Promise<PaymentFact | undefined> => {
  const { stream, revision } = event;
  const paymentId = paymentOf(stream);
  if (paymentId === undefined) return undefined;
  const here = revision === 0 ? firstIn(event) : feed.firsts.get(stream);
  const first = here ?? firstIn((await readableEvents(feed.store, stream))[0]);
  if (first === undefined) return undefined;
  feed.firsts.set(stream, first);
  const fact = { place: placeOf(event), paymentId, revision, merchantId: first.merchantId };
  if ('unreadable' in event) return { ...fact, atMs: 0, type: undefined };
  const type = isPaymentEvent(event.event) ? messageTypeOf(event.event, first) : undefined;
  return type === undefined ? undefined : { ...fact, atMs: Date.parse(event.time), type };
};

/** Undefined for no events. Throws StoreUnavailable. */
export const portionOf = async (feed: LogFeed, events: readonly LogEvent[]) => {
  const last = events.at(-1);
  if (last === undefined) return undefined;
  const facts: PaymentFact[] = [];
  for (const event of events) {
    const fact = await factOf(feed, event);
    if (fact !== undefined) facts.push(fact);
  }
  return { facts, readTo: placeOf(last) };
};

/** What follows the head of the log, of so many events. */
export const addToFeed = (feed: LogFeed, portion: Portion, events: number): void => {
  const { kept, head } = feed;
  kept.push({ ...portion, before: head.position, events });
  let total = kept.reduce((sum, batch) => sum + batch.events, 0);
  while (total > KEPT_EVENTS_MAX && kept.length > 1) total -= kept.shift()?.events ?? 0;
  feed.head = portion.readTo;
};

/** Undefined where nothing is stored between the two. Throws StoreUnavailable, and the signal's reason. */
export const feedPage = (
  feed: LogFeed,
  merchantId: string,
  after: Position | null,
  upTo: Position | null,
  signal: AbortSignal,
): Promise<Portion | undefined> =>
  feed.pages.with(merchantId, signal, async () =>
    portionOf(feed, await feed.store.readAll(after, PAGE_EVENTS, upTo)),
  );
