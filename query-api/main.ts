/** `npm run start:query-api`: the GET routes as a process of its own; any number may run. */

import { registerAuditApi } from '../audit/routes.ts';
import { StoreUnavailable } from '../shared/event-store/port.ts';
import { openGuard } from '../shared/http/auth/authorize.ts';
import { buildApp, closeGracefully } from '../shared/http/server/app.ts';
import { engineState, registerHealth } from '../shared/http/server/health.ts';
import { SERVICE_ROUTES } from '../shared/http/server/known-routes.ts';
import { openEventStore, openViews } from '../shared/open-drivers.ts';
import { bannerOf } from '../shared/runtime/banner.ts';
import type { Config } from '../shared/runtime/config.ts';
import type { Log } from '../shared/runtime/log.ts';
import { createMetrics } from '../shared/runtime/metrics.ts';
import { noFiles, runProcess } from '../shared/runtime/process-life.ts';
import { behindTheStream } from './get-payment.ts';
import { registerQueryApi } from './routes.ts';

const open = async (room: { config: Config; log: Log; onFatal(error: Error): void }) => {
  const { config, log } = room;
  const drivers = { ...room, fileOf: noFiles };
  const metrics = createMetrics();
  const { store, ping } = await openEventStore(drivers);
  const views = await openViews(drivers);
  const guard = await openGuard(config);

  const app = buildApp({
    log,
    metrics,
    maxInFlight: config.maxInFlight,
    servedElsewhere: SERVICE_ROUTES,
  });
  registerQueryApi(app, {
    guard: guard('payments:read'),
    room: { store, views, behind: behindTheStream(store) },
  });
  registerAuditApi(app, {
    guard: guard('audit:read'),
    store,
    views,
    onVerified: metrics.chainVerified,
  });
  registerHealth(app, {
    metrics,
    ready: async () => {
      const [eventStore, readModels] = await Promise.all([
        engineState(ping),
        engineState(() => views.checkpoint()),
      ]);
      const canAnswer = eventStore.state === 'up' || readModels.state === 'up';
      return {
        ready: canAnswer && !app.lifecycle.closing,
        engines: { eventStore, views: readModels },
      };
    },
  });
  return {
    app,
    stop: async () => {
      await closeGracefully(app);
      await store.close();
      await views.close();
    },
  };
};

await runProcess({
  mode: 'query-api',
  refusals: [StoreUnavailable],
  prepare: () => undefined,
  open,
  banner: (_opened, baseUrl, { warnings }) =>
    bannerOf(
      {
        what: 'query-api',
        addresses: [
          ['API', `${baseUrl}/api/v1/payments`],
          ['Docs', `${baseUrl}/docs`],
          ['Health', `${baseUrl}/health/ready`],
        ],
        notForProduction: [],
        warnings,
      },
      process.stderr,
    ),
  farewell: 'it kept nothing of its own',
});
