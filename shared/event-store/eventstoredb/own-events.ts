/**
 * The ids of the events that this process appends, for a subscription that needs those of others
 * alone: it knows its own without parsing them (ADR-0068).
 */
import type { EventType } from '../../payment/events.ts';
import type { EncodedEvent } from '../codec.ts';

// Appends that stored nothing leave their ids behind; the oldest are forgotten first.
const IDS_MAX = 10_000;

type Follower = { ids: Set<string>; types: readonly EventType[] | undefined };

/** What `subscribe` and `append` share. */
export function createOwnEvents() {
  const followers = new Set<Follower>();

  return {
    /** Before an append is sent: its events may come back before its response does. */
    note(encoded: readonly EncodedEvent[]): void {
      for (const { ids, types } of followers) {
        for (const { recorded } of encoded) {
          if (types?.includes(recorded.event.type) ?? true) ids.add(recorded.id);
        }
        for (const id of ids) {
          if (ids.size <= IDS_MAX) break;
          ids.delete(id);
        }
      }
    },
    /** Until the signal is aborted: whether an id is of an own event, true once for each. */
    follow(types: readonly EventType[] | undefined, signal: AbortSignal): (id: string) => boolean {
      const follower: Follower = { ids: new Set(), types };
      if (!signal.aborted) {
        followers.add(follower);
        signal.addEventListener('abort', () => followers.delete(follower), { once: true });
      }
      return (id) => follower.ids.delete(id);
    },
  };
}
