/**
 * The log as a thread beside its writer follows it: read over a connection of its own, up to where the
 * writer has said that it may. What was committed a moment ago is not read before the writer knows of
 * it, so that who gets a message finds at least that much in this service.
 */
import { ofTypes } from '../../shared/event-store/of-types.ts';
import type {
  EventStore,
  LogReader,
  Position,
  SubscriptionItem,
} from '../../shared/event-store/port.ts';

const PAGE_EVENTS = 500;

/** A log that grows when `grow` is called. */
export type FollowedLog = Pick<EventStore, 'end' | 'subscribe'> & {
  /** The log may be read up to here now. */
  grow(end: Position | null): void;
};

/** Follows a log that may be read up to `end`. `subscribe` throws what `readAll` throws. */
export const followLog = (log: Pick<LogReader, 'readAll'>, end: Position | null): FollowedLog => {
  const waiting = new Set<(_: unknown) => void>();
  const wakeAll = (): void => {
    for (const wake of waiting) wake(undefined);
  };

  const grown = async (signal: AbortSignal): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    signal.addEventListener('abort', resolve, { once: true });
    waiting.add(resolve);
    if (!signal.aborted) await promise;
    waiting.delete(resolve);
    signal.removeEventListener('abort', resolve);
  };

  async function* followed(
    after: Position | null,
    signal: AbortSignal,
  ): AsyncGenerator<SubscriptionItem> {
    let at = after;
    let saidCaughtUp = false;
    while (!signal.aborted) {
      const events = at === end ? [] : await log.readAll(at, PAGE_EVENTS, end);
      if (signal.aborted) return;
      const last = events.at(-1);
      if (last !== undefined) {
        yield { kind: 'events', events };
        at = last.position;
        saidCaughtUp = false;
      } else if (!saidCaughtUp) {
        yield { kind: 'caught-up' };
        saidCaughtUp = true;
      } else await grown(signal);
    }
  }

  return {
    end: async () => end,
    subscribe: (after, signal, types) => ofTypes(followed(after, signal), types),
    grow: (position) => {
      if (position === end) return;
      end = position;
      wakeAll();
    },
  };
};
