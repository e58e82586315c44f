/** Looks every few seconds for a checkpoint that stands still, and for read models that were wiped. */
import type { EventStore, Position } from '../shared/event-store/port.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import type { Logger } from '../shared/runtime/log.ts';
import { createLag } from '../shared/subscription/lag.ts';
import type { Lease } from '../shared/subscription/lease.ts';
import type { Subscription } from '../shared/subscription/subscription.ts';
import { PARKED_KNOWN_MAX, type Projection } from './projection.ts';

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
