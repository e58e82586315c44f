/**
 * The command side put together over its engines, for the embedded process and for a process of its
 * own: provider, payment log, recovery, the POST routes and the routes of operators.
 */
import type { FastifyInstance } from 'fastify';
import type { EventStore } from '../shared/event-store/port.ts';
import { createRecorder } from '../shared/http/access-recorder.ts';
import type { AuthHooks } from '../shared/http/auth/hooks.ts';
import { registerRoutes } from '../shared/http/route.ts';
import { createStreams } from '../shared/http/server/streams.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import type { Config } from '../shared/runtime/config.ts';
import type { Log } from '../shared/runtime/log.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import { createQueues } from '../shared/runtime/queues.ts';
import type { StartTimer } from '../shared/runtime/timer.ts';
import { isTracing } from '../shared/runtime/tracing.ts';
import { rulesOf } from './create-payment.ts';
import type { CommandDeps } from './deps.ts';
import type { Identities } from './idempotency.ts';
import { createInFlight, type InFlight, inFlightMsMaxOf } from './in-flight.ts';
import { recordMetrics } from './metrics.ts';
import { serviceSettings } from './operator/settings.ts';
import { createPaymentLog } from './payment-log.ts';
import { forOwnOperations } from './provider/own-operations.ts';
import type { Provider } from './provider/port.ts';
import { noteRejections } from './provider/rejections.ts';
import { type ResilientProvider, resilient } from './provider/resilience.ts';
import { tracedProvider } from './provider/traced.ts';
import { createProviderAhead, type ProviderAhead } from './provider-ahead/provider-ahead.ts';
import { openReconciling } from './reconcile/reconciling.ts';
import type { ReconcilePaymentDeps } from './reconcile/routes.ts';
import { confirmByAsking, resolveByAsking } from './recovery/ask.ts';
import { askAboutNeverSent } from './recovery/contradiction.ts';
import { onNotice, watchOldAuthorizations } from './recovery/later-results.ts';
import { followLogTail, type LogTail } from './recovery/log-tail.ts';
import { type Sweep, type SweepOptions, startSweep } from './recovery/sweep.ts';
import { createUnresolved, type Unresolved } from './recovery/unresolved.ts';
import { createReferenceClaims } from './reference-claims.ts';
import type { Waiting } from './request-budget.ts';
import { COMMAND_ROUTES, type CommandApi } from './routes.ts';
import { createStop } from './stop.ts';
import { readableDeliveries, type WebhookDeps } from './webhooks/endpoint-requests.ts';
import { stripeNoticesOf } from './webhooks/stripe.ts';

export type CommandSideOptions = {
  config: Config;
  /** Every append of this process goes through it. */
  store: EventStore;
  /** Other processes append to it as well: a call of theirs may still run (gaps §7). */
  sharedStore: boolean;
  readModels: CommandApi['readModels'] &
    ReconcilePaymentDeps['readModels'] &
    SweepOptions['readModels'] &
    Pick<ReadModelsReader, 'search'>;
  identities: Identities;
  /** Where endpoints are registered; `kindOf` and the secret by the settings. */
  webhooks: Omit<WebhookDeps['webhooks'], 'store'>;
  provider: Provider;
  metrics: Metrics;
  log: Log;
  /** Wall clock in milliseconds; tests set it. */
  nowMs?: () => number;
};

export type CommandSide = {
  provider: ResilientProvider;
  inFlight: InFlight;
  unresolved: Unresolved;
  /** Whether the provider holds what the log does not; its `start` comes before the first request. */
  providerAhead: Pick<ProviderAhead, 'now' | 'isComparing' | 'start'>;
  /**
   * Starts the sweep for intents without an outcome that this process does not know; `ready` is
   * what the first sweep may wait for (recovery/sweep.ts). Ends with `beginStop`.
   */
  startSweep(ready?: Promise<unknown>): void;
  /** Begins to follow the log, where other processes append to it; undefined where none does. */
  followTail(): LogTail | undefined;
  /** Starts comparing the log with the provider's ledger on a schedule. Ends with `beginStop`. */
  startReconciling(): void;
  /** Starts asking about authorizations older than the provider keeps one. Ends with `beginStop`. */
  watchAuthorizations(startTimer?: StartTimer): void;
  /** Registers the routes of the command side. */
  register(app: FastifyInstance, authHooks: AuthHooks): void;
  /**
   * Begins nothing more that no request waits for, and bounds what requests wait for. Before the
   * server is closed.
   */
  beginStop(): void;
  /**
   * Waits for what has begun and closes the provider. After the server is closed. What takes longer
   * than the process has left has its intent, and is found again at the next start.
   */
  stop(): Promise<void>;
};

/** Payments that were changed last: more of them would be garbage that is collected late (ADR-0112). */
const CACHED_PAYMENTS_MAX = 128;
/** Some thirty of the largest payments; the usual ones are a few kB each. */
const CACHED_BYTES_MAX = 64 * 1024 * 1024;

const createDeps = (
  options: CommandSideOptions,
  provider: Provider,
  { isLevel }: Pick<ProviderAhead, 'isLevel'>,
): CommandDeps => {
  const { config, store, sharedStore, identities, log: logger, nowMs = Date.now } = options;
  const { onAppended, onConflict } = recordMetrics(options.metrics);
  const cache = { cachedPaymentsMax: CACHED_PAYMENTS_MAX, cachedBytesMax: CACHED_BYTES_MAX };
  const queues = createQueues();
  const paymentLog = createPaymentLog({ store, nowMs, onConflict, onAppended, ...cache });
  const inFlight = createInFlight({
    // After a start no earlier call of this process runs, so only others' are waited for.
    inFlightMsMax: sharedStore ? inFlightMsMaxOf(config.provider.timeoutMs) : 0,
    nowMs,
  });
  const unresolved = createUnresolved({
    paymentLog,
    queues,
    inFlight,
    resolve: (paymentId, goOn) => resolveByAsking(deps, paymentId, goOn),
    confirm: (payment, goOn) => confirmByAsking(deps, payment, goOn),
    providers: config.provider.names,
    delaysMs: config.recoveryDelaysMs,
    nowMs,
    logger,
  });
  const deps: CommandDeps = {
    paymentLog,
    provider,
    queues,
    inFlight,
    unresolved,
    isLevel,
    identities,
    claims: createReferenceClaims({ store, identities, nowMs }),
    sharedStore,
    rulesOf: rulesOf(config),
    providers: config.provider.names,
    operationsMax: config.maxOperationsPerPayment,
    nowMs,
    logger,
  };
  return deps;
};

/** The provider, with spans around its calls where this process makes any. */
const spansAround = (provider: Provider, { provider: { url }, stripe }: Config): Provider => {
  const address = stripe?.url ?? url;
  return isTracing() ? tracedProvider(provider, address && new URL(address).hostname) : provider;
};

/** Puts the command side together; nothing runs yet but what a request or `startSweep` begins. */
export const openCommandSide = (options: CommandSideOptions): CommandSide => {
  const { config, store, readModels, metrics, log } = options;
  const { onCall, onRejection, onCommand, onCardLikeText } = recordMetrics(metrics);
  // One line for each: the metric has no label for the merchant.
  const onOtherCard: CommandApi['onOtherCard'] = ({ merchantId, requestId }) => {
    onCardLikeText();
    log.info({ merchant: merchantId, requestId }, 'a text looks like a card number');
  };
  const nowMs = () => performance.now();
  const onReason = noteRejections({ onRejection, logger: log, nowMs });
  const own = resilient(spansAround(options.provider, config), { onCall, onReason });
  const provider = forOwnOperations(own, config.provider.names);
  const { names: providers } = config.provider;
  const providerAhead = createProviderAhead({ store, provider, providers, logger: log });
  const deps = createDeps(options, provider, providerAhead);
  const { inFlight, unresolved } = deps;
  const reconciling = openReconciling({
    store,
    provider,
    providers,
    everyMs: config.reconcileIntervalMs,
    metrics,
    logger: log,
    onNeverSent: (difference) => askAboutNeverSent(deps, difference),
  });
  const waiting: Waiting = new Set();
  const stop = createStop(deps, waiting);
  let sweep: Sweep | undefined;
  let tail: LogTail | undefined;
  let old: ReturnType<typeof watchOldAuthorizations> | undefined;
  const ask = onNotice(deps);
  provider.onNotice((paymentId) => void ask(paymentId));
  return {
    provider,
    inFlight,
    unresolved,
    providerAhead,
    startSweep: (ready) => {
      sweep ??= startSweep({ store, readModels, unresolved, logger: log, ready });
    },
    followTail: () => {
      if (!options.sharedStore) return undefined;
      tail ??= followLogTail({ store, inFlight, nowMs: deps.nowMs, logger: log });
      return tail;
    },
    startReconciling: reconciling.start,
    watchAuthorizations: (startTimer) => {
      old ??= watchOldAuthorizations({ deps, readModels, startTimer });
    },
    register: (app, authHooks) => {
      registerRoutes(app, authHooks, COMMAND_ROUTES, {
        record: createRecorder(store),
        reconcileOnce: reconciling.once,
        streams: createStreams(app),
        service: serviceSettings(config),
        providerAhead,
        commands: deps,
        stripeNotices: stripeNoticesOf(config),
        webhooks: {
          ...options.webhooks,
          deliveries: readableDeliveries(options.webhooks.deliveries),
          store,
        },
        store,
        readModels,
        requestBudgetMs: config.requestBudgetMs,
        waiting,
        onCommand,
        onOtherCard,
      });
    },
    beginStop: () => {
      sweep?.stop();
      tail?.stop();
      reconciling.stop();
      old?.stop();
      providerAhead.stop();
      stop.begin();
    },
    stop: async () => {
      await stop.finish();
      await provider.close();
    },
  };
};
