/** What the catch-up loop itself cannot notice: read models wiped while idle, and a checkpoint that stands still. */
import type { Lag } from './lag.ts';
import type { Projection } from './projection.ts';
import type { Log, Subscription } from './subscription.ts';

export type Watched = {
  lag(): Promise<Lag>;
  projection: Projection;
  subscription: Subscription;
  logger: Log;
};

/** One look; gives whether the checkpoint is stuck. Throws what the engines throw. */
export const look = async ({
  lag,
  projection,
  subscription,
  logger,
}: Watched): Promise<boolean> => {
  if (subscription.status().state === 'running' && !(await projection.inStep())) {
    logger.warn(
      {},
      'read models wiped or moved by another writer: they are filled again from their checkpoint',
    );
    subscription.restart();
  }
  const { stuck, events, seconds } = await lag();
  if (stuck)
    logger.error(
      { events, seconds },
      'projection stuck: the log grows and the checkpoint does not move',
    );
  return stuck;
};
