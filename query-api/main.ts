/** `npm run start:query-api`: the GET routes and the audit routes as a process; any number may run. */
import { noteVerifications, openCheckRecord } from '../audit/check-record.ts';
import { registerAuditApi } from '../audit/routes.ts';
import { registerConsole } from '../console/routes.ts';
import { openKeyStore, PersonalDataRefused } from '../personal-data/open.ts';
import { createOpener } from '../personal-data/opener.ts';
import { verifyKeysOf } from '../personal-data/verify-keys.ts';
import { StoreUnavailable } from '../shared/event-store/errors.ts';
import { openEventStore } from '../shared/event-store/open.ts';
import { openAuthHooks } from '../shared/http/auth/hooks.ts';
import { buildApp } from '../shared/http/server/app.ts';
import { closeGracefully, enginesState, registerHealth } from '../shared/http/server/health.ts';
import { SERVICE_ROUTES } from '../shared/http/server/known-routes.ts';
import { logDamage } from '../shared/read-models/damage.ts';
import { searchedOnceFilled } from '../shared/read-models/filled.ts';
import { openKeyDocument } from '../shared/read-models/key-document.ts';
import { openReadModels } from '../shared/read-models/open.ts';
import { type Config, secretsOf } from '../shared/runtime/config.ts';
import { newThreadHere } from '../shared/runtime/jobs.ts';
import type { Log } from '../shared/runtime/log.ts';
import { createMetrics } from '../shared/runtime/metrics.ts';
import { noFiles, runProcess } from '../shared/runtime/process-life.ts';
import { openWebhookSecret, WebhookSecretRefused } from '../webhooks/signer.ts';
import { behindTheStream } from './get-payment.ts';
import { registerQueryApi } from './routes.ts';

const open = async (deps: { config: Config; log: Log; onFatal(error: Error): void }) => {
  const { config, log } = deps;
  const drivers = { ...deps, fileOf: noFiles, newThread: newThreadHere };
  const metrics = createMetrics();
  const { store, ping } = await openEventStore({ ...drivers, metrics });
  const plain = await openReadModels(drivers, secretsOf(config));
  const readModels = searchedOnceFilled(plain, store);
  const verification = await openKeyDocument(drivers, 'log-verification');
  const notes = { record: openCheckRecord(verification, log), logger: log, metrics };
  logDamage(readModels, log);
  metrics.beforeScrape(() => metrics.readModelDifferences.set(readModels.damaged().length));
  const keys = await openKeyStore({ ...drivers, takes: false });
  const authHooks = await openAuthHooks(config, { log, metrics });

  const { maxInFlight } = config;
  const app = buildApp({ log, metrics, maxInFlight, servedElsewhere: SERVICE_ROUTES });
  const { openText, bodies } = createOpener({ keys, store, logger: log });
  registerQueryApi(app, authHooks, {
    store,
    openText,
    bodies,
    readModels,
    behind: behindTheStream(store),
    webhookSecret: await openWebhookSecret(store, config.webhooks.secret ?? ''),
  });
  registerAuditApi(app, authHooks, {
    store,
    openText,
    readModels,
    operationsMax: config.maxOperationsPerPayment,
    noteVerification: noteVerifications(notes),
    verifyKeys: verifyKeysOf(store, keys),
  });
  registerConsole(app, config.tokens.merchantClaims);
  registerHealth(app, {
    metrics,
    ready: async () => {
      const engines = await enginesState(ping, readModels);
      const isAble = engines.eventStore.state === 'up' || engines.readModels.state === 'up';
      return { ready: isAble && !app.lifecycle.closing, engines };
    },
  });
  return {
    app,
    giveUp: () => store.close(),
    stop: async () => {
      await closeGracefully(app, config);
      await store.close();
      await readModels.close();
      await verification.close();
      await keys.close();
    },
  };
};

await runProcess({
  mode: 'query-api',
  operatorErrors: [StoreUnavailable, WebhookSecretRefused, PersonalDataRefused],
  open,
  banner: (_opened, baseUrl) => ({
    what: 'query-api',
    addresses: [
      ['API', `${baseUrl}/api/v1/payments`],
      ['Docs', `${baseUrl}/docs`],
      ['Health', `${baseUrl}/health/ready`],
    ],
  }),
  farewell: 'this process stores nothing',
});
