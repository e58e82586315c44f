/** How far the read models are behind, by the event store's own head. */
import type { EventStore, Position } from '../shared/event-store/port.ts';

export type Lag = {
  events: number;
  isExact: boolean;
  seconds: number;
  head: Position | null;
  stuck: boolean;
};

type LagOptions = {
  store: Pick<EventStore, 'head'>;
  checkpoint(): Position | null;
  now?(): number;
  stillMsMax?: number | undefined;
};

export const createLag = ({
  store,
  checkpoint,
  now = Date.now,
  stillMsMax = 60_000,
}: LagOptions): (() => Promise<Lag>) => {
  let seen: Position | null | undefined;
  let movedAt = now();

  return async () => {
    const at = checkpoint();
    const { position, eventsAfter, isExact, oldestAfter } = await store.head(at);
    if (at !== seen || eventsAfter === 0) movedAt = now();
    seen = at;
    const ageMs = oldestAfter === null ? 0 : now() - Date.parse(oldestAfter);
    return {
      events: eventsAfter,
      isExact,
      seconds: Math.max(0, ageMs) / 1000,
      head: position,
      stuck: eventsAfter > 0 && now() - movedAt > stillMsMax,
    };
  };
};
