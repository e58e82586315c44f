/** How far a follower is behind the store's head, and whether its checkpoint stands still. */
import type { EventStore, Position } from '../event-store/port.ts';

/** Of the oldest missing event; less is the usual lag. */
const AGE_MS_MAX = 30_000;

export const createLag = (
  store: Pick<EventStore, 'head'>,
  checkpoint: () => Position | null,
  { stillMsMax = 60_000, now = Date.now }: { stillMsMax?: number | undefined; now?(): number } = {},
) => {
  let seen: Position | null | undefined;
  let movedAt = now();
  let closest = { ageMs: 0, at: now() };

  return async () => {
    const at = checkpoint();
    const { position, eventsAfter, isExact, oldestAfter } = await store.head(at);
    if (at !== seen || eventsAfter === 0) movedAt = now();
    seen = at;
    const ageMs = oldestAfter === null ? 0 : now() - Date.parse(oldestAfter);
    const grownMs = ageMs - closest.ageMs;
    // It grows faster than the clock where the read models were lost: their filling is progress.
    const areLost = grownMs > now() - closest.at + AGE_MS_MAX;
    if (grownMs < 0 || ageMs < AGE_MS_MAX || areLost) closest = { ageMs, at: now() };
    return {
      events: eventsAfter,
      isExact,
      seconds: Math.max(0, ageMs) / 1000,
      head: position,
      stuck: eventsAfter > 0 && now() - movedAt > stillMsMax,
      /** For so long the oldest missing event has only grown older: less is applied than is written. */
      fallingBehind: now() - closest.at > stillMsMax,
    };
  };
};

export type Lag = Awaited<ReturnType<ReturnType<typeof createLag>>>;
