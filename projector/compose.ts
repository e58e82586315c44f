/** The projector as one thing to start, ask and stop: in its own process, or inside another. */
import type { EventStore, Position } from '../shared/event-store/port.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import type { BackOff } from '../shared/runtime/back-off.ts';
import { StandingBy } from './errors.ts';
import { type Freshness, trackFreshness } from './freshness.ts';
import { createLag, type Lag } from './lag.ts';
import { keepLease } from './lease.ts';
import { checkBeforeStart, rejectMisfit } from './log-check.ts';
import { createProjection } from './projection.ts';
import { type RebuildProgress, type RebuildResult, rebuild } from './rebuild.ts';
import { createRebuilds, type Rebuilds } from './rebuilds.ts';
import { type Log, runSubscription, type SubscriptionState } from './subscription.ts';
import { look } from './watch.ts';

export type ProjectorOptions = {
  store: EventStore;
  readModels: ReadModels;
  logger: Log;
  /** Given where this process also appends, through `freshness.store`. */
  freshness?: Freshness;
  backOff?: BackOff;
  /** How often it looks for a checkpoint that stands still and for read models wiped while idle. */
  watchMs?: number;
  /** How long the checkpoint may stand still while there are events to apply. */
  stillMsMax?: number;
  /** After how long of silence another projector takes over. */
  leaseMs?: number;
};

export type ProjectorStatus = {
  /** `standing-by`: another projector follows the log. */
  state: 'starting' | 'catching-up' | 'running' | 'backing-off' | 'standing-by' | 'stopped';
  /** Its own, or the stored one as last seen while it stands by. */
  checkpoint: Position | null;
  /** Has caught up since the start, or since the read models were last lost. */
  caughtUp: boolean;
  /** The head moved away and the checkpoint did not follow, as the last look found it. */
  stuck: boolean;
  /** Payments parked now. */
  parked: number;
  /** Why it is backing off. */
  error?: string;
  /** Since the start, for metrics to read. */
  counts: { events: number; healed: number; parkings: number; restarts: number };
};

export type Projector = {
  /** Resolves at the first catch-up; stays open while an engine is out of reach. */
  caughtUp: Promise<void>;
  status(): ProjectorStatus;
  /** Measured now, against the store's own head. Throws StoreUnavailable. */
  lag(): Promise<Lag>;
  /** See Freshness: ask before reading the document. */
  isBehind(paymentId: string): boolean;
  /** Reads a parked payment's stream again; true when its document is whole now. Throws StandingBy. */
  retryParked(paymentId: string): Promise<boolean>;
  /**
   * Fills new read models beside the served ones and switches to them. Throws StandingBy, and what
   * `rebuild` throws.
   */
  rebuild(onProgress?: (progress: RebuildProgress) => void): Promise<RebuildResult>;
  /** What is known of this process's rebuilds. */
  rebuilds: Pick<Rebuilds, 'latest'>;
  /** Resolves when the batch in hand is applied. */
  stop(): Promise<void>;
};

const standingBy = () => new StandingBy('another projector follows the log, ask it');

const stateOf = (
  state: SubscriptionState,
  caughtUp: boolean,
  standingBy: boolean,
): ProjectorStatus['state'] => {
  if (standingBy) return 'standing-by';
  return state === 'running' && !caughtUp ? 'catching-up' : state;
};

/**
 * Starts filling the read models from their checkpoint. Throws LogMisfit when the log is not the one that
 * they were filled from. An engine out of reach is no error here: the loop waits for it.
 */
export const startProjector = async (options: ProjectorOptions): Promise<Projector> => {
  const { store, readModels, logger, backOff, watchMs = 5000, stillMsMax, leaseMs } = options;
  await checkBeforeStart(options);

  const freshness = options.freshness ?? trackFreshness(store);
  const first = Promise.withResolvers<void>();
  let caughtUp = false;
  let stuck = false;
  const projection = createProjection({
    store,
    readModels,
    logger,
    freshness: {
      ...freshness,
      lost: () => {
        caughtUp = false;
        freshness.lost();
      },
    },
  });

  const lease = keepLease({
    readModels,
    logger,
    ...(leaseMs === undefined ? {} : { ttlMs: leaseMs }),
    onLost: () => {
      caughtUp = false;
      subscription.restart();
    },
  });
  const stopping = new AbortController();
  const rebuilds = createRebuilds();
  let rebuilding: Promise<unknown> = Promise.resolve();
  /** Where the projector that has the lease has come to. */
  let theirs: Position | null = null;
  const checkpoint = () => (lease.standingBy() ? theirs : projection.checkpoint());

  const subscription = runSubscription({
    store,
    logger,
    ...(backOff === undefined ? {} : { backOff }),
    subscriber: {
      start: async () => {
        await lease.take();
        const from = await projection.start();
        await rejectMisfit(options, from);
        return from;
      },
      events: projection.events,
      caughtUp: () => {
        caughtUp = true;
        freshness.caughtUp();
        first.resolve();
      },
    },
  });

  const lag = createLag({
    store,
    checkpoint,
    ...(stillMsMax === undefined ? {} : { stillMsMax }),
  });
  const watch = setInterval(async () => {
    if (lease.standingBy()) theirs = await readModels.checkpoint().catch(() => theirs);
    look({ lag, projection, subscription, logger }).then(
      (found) => {
        stuck = found;
      },
      // An engine out of reach; the loop says so itself.
      () => undefined,
    );
  }, watchMs);
  watch.unref();

  return {
    caughtUp: first.promise,
    status: () => {
      const { state, error, restarts } = subscription.status();
      const { parked, ...counts } = projection.counts();
      return {
        state: stateOf(state, caughtUp, lease.standingBy()),
        checkpoint: checkpoint(),
        caughtUp,
        stuck,
        parked,
        ...(error === undefined ? {} : { error }),
        counts: { ...counts, restarts },
      };
    },
    lag,
    isBehind: freshness.isBehind,
    retryParked: async (paymentId) => {
      if (lease.standingBy()) throw standingBy();
      return projection.retryParked(paymentId);
    },
    rebuild: async (onProgress) => {
      if (lease.standingBy()) throw standingBy();
      const { hold } = projection;
      const { signal } = stopping;
      const result = rebuilds.follow((report) => {
        const both = (progress: RebuildProgress): void => {
          report(progress);
          onProgress?.(progress);
        };
        return rebuild({ store, readModels, logger, hold, signal, onProgress: both });
      });
      rebuilding = Promise.allSettled([rebuilding, result]);
      return result;
    },
    rebuilds,
    stop: async () => {
      stopping.abort();
      clearInterval(watch);
      const released = lease.stop();
      await subscription.stop();
      await rebuilding;
      await released;
    },
  };
};
