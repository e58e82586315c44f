/**
 * The log for many endpoints at once: the latest batches in memory, pages of the store for endpoints behind
 * them. Each asks for more when it can take more, so a slow one costs no memory.
 */
import type { EventStore, LogEvent, Position } from '../../shared/event-store/port.ts';
import { isPaymentEvent } from '../../shared/payment/events.ts';
import { paymentOf } from '../../shared/payment/payment-events.ts';
import { createBoundedMap } from '../../shared/runtime/bounded-map.ts';
import { type MessageType, messageTypeOf } from '../../shared/webhooks/message-types.ts';
import { checkpointHashOf } from '../log-check.ts';
import type { Place, Wanted } from './delivery.ts';
import { readableEvents } from './messages.ts';
import { createPermits } from './permits.ts';

/** Without a type where the event cannot be read. */
type PaymentFact = Wanted & { merchantId: string; type: MessageType | undefined };

export type Portion = {
  facts: readonly PaymentFact[];
  last: Place | undefined;
  cursor: Position | null;
};

export type LogFeed = {
  add(events: readonly LogEvent[]): Promise<void>;
  /**
   * What follows a place, once it has something of the merchant, or some seconds later. With `upTo` nothing
   * beyond it, and undefined at its end. Throws StoreUnavailable, and the signal's reason.
   */
  next(
    merchantId: string,
    after: Position | null,
    upTo: Position | null,
    signal: AbortSignal,
  ): Promise<Portion | undefined>;
};

type LogFeedOptions = {
  store: Pick<EventStore, 'readAll' | 'readStream'>;
  from: Position | null;
  onPayment(event: LogEvent, merchantId: string): Promise<void> | undefined;
};

const PAGE_EVENTS = 500;
const PAGES_AT_ONCE = 4;
/** For so long an endpoint at the head is not woken by events of other merchants. */
const SKIPPED_MS_MAX = 5_000;
const KEPT_EVENTS_MAX = 2_000;
const PAYMENTS_KNOWN_MAX = 50_000;

type First = { merchantId: string; captureNow: boolean };

const firstOf = (event: LogEvent | undefined): First | undefined => {
  if (event === undefined || 'unreadable' in event) return undefined;
  if (event.event.type !== 'PaymentCreated') return undefined;
  const { merchantId, captureNow } = event.event.data;
  return { merchantId, captureNow };
};

const createFacts = ({ store, onPayment }: LogFeedOptions) => {
  const known = createBoundedMap<First>(PAYMENTS_KNOWN_MAX);

  const first = async (event: LogEvent): Promise<First | undefined> => {
    const { stream } = event;
    const here = event.revision === 0 ? firstOf(event) : known.get(stream);
    // Undefined where the first event cannot be read.
    const found = here ?? firstOf((await readableEvents(store, stream))[0]);
    if (found !== undefined) known.set(stream, found);
    return found;
  };

  return async (event: LogEvent): Promise<PaymentFact | undefined> => {
    const paymentId = paymentOf(event.stream);
    const created = paymentId === undefined ? undefined : await first(event);
    if (paymentId === undefined || created === undefined) return undefined;
    const { position, revision } = event;
    const { merchantId } = created;
    await onPayment(event, merchantId);
    const place = { position, hash: checkpointHashOf(event) };
    const fact = { place, paymentId, revision, merchantId };
    if ('unreadable' in event) return { ...fact, atMs: 0, type: undefined };
    if (!isPaymentEvent(event.event)) return undefined;
    const type = messageTypeOf(event.event, created);
    return type === undefined ? undefined : { ...fact, atMs: Date.parse(event.time), type };
  };
};

export const createLogFeed = (options: LogFeedOptions): LogFeed => {
  const { store } = options;
  const factOf = createFacts(options);
  const pages = createPermits(PAGES_AT_ONCE, PAGES_AT_ONCE);
  let head = options.from;
  const kept: { before: Position | null; portion: Portion; events: number }[] = [];
  const waiting = new Set<{ merchantId: string; sinceMs: number; take(portion: Portion): void }>();

  const portionOf = async (
    events: readonly LogEvent[],
    cursor: Position | null,
  ): Promise<Portion> => {
    const facts: PaymentFact[] = [];
    for (const event of events) {
      const fact = await factOf(event);
      if (fact !== undefined) facts.push(fact);
    }
    const last = events.at(-1);
    const place = last && { position: last.position, hash: checkpointHashOf(last) };
    return { facts, last: place, cursor: place?.position ?? cursor };
  };

  const keep = (portion: Portion, events: number): void => {
    kept.push({ before: head, portion, events });
    let total = kept.reduce((sum, batch) => sum + batch.events, 0);
    while (total > KEPT_EVENTS_MAX && kept.length > 1) total -= kept.shift()?.events ?? 0;
  };

  const page = (
    merchantId: string,
    after: Position | null,
    upTo: Position | null,
    signal: AbortSignal,
  ): Promise<Portion | undefined> =>
    pages.with(merchantId, signal, async () => {
      const events = await store.readAll(after, PAGE_EVENTS, upTo);
      return events.length === 0 ? undefined : portionOf(events, upTo);
    });

  /** Skips batches without an event of the merchant. */
  const fromHead = async (merchantId: string, signal: AbortSignal): Promise<Portion> => {
    const { promise, resolve, reject } = Promise.withResolvers<Portion>();
    const waiter = { merchantId, sinceMs: performance.now(), take: resolve };
    const leave = (): void => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    waiting.add(waiter);
    try {
      return await promise;
    } finally {
      waiting.delete(waiter);
      signal.removeEventListener('abort', leave);
    }
  };

  const handOut = (portion: Portion): void => {
    const merchants = new Set(portion.facts.map(({ merchantId }) => merchantId));
    const nowMs = performance.now();
    for (const waiter of waiting) {
      const { merchantId, sinceMs, take } = waiter;
      if (!merchants.has(merchantId) && nowMs - sinceMs < SKIPPED_MS_MAX) continue;
      waiting.delete(waiter);
      take(portion);
    }
  };

  return {
    add: async (events) => {
      const last = events.at(-1);
      if (last === undefined) return;
      const portion = await portionOf(events, last.position);
      keep(portion, events.length);
      head = last.position;
      handOut(portion);
    },
    next: async (merchantId, after, upTo, signal) => {
      if (upTo !== null) return after === upTo ? undefined : page(merchantId, after, upTo, signal);
      while (true) {
        signal.throwIfAborted();
        const batch = kept.find(({ before }) => before === after);
        if (batch !== undefined) return batch.portion;
        const end = head;
        if (end === after) return fromHead(merchantId, signal);
        const found = end === null ? undefined : await page(merchantId, after, end, signal);
        if (found !== undefined) return found;
        // Nothing lies between: the subscription has not come to the place.
        if (head === end) await fromHead(merchantId, signal);
      }
    },
  };
};
