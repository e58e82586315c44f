/**
 * Everything in one process: event store, views, projector, provider, recovery and both APIs,
 * built over one data folder. Listening, banner and signals are main.ts's.
 */
import type { FastifyInstance } from 'fastify';
import { registerCommandApi } from '../command-api/app.ts';
import type { CommandRoom } from '../command-api/carry-out.ts';
import { createPaymentLog } from '../command-api/execute.ts';
import { createIdentities } from '../command-api/idempotency.ts';
import { guarded } from '../command-api/provider/guard.ts';
import { httpProvider } from '../command-api/provider/http.ts';
import { measured } from '../command-api/provider/measured.ts';
import type { Provider } from '../command-api/provider/port.ts';
import { openSimulator } from '../command-api/provider/simulator.ts';
import { createQueues } from '../command-api/queues.ts';
import { createRecovery, type Recovery } from '../command-api/recovery.ts';
import { startProjector } from '../projector/app.ts';
import { trackFreshness } from '../projector/freshness.ts';
import { registerQueryApi } from '../query-api/app.ts';
import { type Config, merchantRules } from '../shared/config.ts';
import { openSqliteEventStore, type SqliteEventStore } from '../shared/event-store/sqlite.ts';
import { buildApp, closeGracefully } from '../shared/http/app.ts';
import { createAuthenticator } from '../shared/http/auth.ts';
import { createGuard } from '../shared/http/guard.ts';
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

/** The event store was written with another idempotency secret: repeats would be charged again. */
export class SecretRefused extends Error {
  override name = 'SecretRefused';
}

const asItIs = <T>(own: T): T => own;

const CACHED_PAYMENTS_MAX = 10_000;
/** How often open intents that nobody follows yet are looked for. */
const SWEEP_MS = 60_000;
const SWEEP_MAX = 10_000;

const openProvider = async (config: Config, folder: DataFolder, log: Log): Promise<Provider> => {
  const { url, token, connectTimeoutMs, timeoutMs } = config.provider;
  return url === undefined
    ? openSimulator({ file: folder.path('provider-ledger.sqlite'), timeoutMs, logger: log })
    : httpProvider({ url, token, connectTimeoutMs, timeoutMs });
};

const checkSecret = async (store: SqliteEventStore, checkValue: string): Promise<void> => {
  if ((await store.claimMeta('idempotency-check', checkValue)) === checkValue) return;
  throw new SecretRefused(
    'IDEMPOTENCY_SECRET: the events were written with another secret; with this one repeated requests would be charged again. Put the old secret back',
  );
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
  await checkSecret(sqlite, identities.checkValue());

  const freshness = trackFreshness(sqlite);
  const views = wrapViews(openSqliteViews({ file: folder.path('views.sqlite'), logger: log }));
  const projector = await startProjector({ store: freshness.store, views, logger: log, freshness });
  const own = wrapProvider(await openProvider(config, folder, log));
  const provider = guarded(measured(own, metrics));

  const queues = createQueues();
  const paymentLog = createPaymentLog({
    store: freshness.store,
    nowMs: Date.now,
    cachedPaymentsMax: CACHED_PAYMENTS_MAX,
    onConflict: () => metrics.appendConflicts.add(1),
    onAppended: (events) => {
      for (const { event } of events) metrics.eventsAppended.add(1, event.type);
    },
  });
  const recovery = createRecovery({
    log: paymentLog,
    provider,
    queues,
    delaysMs: config.recoveryDelaysMs,
    nowMs: Date.now,
    logger: log,
  });
  const room: CommandRoom = {
    log: paymentLog,
    provider,
    queues,
    recovery,
    identities,
    logger: log,
    rulesOf: (merchantId) => {
      const { maxAmount, acceptedBrands } = merchantRules(config, merchantId);
      return { maxAmountMinor: maxAmount, ...(acceptedBrands && { acceptedBrands }) };
    },
    contextOf: ({ actor, requestId }) => ({
      actor,
      requestId,
      correlationId: requestId,
      causationId: requestId,
    }),
  };
  watchFigures(metrics, { store: sqlite, projector, recovery, provider });

  const { keys } = config.tokens;
  const guard = createGuard({
    authenticator: await createAuthenticator({
      ...config.tokens,
      keys: keys.kind === 'local' ? { kind: 'local', folder: config.dataDir } : keys,
    }),
    rateOf: (merchantId) => merchantRules(config, merchantId).rateLimit,
    unauthenticatedRate: config.unauthenticatedRateLimit,
  });
  const app = buildApp({ log, metrics, maxInFlight: config.maxInFlight });
  registerCommandApi(app, {
    guard: guard('payments:write'),
    room,
    views: {
      // While the views are being filled anew, GET folds the streams: nothing is worth a wait.
      waitForRevision: async (paymentId, revision, timeoutMs) =>
        projector.status().caughtUp && views.waitForRevision(paymentId, revision, timeoutMs),
    },
    requestBudgetMs: config.requestBudgetMs,
    onCommand: (command, outcome, seconds) => {
      metrics.commands.add(1, command, outcome);
      metrics.commandSeconds.observe(seconds, command);
    },
  });
  registerQueryApi(app, {
    guard: guard('payments:read'),
    room: { store: sqlite, views, isBehind: projector.isBehind },
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
      recovery.stop();
      await queues.idle();
      await projector.stop();
      await provider.close();
      await sqlite.close();
      await views.close();
      folder.release();
    },
  };
};
