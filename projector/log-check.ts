/** Whether the log is still the one that was followed up to a checkpoint, or another one. */
import type { EventStore, Position } from '../shared/event-store/port.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { LogMisfit } from './errors.ts';

/** How a log shows that it is not the one that was followed up to a checkpoint. */
export type Misfit = 'ends before' | 'has another event at';

/**
 * The misfit, or undefined: whoever followed the log up to here has seen events that no longer
 * exist when it ends before the checkpoint, or when the event there is not that of `hash` (null
 * where it is not known).
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

/** Throws LogMisfit where the log does not fit the read models' checkpoint. */
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
 * Throws LogMisfit at once where log and read models are there and do not fit. Where one of them is
 * out of reach the loop finds out.
 */
export const checkBeforeStart = async (engines: Engines): Promise<void> => {
  try {
    await rejectMisfit(engines, await engines.readModels.checkpoint());
  } catch (error) {
    if (error instanceof LogMisfit) throw error;
  }
};
