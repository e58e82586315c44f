/** Whether a log still holds the events that were followed up to a checkpoint, or is another log. */
import type { EventStore, Position } from '../shared/event-store/port.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { LogMisfit } from './errors.ts';

/** How a log differs from the one that was followed up to a checkpoint. */
export type Misfit = 'ends before' | 'has another event at';

/**
 * How the log misfits a checkpoint, or undefined where it fits. `hash` is that of the event at the
 * checkpoint, null where it is not known. A log that ends before the checkpoint, or has another event
 * there, has lost events that were applied or sent. Throws StoreUnavailable.
 */
export const misfitOf = async (
  store: Pick<EventStore, 'head' | 'hashAt'>,
  checkpoint: Position | null,
  hash: string | null,
): Promise<Misfit | undefined> => {
  if (checkpoint === null) return undefined;
  const { position, eventsAfter } = await store.head(checkpoint);
  if (eventsAfter === 0 && position !== checkpoint) return 'ends before';
  // seeded bug: same-log
  if (hash === null || (await store.hashAt(checkpoint)) === hash) return undefined;
  return 'has another event at';
};

type Engines = { store: EventStore; readModels: Pick<ReadModels, 'checkpoint' | 'checkpointHash'> };

/** Throws LogMisfit where the log does not fit the read models' checkpoint, and what the engines throw. */
export const rejectMisfit = async (
  { store, readModels }: Engines,
  checkpoint: Position | null,
): Promise<void> => {
  const hash = checkpoint === null ? null : await readModels.checkpointHash(checkpoint);
  const misfit = await misfitOf(store, checkpoint, hash);
  if (misfit === undefined) return;
  throw new LogMisfit(
    `the event log ${misfit} the read models' checkpoint (${checkpoint}): it was cut, or restored from another copy; put the right log back, or delete the read models to fill them from this one`,
  );
};

/**
 * Throws LogMisfit before the start where the log does not fit the read models. An engine out of reach
 * is no error: the catch-up loop checks again once the engine is back.
 */
export const checkBeforeStart = async (engines: Engines): Promise<void> => {
  try {
    await rejectMisfit(engines, await engines.readModels.checkpoint());
  } catch (error) {
    if (error instanceof LogMisfit) throw error;
  }
};
