/** `npm run start:projector`: the projector and the relay as a process; a second one stands by. */
import { openKeyStore, PersonalDataRefused } from '../personal-data/open.ts';
import { createOpener } from '../personal-data/opener.ts';
import { verifyKeysOf } from '../personal-data/verify-keys.ts';
import { StoreUnavailable } from '../shared/event-store/errors.ts';
import { openEventStore } from '../shared/event-store/open.ts';
import { openAuthHooks } from '../shared/http/auth/hooks.ts';
import { buildApp } from '../shared/http/server/app.ts';
import { closeGracefully, enginesState, registerHealth } from '../shared/http/server/health.ts';
import { SERVICE_ROUTES } from '../shared/http/server/known-routes.ts';
import { searchedOnceFilled } from '../shared/read-models/filled.ts';
import { openReadModels } from '../shared/read-models/open.ts';
import { type Config, secretsOf } from '../shared/runtime/config.ts';
import { newThreadHere } from '../shared/runtime/jobs.ts';
import type { Log } from '../shared/runtime/log.ts';
import { createMetrics } from '../shared/runtime/metrics.ts';
import { noFiles, runProcess } from '../shared/runtime/process-life.ts';
import { LogMisfit } from '../shared/subscription/errors.ts';
import { WebhookSecretRefused } from '../webhooks/signer.ts';
import { openDeliveries } from '../webhooks/store/open.ts';
import { openProjectorSide } from './open.ts';

const open = async (deps: { config: Config; log: Log; onFatal(error: Error): void }) => {
  const { config, log } = deps;
  const drivers = { ...deps, fileOf: noFiles, newThread: newThreadHere };
  const metrics = createMetrics();
  const { store, ping } = await openEventStore({ ...drivers, metrics });
  const readModels = searchedOnceFilled(await openReadModels(drivers, secretsOf(config)), store);
  const keys = await openKeyStore({ ...drivers, takes: false });
  const side = await openProjectorSide({
    config,
    store,
    readModels,
    deliveries: await openDeliveries(drivers),
    newThread: newThreadHere,
    openText: createOpener({ keys, store, logger: log }).openText,
    verifyKeys: verifyKeysOf(store, keys),
    webhookSecret: async () => config.webhooks.secret ?? '',
    metrics,
    log,
  });

  const { maxInFlight } = config;
  const app = buildApp({ log, metrics, maxInFlight, servedElsewhere: SERVICE_ROUTES });
  side.register(app, await openAuthHooks(config, { log, metrics }));
  registerHealth(app, {
    metrics,
    ready: async () => {
      const engines = await enginesState(ping, readModels);
      const enginesUp = engines.eventStore.state === 'up' && engines.readModels.state === 'up';
      return {
        ready: enginesUp && !side.projector.status().stuck && !app.lifecycle.closing,
        engines: { ...engines, ...(await side.states()) },
      };
    },
  });
  return {
    app,
    giveUp: () => store.close(),
    stop: async () => {
      // Another projector takes over while this one still serves.
      await Promise.all([closeGracefully(app, config), side.stop()]);
      await store.close();
      await keys.close();
      await readModels.close();
    },
  };
};

await runProcess({
  mode: 'projector',
  operatorErrors: [StoreUnavailable, LogMisfit, WebhookSecretRefused, PersonalDataRefused],
  open,
  banner: (_opened, baseUrl, { kafka }) => ({
    what: `projector (${kafka === undefined ? 'publishes nothing' : `topics ${kafka.topicPrefix}.*`})`,
    addresses: [
      ['Health', `${baseUrl}/health/ready`],
      ['Metrics', `${baseUrl}/metrics`],
    ],
  }),
  farewell: 'every applied event is in the read models',
});
