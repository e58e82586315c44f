/**
 * The event-store port in memory, for tests: it keeps the port's promises, and has faults to switch
 * on: damaged events, a store out of reach, a dropped subscription.
 */
import { EventEmitter, once } from 'node:events';
import { GENESIS_HASH } from '../../shared/event-store/chain.ts';
import { type EncodedEvent, encode } from '../../shared/event-store/codec.ts';
import {
  AppendOutcomeUnknown,
  RevisionConflict,
  StoreUnavailable,
  UnreadableStream,
} from '../../shared/event-store/errors.ts';
import type {
  EventStore,
  LogEvent,
  NewEvent,
  RecordedEvent,
  StoredForm,
  SubscriptionItem,
} from '../../shared/event-store/port.ts';

/** The port, and the switches for its faults. */
export type MemoryEventStore = EventStore & {
  /** Puts an event at the end of the log with any revision, which can leave a gap in its stream. */
  inject(stream: string, revision: number, event: NewEvent): RecordedEvent;
  /** Makes a stored event unreadable, or readable again. */
  damage(stream: string, revision: number, reason: string): void;
  mend(stream: string): void;
  /** Each read and each running subscription throws this error from now on; undefined ends that. */
  failWith(error: Error | undefined): void;
  /** Ends the running subscriptions without an error. */
  drop(): void;
  /** While on, subscriptions deliver nothing. */
  hold(on: boolean): void;
  /** The next append is stored, and then throws AppendOutcomeUnknown. */
  loseNextResponse(): void;
  /** Forgets everything after the first `count` events. */
  cut(count: number): void;
  /** How many subscriptions began, and after which position the last one did. */
  subscriptions(): { count: number; after: string | null };
  /** Ends what `close` did, as the next start of the service would: the log is still there. */
  reopen(): void;
};

const positionOf = (index: number): string => String(index + 1).padStart(12, '0');
const indexAfter = (after: string | null): number => (after === null ? 0 : Number(after));

/** `batchMax` is how many events a subscription delivers at once. */
export const memoryEventStore = ({ batchMax = 1000 } = {}): MemoryEventStore => {
  let log: RecordedEvent[] = [];
  const texts = new Map<string, string>();
  const damaged = new Map<string, string>();
  const meta = new Map<string, string>();
  const subscribed: { count: number; after: string | null } = { count: 0, after: null };
  const news = new EventEmitter().setMaxListeners(0);
  let failure: Error | undefined;
  let closed = false;
  let onHold = false;
  let losesNextResponse = false;
  let epoch = 0;

  const changed = (): void => void news.emit('change');
  const throwIfClosed = (): void => {
    if (closed) throw new StoreUnavailable('the event store is closed');
  };
  const throwFailure = (): void => {
    throwIfClosed();
    if (failure !== undefined) throw failure;
  };

  const seen = (event: RecordedEvent): LogEvent => {
    const unreadable = damaged.get(`${event.stream}@${event.revision}`);
    const { stream, revision, position, hash } = event;
    return unreadable === undefined ? event : { stream, revision, position, hash, unreadable };
  };

  const ownOf = (stream: string): RecordedEvent[] => log.filter((one) => one.stream === stream);

  const put = ({ text, recorded }: EncodedEvent): RecordedEvent => {
    const event = { ...recorded, position: positionOf(log.length) };
    log.push(event);
    texts.set(event.position, text);
    return event;
  };

  const append: EventStore['append'] = async (stream, expected, events) => {
    throwIfClosed();
    const encoded = encode(stream, expected, events);
    const stored = ownOf(stream);
    const from = expected === 'none' ? 0 : expected.revision + 1;
    const repeated = stored.slice(from, from + events.length);
    if (events.every(({ id }, n) => id === repeated[n]?.id)) return repeated;
    const last = stored.at(-1);
    const fits =
      expected === 'none'
        ? last === undefined
        : last?.revision === expected.revision && last.hash === expected.hash;
    if (!fits) throw new RevisionConflict(`${stream} does not end there`);
    const recorded = encoded.map(put);
    changed();
    if (losesNextResponse) {
      losesNextResponse = false;
      throw new AppendOutcomeUnknown('the answer was lost');
    }
    return recorded;
  };

  const recordedPage = (after: string | null, limit: number, upTo?: string | null) => {
    throwFailure();
    const from = indexAfter(after);
    const to = upTo === undefined ? log.length : indexAfter(upTo);
    return log.slice(from, Math.min(from + limit, to));
  };
  const page = (...range: Parameters<typeof recordedPage>): LogEvent[] =>
    recordedPage(...range).map(seen);

  /** A damaged event's text is damaged as well. */
  const storedForm = (event: RecordedEvent): StoredForm => {
    const { position, stream, revision, id, hash } = event;
    const isWhole = 'event' in seen(event);
    const text = isWhole ? (texts.get(position) ?? '') : '';
    return { position, stream, revision, id, hash, text };
  };

  async function* subscribe(
    ...[after, signal, types]: Parameters<EventStore['subscribe']>
  ): AsyncGenerator<SubscriptionItem> {
    const isOfTypes = (event: LogEvent): boolean =>
      types === undefined || !('event' in event) || types.includes(event.event.type);
    const epochAtStart = epoch;
    subscribed.count += 1;
    subscribed.after = after;
    let at = after;
    let saidCaughtUp = false;
    while (!signal.aborted && epochAtStart === epoch) {
      // No await between the read and the wait, or a change between them would be missed.
      const events = onHold ? [] : page(at, batchMax);
      const last = events.at(-1);
      if (last !== undefined) {
        at = last.position;
        saidCaughtUp = false;
        const own = events.filter(isOfTypes);
        if (own.length > 0) yield { kind: 'events', events: own };
      } else if (!saidCaughtUp && !onHold) {
        saidCaughtUp = true;
        yield { kind: 'caught-up' };
      } else {
        await once(news, 'change', { signal }).catch(() => undefined);
        if (epochAtStart === epoch) throwFailure();
      }
    }
  }

  return {
    append,
    readAll: async (after, limit, upTo) => page(after, limit, upTo),
    end: async () => {
      throwFailure();
      return log.at(-1)?.position ?? null;
    },
    positionBefore: async (time) => {
      throwFailure();
      return log.findLast((event) => event.time < time)?.position ?? null;
    },
    subscribe,
    readStream: async (stream) => {
      throwFailure();
      const events = ownOf(stream);
      for (const [at, event] of events.entries()) {
        const found = seen(event);
        if ('unreadable' in found)
          throw new UnreadableStream(found.unreadable, events.slice(0, at));
      }
      return events;
    },
    lastRevision: async (stream) => {
      throwFailure();
      return ownOf(stream).at(-1)?.revision ?? null;
    },
    claimMeta: async (key, value) => {
      throwIfClosed();
      const stands = meta.get(key) ?? value;
      meta.set(key, stands);
      return stands;
    },
    positionOf: (text) => {
      const number = /^\d+$/.test(text) ? Number(text) : 0;
      if (number === 0 || !Number.isSafeInteger(number)) throw new RangeError('not a position');
      return positionOf(number - 1);
    },
    hashAt: async (position) => {
      throwFailure();
      const event = log[Number(position) - 1];
      return event === undefined ? null : { hash: event.hash };
    },
    head: async (after) => {
      throwFailure();
      const rest = log.slice(indexAfter(after));
      return {
        position: log.at(-1)?.position ?? null,
        eventsAfter: rest.length,
        isExact: true,
        oldestAfter: rest[0]?.time ?? null,
      };
    },
    stored: {
      guarantee: 'stream',
      readStream: async (stream) => {
        throwFailure();
        return ownOf(stream).map(storedForm);
      },
      readAll: async (after, limit, upTo) => recordedPage(after, limit, upTo).map(storedForm),
    },
    close: async () => {
      closed = true;
      epoch += 1;
      changed();
    },
    reopen: () => {
      closed = false;
    },
    inject: (stream, revision, event) => {
      const hash = ownOf(stream).at(-1)?.hash ?? GENESIS_HASH;
      const [recorded] = encode(stream, { revision: revision - 1, hash }, [event]).map(put);
      changed();
      return recorded as RecordedEvent;
    },
    damage: (stream, revision, reason) => {
      damaged.set(`${stream}@${revision}`, reason);
    },
    mend: (stream) => {
      for (const key of damaged.keys()) if (key.startsWith(`${stream}@`)) damaged.delete(key);
    },
    failWith: (error) => {
      failure = error;
      changed();
    },
    drop: () => {
      epoch += 1;
      changed();
    },
    hold: (on) => {
      onHold = on;
      changed();
    },
    loseNextResponse: () => {
      losesNextResponse = true;
    },
    cut: (count) => {
      log = log.slice(0, count);
    },
    subscriptions: () => ({ ...subscribed }),
  };
};
