import type { EventType } from '../../payment/events.ts';
import type { EncodedEvent } from '../codec.ts';

// Appends that stored nothing leave ids behind; the oldest are forgotten first.
const IDS_MAX = 10_000;

type Follower = { ids: Set<string>; types: readonly EventType[] | undefined };

/** The ids of own appends: a subscription to the others' events skips them unparsed (ADR-0068). */
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
