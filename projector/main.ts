/** `npm run start:projector`: the projector and the relay as a process; a second one stands by. */
import { StoreUnavailable } from '../shared/event-store/errors.ts';
import { openAuthHooks } from '../shared/http/auth/hooks.ts';
import { buildApp } from '../shared/http/server/app.ts';
import { closeGracefully } from '../shared/http/server/close-gracefully.ts';
import { enginesState, registerHealth } from '../shared/http/server/health.ts';
import { SERVICE_ROUTES } from '../shared/http/server/known-routes.ts';
import { openDeliveries } from '../shared/open-deliveries.ts';
import { openEventStore, openReadModels } from '../shared/open-drivers.ts';
import { bannerOf } from '../shared/runtime/banner.ts';
import { type Config, secretsOf } from '../shared/runtime/config.ts';
import type { Log } from '../shared/runtime/log.ts';
import { createMetrics } from '../shared/runtime/metrics.ts';
import { noFiles, runProcess } from '../shared/runtime/process-life.ts';
import { openWebhookSecret, WebhookSecretRefused } from '../shared/webhooks/secret-check.ts';
import { startProjector } from './compose.ts';
import { LogMisfit } from './errors.ts';
import { projectionState } from './health.ts';
import { watchProjectionMetrics } from './metrics.ts';
import { openRelay, topicPrefixOf } from './relay/open-relay.ts';
import { relayState, watchRelayMetrics } from './relay/status.ts';
import { registerProjectorApi } from './routes.ts';
import { openSealer } from './seals/open.ts';
import { openVerification } from './verification/open.ts';
import { openDeliverer } from './webhooks/open.ts';
import { delivererState, watchDelivererMetrics } from './webhooks/status.ts';

const open = async (deps: { config: Config; log: Log; onFatal(error: Error): void }) => {
  const { config, log } = deps;
  const drivers = { ...deps, fileOf: noFiles };
  const metrics = createMetrics();
  const { store, ping } = await openEventStore({ ...drivers, metrics });
  const readModels = await openReadModels(drivers, secretsOf(config));
  const sealer = await openSealer({ config, store, log });
  const { running } = sealer;
  const projector = await startProjector({ store, readModels, logger: log, running });
  const relay = await openRelay({ config, store, fileOf: noFiles, logger: log, projector });
  const deliverer = await openDeliverer({
    config,
    store,
    metrics,
    logger: log,
    projector,
    deliveries: await openDeliveries(drivers),
    secret: await openWebhookSecret(store, config.webhooks.secret ?? ''),
  });
  const verification = await openVerification({
    ...drivers,
    store,
    readModels,
    metrics,
    projector,
    sealingKey: sealer.publicKey,
    keptHeads: sealer.keptHeads,
  });
  watchProjectionMetrics(metrics, projector);
  watchRelayMetrics(metrics, relay);
  watchDelivererMetrics(metrics, deliverer);

  const app = buildApp({
    log,
    metrics,
    maxInFlight: config.maxInFlight,
    servedElsewhere: SERVICE_ROUTES,
  });
  registerProjectorApi(app, await openAuthHooks(config, { log, metrics }), {
    projector,
    readModels,
    store,
    relay,
    topicPrefix: topicPrefixOf(config),
    verification,
    sealer,
  });
  registerHealth(app, {
    metrics,
    ready: async () => {
      const engines = await enginesState(ping, readModels);
      const enginesUp = engines.eventStore.state === 'up' && engines.readModels.state === 'up';
      return {
        ready: enginesUp && !projector.status().stuck && !app.lifecycle.closing,
        engines: {
          ...engines,
          projection: projectionState(projector),
          relay: relayState(relay),
          webhooks: delivererState(deliverer),
        },
      };
    },
  });
  return {
    app,
    giveUp: () => store.close(),
    stop: async () => {
      await closeGracefully(app);
      await verification.stop();
      await sealer.stop();
      await deliverer.stop();
      await relay.stop();
      await projector.stop();
      await store.close();
      await readModels.close();
    },
  };
};

await runProcess({
  mode: 'projector',
  operatorErrors: [StoreUnavailable, LogMisfit, WebhookSecretRefused],
  prepare: () => undefined,
  open,
  banner: (_opened, baseUrl, { warnings, kafka }, waitsFor) =>
    bannerOf(
      {
        what: `projector (${kafka === undefined ? 'publishes nothing' : `topics ${kafka.topicPrefix}.*`})`,
        addresses: [
          ['Health', `${baseUrl}/health/ready`],
          ['Metrics', `${baseUrl}/metrics`],
        ],
        waitsFor,
        notForProduction: [],
        warnings,
      },
      process.stderr,
    ),
  farewell: 'every applied event is in the read models',
});
