/**
 * The log for many endpoints at once: the latest batches of one subscription in memory, and pages of
 * the store for whoever is behind them. Each endpoint asks for more when it can take more, so a slow
 * one costs no memory.
 */
import type { EventStore, LogEvent, Position } from '../../shared/event-store/port.ts';
import { checkpointHashOf } from '../log-check.ts';
import type { Place } from './delivery.ts';
import type { PaymentFact, PaymentFacts } from './payment-facts.ts';
import type { Permits } from './permits.ts';

/** What follows a place: the facts up to `place`, from where to go on. */
export type Portion = {
  facts: readonly PaymentFact[];
  /** The last event that was read, where there was one. */
  last: Place | undefined;
  /** Where to read on. */
  cursor: Position | null;
};

type Batch = { before: Position | null; portion: Portion; events: number };

export type LogFeed = {
  /** Begins at a place of the subscription. */
  begin(at: Position | null): void;
  /** Where the subscription is; undefined before `begin`. */
  position(): Position | null | undefined;
  /** Takes the next batch of the subscription. Throws StoreUnavailable. */
  add(events: readonly LogEvent[]): Promise<void>;
  /**
   * What follows a place, once there is something of a merchant in it, or some seconds later. With
   * `upTo`, nothing beyond it, and undefined where there is no more up to there. Throws
   * StoreUnavailable, and the signal's reason when it is aborted.
   */
  next(
    merchantId: string,
    after: Position | null,
    upTo: Position | null,
    signal: AbortSignal,
  ): Promise<Portion | undefined>;
};

const PAGE_EVENTS = 500;
/** For so long an endpoint at the head is not woken by events of other merchants. */
const SKIPPED_MS_MAX = 5_000;
const KEPT_EVENTS_MAX = 2_000;

export type LogFeedOptions = {
  store: Pick<EventStore, 'readAll'>;
  facts: PaymentFacts;
  /** How many pages are read at a time. */
  pages: Permits;
};

export const createLogFeed = ({ store, facts, pages }: LogFeedOptions): LogFeed => {
  let at: Position | null | undefined;
  let kept: Batch[] = [];
  /** Endpoints at the head of the log. */
  type Waiter = { merchantId: string; sinceMs: number; take(portion: Portion): void };
  const waiting = new Set<Waiter>();

  const portionOf = async (
    events: readonly LogEvent[],
    cursor: Position | null,
  ): Promise<Portion> => {
    const last = events.at(-1);
    const place = last && { position: last.position, hash: checkpointHashOf(last) };
    return { facts: await facts.of(events), last: place, cursor: place?.position ?? cursor };
  };

  const keep = (batch: Batch): void => {
    kept.push(batch);
    let total = kept.reduce((sum, { events }) => sum + events, 0);
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

  /** Waits at the head. The batches between that have nothing of the merchant need no look. */
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

  const hand = (portion: Portion): void => {
    const merchants = new Set(portion.facts.map(({ merchantId }) => merchantId));
    const nowMs = performance.now();
    for (const waiter of waiting) {
      const { merchantId, sinceMs, take } = waiter;
      if (!merchants.has(merchantId) && nowMs - sinceMs < SKIPPED_MS_MAX) continue;
      waiting.delete(waiter);
      take(portion);
    }
  };

  const next: LogFeed['next'] = async (merchantId, after, upTo, signal) => {
    if (upTo !== null) return after === upTo ? undefined : page(merchantId, after, upTo, signal);
    while (true) {
      signal.throwIfAborted();
      const batch = kept.find(({ before }) => before === after);
      if (batch !== undefined) return batch.portion;
      const head = at;
      if (head === after) return fromHead(merchantId, signal);
      const found =
        head === undefined || head === null
          ? undefined
          : await page(merchantId, after, head, signal);
      if (found !== undefined) return found;
      // Nothing lies between: the subscription has not come to the place.
      if (at === head) await fromHead(merchantId, signal);
    }
  };

  return {
    begin: (position) => {
      at = position;
      kept = [];
    },
    position: () => at,
    add: async (events) => {
      const last = events.at(-1);
      if (last === undefined) return;
      const portion = await portionOf(events, last.position);
      keep({ before: at ?? null, portion, events: events.length });
      at = last.position;
      hand(portion);
    },
    next,
  };
};
