import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { createRecorder } from '../audit/access-recorder.ts';
import { openCheckRecord } from '../audit/check-record.ts';
import { createErasures } from '../personal-data/erasure/erasures.ts';
import type { NoteErasure } from '../personal-data/erasure/ledger.ts';
import { watchRetention } from '../personal-data/erasure/retention.ts';
import type { Opener } from '../personal-data/opener.ts';
import type { KeyStore } from '../personal-data/port.ts';
import type { Provider } from '../providers/port.ts';
import {
  forOwnOperations,
  noteRejections,
  REJECTIONS,
  resilient,
} from '../providers/resilience.ts';
import { givesNotices, stripeNoticesOf } from '../providers/stripe/notices.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import type { AuthHooks } from '../shared/http/auth/hooks.ts';
import type { Identities } from '../shared/http/idempotency.ts';
import { BudgetSpent } from '../shared/http/request-budget.ts';
import { registerRoutes } from '../shared/http/route.ts';
import { createStreams } from '../shared/http/server/streams.ts';
import { openKeyDocument } from '../shared/read-models/key-document.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import type { StartTimer } from '../shared/runtime/back-off.ts';
import type { Config } from '../shared/runtime/config.ts';
import type { Log } from '../shared/runtime/log.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import { createQueues } from '../shared/runtime/scheduling.ts';
import { readableDeliveries, type WebhookDeps } from '../webhooks/endpoints/requests.ts';
import {
  attentionItems,
  attentionSources,
  UNRESOLVED_AFTER_MS,
} from './back-office/attention/items.ts';
import { serviceSettings } from './back-office/by-hand/contract.ts';
import {
  createProviderAhead,
  type ProviderAhead,
} from './back-office/provider-ahead/provider-ahead.ts';
import { providerAgrees, stillDiffers } from './back-office/reconcile/reconcile-payment.ts';
import { openReconciling, openTurns } from './back-office/reconcile/reconciling.ts';
import type { ReconcilePaymentDeps } from './back-office/reconcile/routes.ts';
import type { CommandDeps } from './deps.ts';
import { createInFlight } from './in-flight.ts';
import { watchAttention, watchMetrics } from './metrics.ts';
import { createPaymentLog } from './payment-log.ts';
import { askAboutNeverSent } from './recovery/contradiction.ts';
import { askAbout, onNotice, watchOldAuthorizations } from './recovery/later-results.ts';
import { followLogTail, type LogTail } from './recovery/log-tail.ts';
import { type SweepOptions, startSweep } from './recovery/sweep.ts';
import { createUnresolved } from './recovery/unresolved.ts';
import { askAboutUntold, openElsewhereLook, untoldDisputes } from './recovery/untold.ts';
import { COMMAND_ROUTES, type CommandApi } from './routes.ts';

export type CommandSideOptions = {
  config: Config;
  store: EventStore;
  /** Other processes append to it as well: a call of theirs may still run (gaps §7). */
  sharedStore: boolean;
  readModels: CommandApi['readModels'] &
    ReconcilePaymentDeps['readModels'] &
    SweepOptions['readModels'] &
    Pick<ReadModelsReader, 'search'>;
  identities: Identities;
  keys: KeyStore;
  opener: Opener;
  noteErasure?: NoteErasure;
  webhooks: Omit<WebhookDeps['webhooks'], 'store'>;
  documents: Awaited<ReturnType<typeof openDocuments>>;
  provider: Provider;
  metrics: Metrics;
  log: Log;
  nowMs?: () => number;
  /** From when on an operation without an outcome needs a person. */
  unresolvedAfterMs?: number | undefined;
};

/** What the projector and the checks of the whole log keep outside the log. */
export const openDocuments = async (place: Parameters<typeof openKeyDocument>[0]) => ({
  relay: await openKeyDocument(place, 'relay-checkpoint'),
  verification: await openKeyDocument(place, 'log-verification'),
  reconciliation: await openKeyDocument(place, 'reconciliation'),
  turn: await openKeyDocument(place, 'reconciliation-turn'),
});

/** The payments changed last; more of them would be garbage that is collected late (ADR-0112). */
const CACHED_PAYMENTS_MAX = 128;
/** Some thirty of the largest payments; the usual ones are a few kB each. */
const CACHED_BYTES_MAX = 64 * 1024 * 1024;

/** Between two looks for erasures of the log that the store of keys has not seen. */
const ERASURES_MS = 120_000;

/** A stop waits for no engine after this time (docs/eventstoredb.md, shared/runtime/process-life.ts). */
const STOP_MS_MAX = 7_300;
const STOP_MS_MIN = 200;
/** Below the 8 s after which connections are cut (shared/http/server/health.ts). */
const RESPONSES_MS_MAX = 7_000;

const openProvider = ({ config, provider, metrics, log: logger }: CommandSideOptions) => {
  // An alert on the increase of a counter that begins at 1 would miss the first rejection.
  for (const reason of REJECTIONS) metrics.providerRejections.inc({ reason }, 0);
  const rejections = noteRejections({
    onRejection: (reason) => metrics.providerRejections.inc({ reason }),
    logger,
    nowMs: () => performance.now(),
  });
  const url = config.stripe?.url ?? config.provider.url;
  const measured = resilient(provider, {
    address: url === undefined ? undefined : new URL(url).hostname,
    metrics,
    onResponse: rejections.note,
  });
  return { provider: forOwnOperations(measured, config.provider.names), rejections };
};

const createDeps = (
  options: CommandSideOptions,
  provider: Provider,
  { isLevel }: ProviderAhead,
): CommandDeps => {
  const { config, store, sharedStore, readModels, identities, metrics, log: logger } = options;
  const { nowMs = Date.now } = options;
  const { timeoutMs: providerTimeoutMs, authenticationTimeoutMs, names } = config.provider;
  const waits = { providerTimeoutMs, authenticationTimeoutMs, nowMs };
  const ask = {
    paymentLog: createPaymentLog({
      store,
      nowMs,
      cachedPaymentsMax: CACHED_PAYMENTS_MAX,
      cachedBytesMax: CACHED_BYTES_MAX,
      // No command waits for a server that it can do without.
      readModels: sharedStore || config.mongoUrl !== undefined ? undefined : readModels,
      metrics,
    }),
    provider,
    queues: createQueues(),
    inFlight: createInFlight({ ...waits, sharedStore, logger, metrics }),
    nowMs,
    logger,
  };
  return {
    ...ask,
    store,
    isLevel,
    identities,
    keys: options.keys,
    sharedStore,
    unresolved: createUnresolved({
      ...ask,
      providers: names,
      delaysMs: config.recoveryDelaysMs,
      givesNotices: givesNotices(config),
    }),
    providers: names,
    operationsMax: config.maxOperationsPerPayment,
  };
};

const openParts = (options: CommandSideOptions) => {
  const { config, store, readModels, documents, metrics, log: logger } = options;
  const { provider, rejections } = openProvider(options);
  const providers = config.provider.names;
  const providerAhead = createProviderAhead({ store, provider, providers, logger });
  const commands = createDeps(options, provider, providerAhead);
  const elsewhereLook = openElsewhereLook(commands);
  const { nowMs } = commands;
  const both = { store, provider, providers, readModels };
  const reconciling = openReconciling({
    ...both,
    nowMs,
    metrics,
    logger,
    lookElsewhere: elsewhereLook.look,
    everyMs: config.reconcileIntervalMs,
    record: openCheckRecord(documents.reconciliation, logger, nowMs),
    turns: openTurns(documents.turn, logger, nowMs),
    agreesOn: (own) => providerAgrees(commands, own),
    stillDiffers: (difference) => stillDiffers(commands, difference),
    untoldDisputes: () => untoldDisputes(commands),
    askAboutUntold: (paymentIds) => askAboutUntold(commands, paymentIds),
    onNeverSent: (difference) => askAboutNeverSent(commands, difference),
  });
  const attention = attentionSources({
    ...options,
    providerAhead,
    rejections,
    elsewhereLook,
    commands,
    verifyEveryMs: config.verifyEveryMs,
    unresolvedAfterMs: options.unresolvedAfterMs ?? UNRESOLVED_AFTER_MS,
  });
  const stopping = new AbortController();
  // Each request listens to it.
  setMaxListeners(0, stopping.signal);
  const erasures = createErasures(store, options.keys, options.noteErasure);
  const opened = { provider, providerAhead, commands, reconciling, attention, stopping, erasures };
  return { ...options, ...opened };
};

type Parts = ReturnType<typeof openParts>;

const register = (parts: Parts, app: FastifyInstance, authHooks: AuthHooks): void => {
  const { config, store, commands, reconciling, webhooks, metrics, log } = parts;
  registerRoutes(app, authHooks, COMMAND_ROUTES, {
    ...parts,
    ...parts.opener,
    stopping: parts.stopping.signal,
    record: createRecorder(store),
    reconcile: reconciling.compare,
    streams: createStreams(app),
    service: async () => serviceSettings(config, await metrics.troubles()),
    stripeNotices: stripeNoticesOf(config, {
      ...commands,
      askAbout: async (paymentId) => {
        const found = await askAbout(commands, paymentId);
        return found !== 'unknown' && found !== 'at other provider';
      },
    }),
    webhooks: { ...webhooks, deliveries: readableDeliveries(webhooks.deliveries), store },
    attention: (merchantId) => attentionItems(parts.attention, merchantId),
    requestBudgetMs: config.requestBudgetMs,
    onOtherCard: ({ merchantId, requestId }) => {
      metrics.cardLikeTexts.inc();
      log.info({ merchant: merchantId, requestId }, 'a text looks like a card number');
    },
  });
};

export const openCommandSide = (options: CommandSideOptions) => {
  const parts = openParts(options);
  const { config, store, readModels, metrics, provider, providerAhead, reconciling } = parts;
  const { commands, stopping } = parts;
  const { inFlight, unresolved, logger } = commands;
  let stoppingSinceMs: number | undefined;
  let tail: LogTail | undefined;
  const stops = [reconciling.stop];
  provider.onNotice?.((paymentId) => void onNotice(commands, paymentId));
  provider.onBack(unresolved.askAboutAll);
  const startSweeping = (ready?: Promise<unknown>): void => {
    stops.push(startSweep({ store, readModels, unresolved, logger, ready }).stop);
  };
  const followTail = (): LogTail | undefined => {
    if (options.sharedStore) tail ??= followLogTail(store, commands);
    return tail;
  };
  const watchAuthorizations = (startTimer?: StartTimer): void => {
    stops.push(watchOldAuthorizations(commands, readModels, startTimer).stop);
  };
  const watchRetained = (startTimer?: StartTimer): void => {
    const { retentionDays: days } = config;
    if (days > 0) stops.push(watchRetention({ ...parts, days }, startTimer).stop);
  };
  let erasing: NodeJS.Timeout | undefined;
  /** Until a store of keys that is away has erased them, it opens nothing. */
  const repeatErasures = (): Promise<void> =>
    parts.erasures.repeat(stopping.signal).catch((error: unknown) => {
      logger.error({ err: error }, 'the keys of erased payments are not erased yet');
    });
  /** What new requests rest on as well, so it goes on while they are served. */
  const endAsking = (): void => {
    clearInterval(erasing);
    tail?.stop();
    providerAhead.stop();
    unresolved.stopAsking();
  };
  return {
    provider,
    providerAhead,
    inFlight,
    unresolved,
    followTail,
    watchAuthorizations,
    watchRetention: watchRetained,
    startSweep: startSweeping,
    /** Before the first request. The first sweep waits for `ready`. */
    start: async (ready?: Promise<unknown>): Promise<void> => {
      watchMetrics(metrics, { provider, providerAhead, unresolved, tail: followTail() });
      watchAttention(metrics, parts.attention);
      reconciling.start();
      watchAuthorizations();
      const erased = repeatErasures();
      watchRetained();
      startSweeping(ready);
      await providerAhead.start();
      await erased;
      erasing = setInterval(repeatErasures, ERASURES_MS).unref();
    },
    register: (app: FastifyInstance, authHooks: AuthHooks) => register(parts, app, authHooks),
    /** Before the server is closed: begins nothing more that no request waits for, and bounds waits. */
    beginStop: (): void => {
      for (const stop of stops) stop();
      stoppingSinceMs ??= performance.now();
      if (config.drainMs === 0) endAsking();
      else setTimeout(endAsking, config.drainMs).unref();
      // A provider call may outlast the stop: its request is answered with an unknown outcome.
      setTimeout(() => stopping.abort(new BudgetSpent()), RESPONSES_MS_MAX).unref();
    },
    /** After the server is closed. The next start finds what takes longer: it has its intent. */
    stop: async (): Promise<void> => {
      endAsking();
      const passedMs = performance.now() - (stoppingSinceMs ?? performance.now());
      const waitMs = Math.max(STOP_MS_MIN, STOP_MS_MAX - passedMs);
      await Promise.race([commands.queues.idle(), delay(waitMs, undefined, { ref: false })]);
      await provider.close();
      for (const document of Object.values(options.documents)) await document.close();
    },
  };
};

export type CommandSide = ReturnType<typeof openCommandSide>;
