/**
 * Read models filled anew from the log, beside those that are served, which go on being read and
 * followed. The last step compares both at one checkpoint and switches at once. Topics have their
 * own way through the log: a rebuild publishes nothing.
 */
import type { EventStore, Position } from '../shared/event-store/port.ts';
import type {
  NextGeneration,
  ReadModelsChecksum,
  ReadModelsRebuild,
  ReadModelsWriter,
} from '../shared/read-models/port.ts';
import { RebuildImpossible } from './errors.ts';
import { createProjection, type Projection } from './projection.ts';
import type { Log } from './subscription.ts';

const BATCH = 250;

export type RebuildProgress = {
  /** Events that are in the new read models, and those in the log. */
  done: number;
  total: number;
  perSecond: number;
  secondsLeft: number;
};

export type RebuildResult = {
  events: number;
  seconds: number;
  checkpoint: Position | null;
  /** Both at this checkpoint. Where they differ the new one is right, and is the one served. */
  old: ReadModelsChecksum;
  new: ReadModelsChecksum;
  equal: boolean;
};

export type RebuildOptions = {
  store: Pick<EventStore, 'readAll' | 'readStream' | 'head'>;
  readModels: Pick<ReadModelsWriter, 'checkpoint'> & ReadModelsRebuild;
  logger: Log;
  /** Runs a step while nothing is applied to the served read models. */
  hold<T>(step: () => Promise<T>): Promise<T>;
  /** Called after every batch. */
  onProgress?(progress: RebuildProgress): void;
  signal?: AbortSignal;
};

/** Events after the new checkpoint, none of them beyond the served one: at last they are equal. */
const nextEvents = async (
  { store }: RebuildOptions,
  from: Position | null,
  until: Position | null,
) => {
  if (from === until) return [];
  const events = await store.readAll(from, BATCH);
  if (events.length === 0)
    throw new RebuildImpossible('the log ends before the checkpoint of the read models');
  const last = events.findIndex(({ position }) => position === until);
  return last === -1 ? events : events.slice(0, last + 1);
};

/**
 * Fills until no more than `left` events are missing to the served checkpoint. It moves meanwhile,
 * perhaps as fast as we do: only while it is held can it be reached for certain.
 */
const fill = async (
  options: RebuildOptions,
  projection: Projection,
  report: () => void,
  left: number,
) => {
  for (;;) {
    options.signal?.throwIfAborted();
    const until = await options.readModels.checkpoint();
    const events = await nextEvents(options, projection.checkpoint(), until);
    if (events.length > 0) await projection.events(events);
    report();
    if (events.length <= left) return;
  }
};

const reporter = ({ onProgress }: RebuildOptions, projection: Projection, total: number) => {
  const began = performance.now();
  const seconds = (): number => (performance.now() - began) / 1000;
  return {
    seconds,
    report: (): void => {
      const done = projection.counts().events;
      const perSecond = done / Math.max(seconds(), 0.001);
      // The log grows meanwhile.
      const left = Math.max(0, total - done);
      onProgress?.({
        done,
        total: Math.max(total, done),
        perSecond,
        secondsLeft: left / perSecond,
      });
    },
  };
};

const fillAndServe = async (
  options: RebuildOptions,
  next: NextGeneration,
): Promise<RebuildResult> => {
  const { store, readModels, logger, hold } = options;
  const freshness = { applied: () => {}, starting: () => {}, lost: () => {} };
  const projection = createProjection({ store, readModels: next, freshness, logger });
  await projection.start();
  const { eventsAfter } = await store.head(null);
  const { report, seconds } = reporter(options, projection, eventsAfter);
  await fill(options, projection, report, BATCH - 1);
  return hold(async () => {
    await fill(options, projection, report, 0);
    const [before, after] = [await readModels.checksum(), await next.checksum()];
    options.signal?.throwIfAborted();
    await next.serve();
    return {
      events: projection.counts().events,
      seconds: seconds(),
      checkpoint: projection.checkpoint(),
      old: before,
      new: after,
      equal: before.hash === after.hash && before.documents === after.documents,
    };
  });
};

/**
 * Rebuilds the read models. Throws RebuildRunning while another rebuild is under way,
 * RebuildImpossible, what the engines throw, and the signal's reason; the old ones are served then.
 */
export const rebuild = async (options: RebuildOptions): Promise<RebuildResult> => {
  const next = await options.readModels.openGeneration();
  try {
    return await fillAndServe(options, next);
  } finally {
    // What cannot be removed now is at the next rebuild.
    await next.end().catch(() => undefined);
  }
};
