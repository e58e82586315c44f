/** How far the read models are behind the store's head, and the look for a checkpoint that stands still. */

import { PARKED_KNOWN_MAX, type Projection } from '../../projector/projection.ts';
import type { EventStore, Position } from '../event-store/port.ts';
import type { ReadModels } from '../read-models/port.ts';
import type { Logger } from '../runtime/log.ts';
import type { Lease } from './lease.ts';
import type { Subscription } from './subscription.ts';

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

export const watchCheckpoint = (options: {
  store: Pick<EventStore, 'head'>;
  readModels: Pick<ReadModels, 'checkpoint' | 'parked'>;
  lease: Pick<Lease, 'standingBy'>;
  projection: Pick<Projection, 'inStep' | 'checkpoint' | 'counts'>;
  subscription: Pick<Subscription, 'status' | 'restart'>;
  logger: Logger;
  everyMs: number;
  stillMsMax: number | undefined;
}) => {
  const { store, readModels, lease, projection, subscription, logger, stillMsMax } = options;
  let last = { stuck: false, fallingBehind: false };
  /** Stored by the projector that has the lease, as last seen. */
  let followed: { checkpoint: Position | null; parked: number } = { checkpoint: null, parked: 0 };

  const checkpoint = (): Position | null =>
    lease.standingBy() ? followed.checkpoint : projection.checkpoint();
  const lag = createLag(store, checkpoint, { stillMsMax });

  const follow = async (): Promise<void> => {
    const parked = await readModels.parked(PARKED_KNOWN_MAX);
    followed = { checkpoint: await readModels.checkpoint(), parked: parked.length };
  };

  const restartIfOutOfStep = async (): Promise<void> => {
    if (subscription.status().state !== 'running' || (await projection.inStep())) return;
    logger.warn(
      {},
      'read models wiped or moved by another writer: they are filled again from their checkpoint',
    );
    subscription.restart();
  };

  const look = async (): Promise<void> => {
    if (lease.standingBy()) await follow().catch(() => undefined);
    await restartIfOutOfStep();
    const { events, seconds, ...found } = await lag();
    last = found;
    if (!last.stuck) return;
    logger.error(
      { events, seconds },
      'projection stuck: the log grows and the checkpoint does not move',
    );
  };
  // An engine out of reach ends a look; the catch-up loop reports the engine.
  const timer = setInterval(() => void look().catch(() => undefined), options.everyMs);
  timer.unref();

  return {
    checkpoint,
    parked: () => (lease.standingBy() ? followed.parked : projection.counts().parked),
    lag,
    stuck: (): boolean => last.stuck,
    fallingBehind: (): boolean => last.fallingBehind,
    stop: () => clearInterval(timer),
  };
};
