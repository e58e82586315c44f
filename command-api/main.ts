/** `npm run start:command-api`: the POST routes as a process of its own; any number may run. */
import { openErasureLedger } from '../personal-data/erasure/ledger.ts';
import { openKeyStore, PersonalDataRefused } from '../personal-data/open.ts';
import { createOpener } from '../personal-data/opener.ts';
import { StoreUnavailable } from '../shared/event-store/errors.ts';
import { openEventStore } from '../shared/event-store/open.ts';
import { openAuthHooks } from '../shared/http/auth/hooks.ts';
import { createIdentities } from '../shared/http/idempotency.ts';
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
import { addressKinds } from '../webhooks/endpoints/addresses.ts';
import { openWebhookSecret, WebhookSecretRefused } from '../webhooks/signer.ts';
import { openDeliveries } from '../webhooks/store/open.ts';
import { openCommandSide, openDocuments } from './compose.ts';
import { providerState, readOnlyWarnings } from './health.ts';
import { SecretRefused, withCheckedSecret } from './idempotency-secret.ts';
import { openOuterProvider } from './open-provider.ts';

const open = async (deps: { config: Config; log: Log; onFatal(error: Error): void }) => {
  const { config, log, onFatal } = deps;
  const drivers = { ...deps, fileOf: noFiles, newThread: newThreadHere };
  const metrics = createMetrics();
  const opened = await openEventStore({ ...drivers, metrics });
  const plain = await openReadModels(drivers, secretsOf(config));
  const readModels = searchedOnceFilled(plain, opened.store);
  const identities = createIdentities(secretsOf(config));
  const store = await withCheckedSecret(opened.store, identities, onFatal);
  const deliveries = await openDeliveries(drivers);
  const keys = await openKeyStore({ ...drivers, takes: true });
  const { secret = '', allowedNetworks } = config.webhooks;
  const commands = openCommandSide({
    config,
    webhooks: {
      deliveries,
      secret: await openWebhookSecret(store, secret),
      kindOf: addressKinds(allowedNetworks),
    },
    documents: await openDocuments(drivers),
    store,
    sharedStore: true,
    readModels,
    identities,
    keys,
    noteErasure: await openErasureLedger(config.erasureLedger, store),
    opener: createOpener({ keys, store, logger: log }),
    // The settings refuse to start this process with the simulator.
    provider: openOuterProvider(config, log),
    metrics,
    log,
  });
  await commands.start();

  const app = buildApp({
    log,
    metrics,
    maxInFlight: config.maxInFlight,
    servedElsewhere: SERVICE_ROUTES,
  });
  commands.register(app, await openAuthHooks(config, { log, metrics }));
  registerHealth(app, {
    metrics,
    ready: async () => {
      const engines = await enginesState(opened.ping, readModels);
      return {
        ready: engines.eventStore.state === 'up' && !app.lifecycle.closing,
        engines: { ...engines, provider: providerState(commands, config) },
      };
    },
  });
  return {
    app,
    warnings: readOnlyWarnings(commands),
    giveUp: () => store.close(),
    stop: async () => {
      commands.beginStop();
      await closeGracefully(app, config);
      await commands.stop();
      await store.close();
      await readModels.close();
      await deliveries.close();
      await keys.close();
    },
  };
};

await runProcess({
  mode: 'command-api',
  operatorErrors: [SecretRefused, WebhookSecretRefused, PersonalDataRefused, StoreUnavailable],
  open,
  banner: (_opened, baseUrl) => ({
    what: 'command-api',
    addresses: [
      ['API', `${baseUrl}/api/v1/payments`],
      ['Health', `${baseUrl}/health/ready`],
    ],
  }),
  farewell: 'what was begun is in the event store',
});
