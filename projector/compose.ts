import type { RunningHash } from '../audit/seals/running-hash.ts';
import type { EventStore, Position } from '../shared/event-store/port.ts';
import { paymentOf } from '../shared/payment/events.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import type { BackOff } from '../shared/runtime/back-off.ts';
import type { Logger } from '../shared/runtime/log.ts';
import { isTracing } from '../shared/runtime/tracing.ts';
import { StandingBy } from '../shared/subscription/errors.ts';
import { createLag } from '../shared/subscription/lag.ts';
import { keepLease, type Lease } from '../shared/subscription/lease.ts';
import {
  checkBeforeStart,
  rejectMisfit,
  runSubscription,
  type Subscriber,
  type Subscription,
} from '../shared/subscription/subscription.ts';
import { createComparisons } from './comparisons.ts';
import { type Freshness, trackFreshness } from './freshness.ts';
import { createProjection, PARKED_KNOWN_MAX, type Projection } from './projection.ts';
import { createRebuilds, type RebuildRequest, type RebuildResult } from './rebuild.ts';
import { tracedProjection } from './traces.ts';

export type ProjectorOptions = {
  store: EventStore;
  readModels: ReadModels;
  logger: Logger;
  /** Carries the log hash where the store keeps none (ADR-0033). */
  running?: RunningHash | undefined;
  /** Set where this process appends as well, through `freshness.tracked`. */
  freshness?: Freshness;
  backOff?: BackOff;
  watchMs?: number;
  stillMsMax?: number;
  leaseMs?: number;
};

type Following = Pick<ProjectorOptions, 'store' | 'readModels' | 'running' | 'logger'> & {
  lease: Lease;
  projection: Projection;
  freshness: Pick<Freshness, 'caughtUp' | 'lost' | 'isCaughtUp'>;
};

const withHashes =
  ({ next }: RunningHash, { events: apply }: Projection): Subscriber['events'] =>
  async (events) => {
    const { events: linked, taken } = next(events);
    await apply(linked);
    taken();
  };

const subscriberOf = (own: Following): Subscriber => ({
  start: async () => {
    const { running, lease, projection, freshness } = own;
    running?.leave();
    await lease.take();
    lease.lost().addEventListener('abort', freshness.lost);
    const from = await projection.start();
    await rejectMisfit(own, from);
    await running?.follow(from);
    return from;
  },
  until: own.lease.lost,
  events: own.running ? withHashes(own.running, own.projection) : own.projection.events,
  removal: async (stream) => {
    const paymentId = paymentOf(stream);
    if (paymentId !== undefined) return own.projection.removal(paymentId);
    own.logger.error({ stream }, 'a stream of the event log was deleted or cut, or may have been');
  },
  caughtUp: own.freshness.caughtUp,
});

/** Looks every few seconds for a checkpoint that stands still, and for read models that were wiped. */
const watchCheckpoint = (
  { store, readModels, lease, projection, logger }: Following,
  subscription: Subscription,
  { watchMs = 5000, stillMsMax }: ProjectorOptions,
) => {
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
  const timer = setInterval(() => void look().catch(() => undefined), watchMs);
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

type Parts = Following & {
  subscription: Subscription;
  watch: ReturnType<typeof watchCheckpoint>;
  comparisons: ReturnType<typeof createComparisons>;
};

const statusOf = (parts: Parts) => {
  const { lease, projection, subscription, freshness, watch, comparisons } = parts;
  const { state, error, restarts } = subscription.status();
  const { events, healed, parkings } = projection.counts();
  const following = state === 'running' && !freshness.isCaughtUp() ? 'catching-up' : state;
  const own = watch.fallingBehind() ? 'falling-behind' : following;
  return {
    state: lease.standingBy() ? 'standing-by' : own,
    /** This projector's, or the stored one while it stands by. */
    checkpoint: watch.checkpoint(),
    caughtUp: freshness.isCaughtUp(),
    stuck: watch.stuck(),
    parked: watch.parked(),
    differences: comparisons.differences(),
    ...(error === undefined ? {} : { error }),
    /** Since the start. `parkings` counts each time that a payment was parked. */
    counts: { events, healed, parkings, restarts },
  };
};

/** Throws LogMisfit. An engine out of reach is no error: the loop waits for it. */
export const startProjector = async (options: ProjectorOptions) => {
  const { store, readModels, running, logger, backOff, leaseMs } = options;
  await checkBeforeStart(options);
  const wasEmpty = (await readModels.checkpoint().catch(() => null)) === null;

  const { freshness = trackFreshness() } = options;
  const { isCaughtUp } = freshness;
  const plain = createProjection({ store, readModels, logger, freshness });
  const projection = isTracing() ? tracedProjection(plain) : plain;
  const lease = keepLease(readModels, logger, leaseMs);
  const following = { store, readModels, running, logger, lease, projection, freshness };
  const subscriber = subscriberOf(following);
  const subscription = runSubscription({ store, logger, backOff, subscriber });
  const watch = watchCheckpoint(following, subscription, options);
  const rebuilds = createRebuilds({ store, readModels, logger, hold: projection.hold });
  const comparisons = createComparisons(following);
  const rebuild = async (request?: RebuildRequest): Promise<RebuildResult> => {
    const result = await rebuilds.run(request);
    if (result.served) comparisons.forget();
    return result;
  };
  if (!wasEmpty && readModels.compareElsewhere) void comparisons.indexes(rebuild);

  let stopping = false;
  /** Throws StandingBy. */
  const whileFollowing =
    <A extends unknown[], T>(work: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      if (!stopping && !lease.standingBy()) return work(...args);
      throw new StandingBy('another projector follows the log: only that one can do this');
    };

  return {
    /** Resolves at the first catch-up; pending while an engine is out of reach. */
    caughtUp: freshness.firstCaughtUp,
    status: () => statusOf({ ...following, subscription, watch, comparisons }),
    handedOver: lease.handedOver,
    lag: watch.lag,
    isBehind: freshness.isBehind,
    /** Also where the store was emptied and the projector has not noticed yet. */
    isCaughtUp: async (): Promise<boolean> =>
      isCaughtUp() && ((await readModels.isFilled?.().catch(() => false)) ?? true),
    /** True when the document is whole now. */
    retryParked: whileFollowing(projection.retryParked),
    rebuild: whileFollowing(rebuild),
    compareAll: whileFollowing(comparisons.whole),
    /** Not while the read models are being filled: they lack what comes next. */
    compareUnasked: (): void => {
      if (isCaughtUp()) void comparisons.scheduled();
    },
    rebuilds: { latest: rebuilds.latest },
    stop: async (): Promise<void> => {
      stopping = true;
      rebuilds.abort();
      watch.stop();
      const compared = comparisons.stop();
      const released = lease.stop();
      await subscription.stop();
      await rebuilds.ended();
      await compared;
      await released;
    },
  };
};
export type Projector = Awaited<ReturnType<typeof startProjector>>;
export type ProjectorStatus = ReturnType<Projector['status']>;
