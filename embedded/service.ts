/**
 * Everything in one process: event store, views, projector, provider, recovery and both APIs,
 * built over one data folder. Listening, banner and signals are main.ts's.
 */
import type { FastifyInstance } from 'fastify';
import { createIdentities } from '../command-api/idempotency.ts';
import { httpProvider } from '../command-api/provider/http.ts';
import type { Provider } from '../command-api/provider/port.ts';
import { openSimulator } from '../command-api/provider/simulator.ts';
import type { Recovery } from '../command-api/recovery.ts';
import { checkSecret, openCommandSide } from '../command-api/service.ts';
import { type Projector, startProjector } from '../projector/app.ts';
import { trackFreshness } from '../projector/freshness.ts';
import { registerQueryApi } from '../query-api/app.ts';
import type { Behind } from '../query-api/get-payment.ts';
import type { Config } from '../shared/config.ts';
import { openSqliteEventStore } from '../shared/event-store/sqlite.ts';
import { buildApp, closeGracefully } from '../shared/http/app.ts';
import { openGuard } from '../shared/http/guard.ts';
import { type EngineState, registerHealth } from '../shared/http/health.ts';
import type { Log } from '../shared/log.ts';
import { createMetrics } from '../shared/metrics.ts';
import type { PaymentViews } from '../shared/payment-views/port.ts';
import { openSqliteViews } from '../shared/payment-views/sqlite.ts';
import { type DataFolder, idempotencySecret } from './data-folder.ts';
import { watchFigures } from './figures.ts';

export type Service = {
  app: FastifyInstance;
  /** How many events the log held when it was opened. */
  eventsAtStart: number;
  /** Answers what is in flight, makes everything durable, closes all. */
  stop(): Promise<void>;
};

/** What tests put between the service and its engines: each gets the real one to delegate to. */
export type Wrappers = {
  provider?: (own: Provider) => Provider;
  views?: (own: PaymentViews) => PaymentViews;
};

const asItIs = <T>(own: T): T => own;

/** How often open intents that nobody follows yet are looked for. */
const SWEEP_MS = 60_000;
const SWEEP_MAX = 10_000;

const openProvider = async (config: Config, folder: DataFolder, log: Log): Promise<Provider> => {
  const { url, token, connectTimeoutMs, timeoutMs } = config.provider;
  return url === undefined
    ? openSimulator({ file: folder.path('provider-ledger.sqlite'), timeoutMs, logger: log })
    : httpProvider({ url, token, connectTimeoutMs, timeoutMs });
};

/** What the projector knows of its own process; see Behind. */
const inStepWith =
  (projector: Projector): Behind =>
  (paymentId) => {
    const behind = projector.isBehind(paymentId);
    return () => behind;
  };

/** Finds intents without an outcome and has recovery follow them, at the start and from then on. */
const sweepUnsettled = (views: PaymentViews, recovery: Recovery, log: Log): (() => void) => {
  const sweep = async (): Promise<void> => {
    try {
      for (const { paymentId } of await views.unsettled(SWEEP_MAX)) recovery.track(paymentId);
    } catch (error) {
      log.warn({ err: error }, 'open intents could not be listed; tried again in a minute');
    }
  };
  void sweep();
  const timer = setInterval(sweep, SWEEP_MS).unref();
  return () => clearInterval(timer);
};

/**
 * Opens the data folder's files and builds the service. Throws StoreUnavailable, SecretRefused or
 * CheckpointBeyondHead, each with one line for the operator.
 */
export const openService = async (
  config: Config,
  folder: DataFolder,
  log: Log,
  onFatal: (error: Error) => void,
  { provider: wrapProvider = asItIs, views: wrapViews = asItIs }: Wrappers = {},
): Promise<Service> => {
  const metrics = createMetrics();
  const file = folder.path('events.sqlite');
  const sqlite = await openSqliteEventStore({ file, logger: log, onFatal });
  const identities = createIdentities(config.idempotencySecret ?? idempotencySecret(folder));
  await checkSecret(sqlite, identities);

  const freshness = trackFreshness(sqlite);
  const views = wrapViews(openSqliteViews({ file: folder.path('views.sqlite'), logger: log }));
  const projector = await startProjector({ store: freshness.store, views, logger: log, freshness });
  const commands = openCommandSide({
    config,
    store: freshness.store,
    views: {
      // While the views are being filled anew, GET folds the streams: nothing is worth a wait.
      waitForRevision: async (paymentId, revision, timeoutMs) =>
        projector.status().caughtUp && views.waitForRevision(paymentId, revision, timeoutMs),
    },
    identities,
    provider: wrapProvider(await openProvider(config, folder, log)),
    metrics,
    log,
  });
  const { recovery, provider } = commands;
  watchFigures(metrics, { store: sqlite, projector, recovery, provider });

  const guard = await openGuard(config);
  const app = buildApp({ log, metrics, maxInFlight: config.maxInFlight });
  commands.register(app, guard);
  registerQueryApi(app, {
    guard: guard('payments:read'),
    room: { store: sqlite, views, behind: inStepWith(projector) },
  });

  const eventStoreState = async (): Promise<EngineState> => {
    try {
      const { position } = await sqlite.head(sqlite.lastPosition());
      return { state: 'up', position: position ?? '0' };
    } catch (error) {
      return { state: 'down', reason: error instanceof Error ? error.message : 'unknown' };
    }
  };
  registerHealth(app, {
    metrics,
    ready: async () => {
      const eventStore = await eventStoreState();
      const { state, caughtUp, parked, stuck, error } = projector.status();
      const projection: EngineState = {
        state: stuck ? 'stuck' : state,
        caughtUp,
        parked,
        ...(error === undefined ? {} : { reason: error }),
      };
      const simulated = config.provider.url === undefined;
      const providerState: EngineState = {
        state: provider.breakerOpen() ? 'breaker open' : 'up',
        simulated,
      };
      return {
        ready: eventStore.state === 'up' && !app.lifecycle.closing && !stuck,
        engines: { eventStore, views: projection, provider: providerState },
      };
    },
  });

  let stopSweep = (): void => {};
  void projector.caughtUp.then(() => {
    stopSweep = sweepUnsettled(views, recovery, log);
  });

  return {
    app,
    eventsAtStart: Number(sqlite.lastPosition() ?? 0),
    stop: async () => {
      await closeGracefully(app);
      stopSweep();
      await commands.stop();
      await projector.stop();
      await sqlite.close();
      await views.close();
      folder.release();
    },
  };
};
