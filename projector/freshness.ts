/**
 * Knows which payments have events that their document lacks (gaps §9). Exact where all appends go through
 * `tracked`; with several processes GET compares revisions (query-api/get-payment.ts).
 */
import { AppendOutcomeUnknown } from '../shared/event-store/errors.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { paymentOf } from '../shared/payment/events.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';

/** `appending` counts appends under way; the others are revisions, -1 for none. */
type Tracked = { appending: number; committed: number; applied: number };

/** Some 20 MB. */
const TRACKED_MAX = 100_000;

/** Every payment is behind until `caughtUp`. */
export const trackFreshness = (trackedMax = TRACKED_MAX) => {
  /** The payments behind their last event, and those with an append under way. */
  const tracked = new Map<string, Tracked>();
  const first = Promise.withResolvers<void>();
  let committedAtStart: [paymentId: string, revision: number][] = [];
  let ready = false;

  const leaveWhenDone = (paymentId: string, entry: Tracked): void => {
    if (entry.appending === 0 && entry.applied >= entry.committed) tracked.delete(paymentId);
  };

  const applied = (paymentId: string, revision: number): void => {
    // The subscription can deliver an event before its append resolves, hence `applied` is kept.
    const entry = tracked.get(paymentId);
    if (entry === undefined) return;
    entry.applied = Math.max(entry.applied, revision);
    leaveWhenDone(paymentId, entry);
  };

  return {
    tracked: (store: EventStore): EventStore => ({
      ...store,
      append: async (stream, expected, events) => {
        const paymentId = paymentOf(stream);
        if (paymentId === undefined) return store.append(stream, expected, events);
        if (tracked.size >= trackedMax) {
          // All payments count as behind until the log has been followed to its end again.
          ready = false;
          for (const [id, { appending }] of tracked) if (appending === 0) tracked.delete(id);
        }
        const entry = tracked.get(paymentId) ?? { appending: 0, committed: -1, applied: -1 };
        tracked.set(paymentId, entry);
        entry.appending += 1;
        const last = (expected === 'none' ? -1 : expected.revision) + events.length;
        const commit = (): void => {
          entry.committed = Math.max(entry.committed, last);
        };
        try {
          const recorded = await store.append(stream, expected, events);
          commit();
          return recorded;
        } catch (error) {
          // The events may be stored: the payment counts as behind until it is known.
          if (error instanceof AppendOutcomeUnknown) commit();
          throw error;
        } finally {
          entry.appending -= 1;
          leaveWhenDone(paymentId, entry);
        }
      },
    }),
    applied,
    /**
     * The projector is about to follow the log from its checkpoint. A batch whose apply was stored but not
     * acknowledged is not delivered again, and an append of unknown outcome may never be delivered: after
     * `caughtUp`, no event from before is still to come.
     */
    starting: (): void => {
      committedAtStart = [...tracked].map(([id, { committed }]) => [id, committed]);
    },
    /** Everything that was in the log at `starting` has been applied. */
    caughtUp: (): void => {
      ready = true;
      first.resolve();
      for (const [paymentId, revision] of committedAtStart) applied(paymentId, revision);
      committedAtStart = [];
    },
    /** The documents went back: everything is behind until the next `caughtUp`. */
    lost: (): void => {
      ready = false;
    },
    /** To be called before the document is read: later, false may be about a newer document. */
    isBehind: (paymentId: string): boolean => {
      const entry = tracked.get(paymentId);
      return !ready || (entry !== undefined && entry.committed > entry.applied);
    },
    /** False at once before the documents have caught up: GET folds streams then. */
    waitIn:
      ({ waitForRevision }: Pick<ReadModelsReader, 'waitForRevision'>) =>
      async (...request: Parameters<typeof waitForRevision>): Promise<boolean> =>
        ready && waitForRevision(...request),
    isCaughtUp: () => ready,
    firstCaughtUp: first.promise,
    size: () => tracked.size,
  };
};
export type Freshness = ReturnType<typeof trackFreshness>;
