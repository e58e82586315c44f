/** The projector as one thing to start, ask and stop: in its own process, or inside another. */
import type { EventStore, Position } from '../shared/event-store/port.ts';
import type { PaymentViews } from '../shared/payment-views/port.ts';
import { type Freshness, trackFreshness } from './freshness.ts';
import { CheckpointBeyondHead, checkpointBeyondHead, createLag, type Lag } from './lag.ts';
import { createProjection, type Projection } from './projection.ts';
import { type Log, runSubscription, type Subscription } from './subscription.ts';

export type ProjectorOptions = {
  store: EventStore;
  views: PaymentViews;
  logger: Log;
  /** Given where this process also appends, through `freshness.store`. */
  freshness?: Freshness;
  backOff?: { minMs: number; maxMs: number };
  /** How often it looks for a checkpoint that stands still and for views wiped while idle. */
  watchMs?: number;
  /** How long the checkpoint may stand still while there are events to apply. */
  stillMsMax?: number;
};

export type ProjectorStatus = {
  state: 'starting' | 'catching-up' | 'running' | 'backing-off' | 'stopped';
  checkpoint: Position | null;
  /** Has caught up since the start, or since the views were last lost. */
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
  /** Reads a parked payment's stream again; true when its document is whole now. */
  retryParked(paymentId: string): Promise<boolean>;
  /** Resolves when the batch in hand is applied. */
  stop(): Promise<void>;
};

const refuseBeyondHead = async (store: EventStore, checkpoint: Position | null): Promise<void> => {
  if (!(await checkpointBeyondHead(store, checkpoint))) return;
  throw new CheckpointBeyondHead(
    `the event log ends before the read models' checkpoint (${checkpoint}): it was cut or restored from an older copy; put the newer log back, or delete the read models to fill them from this one`,
  );
};

/** Refuses at once where log and views are there and do not fit; else the loop finds out. */
const checkBeforeStart = async ({ store, views }: ProjectorOptions): Promise<void> => {
  try {
    await refuseBeyondHead(store, await views.checkpoint());
  } catch (error) {
    if (error instanceof CheckpointBeyondHead) throw error;
  }
};

type Watched = {
  lag(): Promise<Lag>;
  projection: Projection;
  subscription: Subscription;
  logger: Log;
};

/** One look at what the loop itself cannot notice; gives whether the checkpoint is stuck. */
const look = async ({ lag, projection, subscription, logger }: Watched): Promise<boolean> => {
  if (subscription.status().state === 'running' && !(await projection.inStep())) {
    logger.warn({}, 'the views are not where they were left, they are followed up anew');
    subscription.restart();
  }
  const { stuck, events, seconds } = await lag();
  if (stuck) logger.error({ events, seconds }, 'the projection stands still');
  return stuck;
};

/**
 * Starts filling the views from their checkpoint. Throws CheckpointBeyondHead, one line, when the
 * log ends before it. An engine out of reach is no error here: the loop waits for it.
 */
export const startProjector = async (options: ProjectorOptions): Promise<Projector> => {
  const { store, views, logger, backOff, watchMs = 5000, stillMsMax } = options;
  await checkBeforeStart(options);

  const freshness = options.freshness ?? trackFreshness(store);
  const first = Promise.withResolvers<void>();
  let caughtUp = false;
  let stuck = false;
  const projection = createProjection({
    store,
    views,
    logger,
    freshness: {
      ...freshness,
      lost: () => {
        caughtUp = false;
        freshness.lost();
      },
    },
  });

  const subscription = runSubscription({
    store,
    logger,
    ...(backOff === undefined ? {} : { backOff }),
    subscriber: {
      start: async () => {
        const from = await projection.start();
        await refuseBeyondHead(store, from);
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
    checkpoint: projection.checkpoint,
    ...(stillMsMax === undefined ? {} : { stillMsMax }),
  });
  const watch = setInterval(() => {
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
        state: state === 'running' && !caughtUp ? 'catching-up' : state,
        checkpoint: projection.checkpoint(),
        caughtUp,
        stuck,
        parked,
        ...(error === undefined ? {} : { error }),
        counts: { ...counts, restarts },
      };
    },
    lag,
    isBehind: freshness.isBehind,
    retryParked: projection.retryParked,
    stop: async () => {
      clearInterval(watch);
      await subscription.stop();
    },
  };
};
