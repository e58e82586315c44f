/** Checks that a log still holds the events that were followed up to a checkpoint. */
import type { EventStore, HashesAt, LogEvent, Position } from '../shared/event-store/port.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { LogMisfit } from './errors.ts';

type Misfit = 'ends before' | 'has other events up to';

/** Over the whole log up to the event, where the store keeps that; null for an unreadable event. */
export const checkpointHashOf = (event: LogEvent): string | null => {
  if (event.logHash !== undefined) return event.logHash;
  return 'unreadable' in event ? null : event.hash;
};

/** Earlier versions kept the hash of the event alone. */
const fits = (at: HashesAt | null, hash: string): boolean =>
  at !== null && (at.logHash === hash || at.hash === hash);

/** Where the log hash is carried and not stored; undefined where no event is there. */
type LogHashAt = (position: Position) => Promise<string | undefined>;

/** Undefined: it fits; else followed events are lost or written anew. Throws StoreUnavailable. */
export const misfitOf = async (
  store: Pick<EventStore, 'end' | 'readAll' | 'hashAt'>,
  checkpoint: Position | null,
  hash: string | null,
  carried?: LogHashAt,
): Promise<Misfit | undefined> => {
  if (checkpoint === null) return undefined;
  const end = await store.end();
  const isBefore = end !== checkpoint && (await store.readAll(checkpoint, 1, end)).length === 0;
  if (isBefore) return 'ends before';
  if (hash === null) return undefined;
  const at = await store.hashAt(checkpoint);
  if (fits(at, hash) || (at !== null && (await carried?.(checkpoint)) === hash)) return undefined;
  return 'has other events up to';
};

type Engines = {
  store: EventStore;
  readModels: Pick<ReadModels, 'checkpoint' | 'checkpointHash'>;
  /** Left out where the store keeps the log hashes itself, or nothing is sealed. */
  running?: { logHashAt: LogHashAt } | undefined;
};

/** Throws LogMisfit where the log does not fit the read models' checkpoint, and what the engines throw. */
export const rejectMisfit = async (
  { store, readModels, running }: Engines,
  checkpoint: Position | null,
): Promise<void> => {
  const hash = checkpoint === null ? null : await readModels.checkpointHash(checkpoint);
  const misfit = await misfitOf(store, checkpoint, hash, running?.logHashAt);
  if (misfit === undefined) return;
  throw new LogMisfit(
    `the event log ${misfit} the read models' checkpoint (${checkpoint}): it was changed, cut, or restored from another copy; put the right log back, or, where this log is the right one, delete the read models, and no other file or collection, to fill them from it`,
  );
};

/** An engine out of reach is no error: the catch-up loop checks again. Throws LogMisfit. */
export const checkBeforeStart = async (engines: Engines): Promise<void> => {
  try {
    await rejectMisfit(engines, await engines.readModels.checkpoint());
  } catch (error) {
    if (error instanceof LogMisfit) throw error;
  }
};
