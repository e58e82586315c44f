/** The projector's side: sealer, projector, relay, deliverer, scheduled verification, and their routes. */
import type { FastifyInstance } from 'fastify';
import type { AuditDeps } from '../audit/deps.ts';
import { openSealer } from '../audit/seals/open.ts';
import type { Sealer } from '../audit/seals/sealer.ts';
import { openVerification } from '../audit/verification-schedule.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { positionAsNumber } from '../shared/event-store/scan-log.ts';
import type { AuthHooks } from '../shared/http/auth/hooks.ts';
import type { EngineState } from '../shared/http/server/health.ts';
import type { OpenText } from '../shared/payment/state.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import type { Config } from '../shared/runtime/config.ts';
import type { NewThread } from '../shared/runtime/jobs.ts';
import type { Log } from '../shared/runtime/log.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import { noFiles } from '../shared/runtime/process-life.ts';
import { TOPIC_PREFIX_DEFAULT } from '../shared/runtime/settings/table.ts';
import { openRelay } from '../topics/relay.ts';
import { relayState, watchRelayMetrics } from '../topics/status.ts';
import { openDeliverer } from '../webhooks/delivery/open.ts';
import { openWebhookSecret } from '../webhooks/signer.ts';
import type { DeliveryStore } from '../webhooks/store/port.ts';
import { type Projector, startProjector } from './compose.ts';
import type { Freshness } from './freshness.ts';
import { registerProjectorApi } from './routes.ts';

const projectionState = async (projector: Pick<Projector, 'status' | 'isCaughtUp'>) => {
  const { state, parked, stuck, error } = projector.status();
  return {
    state: stuck ? 'stuck' : state,
    caughtUp: await projector.isCaughtUp(),
    parked,
    ...(error === undefined ? {} : { reason: error }),
  };
};

/** Where `lag` throws StoreUnavailable, the older values stay. */
export const watchProjectionMetrics = (metrics: Metrics, projector: Projector): void => {
  metrics.beforeScrape(async () => {
    const { checkpoint, parked, differences } = projector.status();
    metrics.readModelDifferences.set(differences);
    metrics.projectionPosition.set({ projection: 'payments' }, positionAsNumber(checkpoint));
    metrics.parked.set(parked);
    const { done = 0, total = 0 } = projector.rebuilds.latest() ?? {};
    metrics.rebuildRatio.set(total === 0 ? 0 : done / total);
    const { events, seconds, head } = await projector.lag();
    metrics.headPosition.set(positionAsNumber(head));
    metrics.projectionLagEvents.set(events);
    metrics.projectionLagSeconds.set(seconds);
  });
};

const watchSealMetrics = (metrics: Metrics, sealer: Sealer, { seals }: Config): void => {
  metrics.sealIntervalSeconds.set(seals.everyMs / 1000);
  metrics.beforeScrape(async () => {
    const { sealSeconds, headSeconds } = await sealer.overdue();
    metrics.sealWaitingSeconds.set(sealSeconds);
    metrics.headUnkeptSeconds.set(headSeconds);
  });
};

/** Throws LogMisfit where the log is not the one that was sealed or applied, and what files throw. */
export const openProjectorSide = async (options: {
  config: Config;
  store: EventStore;
  readModels: ReadModels;
  freshness?: Freshness;
  deliveries: DeliveryStore;
  /** Called once the log is known to be the one that was sealed and applied. */
  webhookSecret(): Promise<string>;
  fileOf?: (name: string) => string;
  newThread: NewThread;
  openText: OpenText;
  verifyKeys: AuditDeps['verifyKeys'];
  metrics: Metrics;
  log: Log;
}) => {
  const { config, store, readModels, deliveries, metrics, log } = options;
  const files = { config, fileOf: options.fileOf ?? noFiles };
  const sealer = await openSealer({ config, store, fileOf: options.fileOf, log });
  const { running, publicKey: sealingKey, keptHeads } = sealer;
  const projector = await startProjector({ ...options, logger: log, running });
  const webhookSecret = await openWebhookSecret(store, await options.webhookSecret());
  const mayRun = (): boolean => projector.status().state !== 'standing-by';
  const following = { store, mayRun, metrics, logger: log };
  const relay = await openRelay({ ...following, ...files });
  const webhooks = { ...following, secret: webhookSecret, leader: projector };
  const deliverer = await openDeliverer({ ...options, ...webhooks });
  const sealed = { readModels, sealingKey, keptHeads, compare: projector.compareUnasked };
  const { verifyKeys } = options;
  const verification = await openVerification({ ...following, ...files, ...sealed, verifyKeys });
  watchProjectionMetrics(metrics, projector);
  watchRelayMetrics(metrics, relay);
  watchSealMetrics(metrics, sealer, config);

  return {
    projector,
    webhookSecret,
    verification,
    sealer,
    states: async () => {
      const { state, error: reason } = deliverer.status();
      const webhooks: EngineState = { state, ...(reason !== undefined && { reason }) };
      return { projection: await projectionState(projector), relay: relayState(relay), webhooks };
    },
    register: (app: FastifyInstance, authHooks: AuthHooks): void => {
      const { topicPrefix = TOPIC_PREFIX_DEFAULT } = config.kafka ?? {};
      const over = { store, readModels, projector, relay, topicPrefix, verification, sealer };
      registerProjectorApi(app, authHooks, { ...over, sign: sealer.signManifest });
    },
    stop: async (): Promise<void> => {
      await verification.stop();
      await sealer.stop();
      await deliverer.stop();
      await deliveries.close();
      await relay.stop();
      await projector.stop();
    },
  };
};
