/**
 * Everything in one process over one data folder: event store, read models, projector, provider,
 * recovery and all APIs. main.ts listens, prints the banner and handles signals.
 */
import type { FastifyInstance } from 'fastify';
import { registerAuditApi } from '../audit/routes.ts';
import { type CommandSide, openCommandSide } from '../command-api/compose.ts';
import { providerState, readOnlyWarnings } from '../command-api/health.ts';
import { createIdentities } from '../command-api/idempotency.ts';
import { withCheckedSecret } from '../command-api/idempotency-secret.ts';
import type { Provider } from '../command-api/provider/port.ts';
import { watchCommandMetrics } from '../command-api/watch-metrics.ts';
import { registerConsole } from '../console/routes.ts';
import { type Projector, startProjector } from '../projector/compose.ts';
import { trackFreshness } from '../projector/freshness.ts';
import { projectionState } from '../projector/health.ts';
import { watchProjectionMetrics } from '../projector/metrics.ts';
import { openRelay, topicPrefixOf } from '../projector/relay/open-relay.ts';
import type { Relay } from '../projector/relay/relay.ts';
import { relayState, watchRelayMetrics } from '../projector/relay/status.ts';
import { registerProjectorApi } from '../projector/routes.ts';
import { openSealer } from '../projector/seals/open.ts';
import type { OpenedSealer } from '../projector/seals/opened-sealer.ts';
import { openVerification } from '../projector/verification/open.ts';
import type { ScheduledVerification } from '../projector/verification/schedule.ts';
import type { Deliverer } from '../projector/webhooks/deliverer.ts';
import { openDeliverer } from '../projector/webhooks/open.ts';
import { delivererState, watchDelivererMetrics } from '../projector/webhooks/status.ts';
import { openSimulator } from '../provider-simulator/simulator.ts';
import { type Behind, behindTheLog } from '../query-api/behind.ts';
import { registerQueryApi } from '../query-api/routes.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { type AuthHooks, openAuthHooks } from '../shared/http/auth/hooks.ts';
import { buildApp } from '../shared/http/server/app.ts';
import { closeGracefully } from '../shared/http/server/close-gracefully.ts';
import { engineState, registerHealth } from '../shared/http/server/health.ts';
import { openDeliveries } from '../shared/open-deliveries.ts';
import { type OpenedStore, openEventStore, openReadModels } from '../shared/open-drivers.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { type Config, secretsOf } from '../shared/runtime/config.ts';
import type { Log } from '../shared/runtime/log.ts';
import { createMetrics, type Metrics } from '../shared/runtime/metrics.ts';
import { addressKinds } from '../shared/webhooks/addresses.ts';
import { openWebhookSecret, type WebhookSecret } from '../shared/webhooks/secret-check.ts';
import { type DataFolder, idempotencySecret, openFileIn, webhookSecret } from './data-folder.ts';
import { watchCommits } from './metrics.ts';

/** The opened service, which does not listen yet. */
export type Service = {
  app: FastifyInstance;
  /** How many events the log held when it was opened. */
  eventsAtStart: number;
  /** What an operator has to know at once, one line each; for the banner. */
  warnings: readonly string[];
  /** Ends the requests in flight, makes everything durable, closes all. */
  stop(): Promise<void>;
  /** Gives up every call of an event store that stands still, so that `stop` ends in its time. */
  giveUp(): Promise<void>;
};

/** What tests put between the service and its engines: each gets the real engine to delegate to. */
export type Wrappers = {
  store?: (own: EventStore) => EventStore;
  provider?: (own: Provider) => Provider;
  readModels?: (own: ReadModels) => ReadModels;
};

/** The provider that the settings name: one over a network, or the simulator in this process. */
const openProvider = async (config: Config, log: Log, ledgerFile: string): Promise<Provider> => {
  const { kind, timeoutMs } = config.provider;
  if (kind === 'simulator') return openSimulator({ file: ledgerFile, timeoutMs, logger: log });
  // Its HTTP client is a sixth of the files that a start would read (ADR-0014).
  const { openOuterProvider } = await import('../command-api/open-provider.ts');
  return openOuterProvider(config);
};

const asItIs = <T>(own: T): T => own;

/** Behind is known without a read of the event store: the projector runs in this process. */
const inStepWith =
  (projector: Projector): Behind =>
  (paymentId) => {
    const behind = projector.isBehind(paymentId);
    return () => behind;
  };

const positionOf = ({ shared, lastPosition }: OpenedStore) =>
  shared ? {} : { position: lastPosition() ?? '0' };

type Parts = {
  config: Config;
  metrics: Metrics;
  opened: OpenedStore;
  readModels: ReadModels;
  projector: Projector;
  commands: CommandSide;
  relay: Relay;
  deliverer: Deliverer;
  webhookSecret: WebhookSecret;
  verification: ScheduledVerification;
  sealer: OpenedSealer;
};

/** Opens the engines and starts what works on them, the projector first. */
const openParts = async (
  config: Config,
  folder: DataFolder,
  log: Log,
  onFatal: (error: Error) => void,
  wrappers: Wrappers,
): Promise<Parts> => {
  const { store: wrapStore = asItIs, provider: wrapProvider = asItIs } = wrappers;
  const { readModels: wrapReadModels = asItIs } = wrappers;
  const metrics = createMetrics();
  const drivers = { config, log, fileOf: folder.path, onFatal };
  const opened = await openEventStore({ ...drivers, metrics });
  const own = config.idempotencySecret ?? (await idempotencySecret(folder));
  const secrets = secretsOf(config, own);
  const identities = createIdentities(secrets);
  const checked = await withCheckedSecret(opened.store, identities, onFatal);
  const sealer = await openSealer({ ...drivers, store: opened.store });
  const freshness = trackFreshness(wrapStore(checked));
  const readModels = wrapReadModels(await openReadModels(drivers, secrets));
  const projector = await startProjector({
    store: freshness.store,
    readModels,
    logger: log,
    freshness,
    running: sealer.running,
  });
  const deliveries = await openDeliveries(drivers);
  const ownWebhookSecret = config.webhooks.secret ?? (await webhookSecret(folder));
  const secret = await openWebhookSecret(opened.store, ownWebhookSecret);
  const commands = openCommandSide({
    config,
    webhooks: { deliveries, secret, kindOf: addressKinds(config.webhooks.allowedNetworks) },
    store: freshness.store,
    sharedStore: opened.shared,
    readModels: { ...readModels, waitForRevision: projector.waitForRevision },
    identities,
    provider: wrapProvider(
      await openFileIn(folder, 'provider-ledger.sqlite', (file) => openProvider(config, log, file)),
    ),
    metrics,
    log,
  });
  const relay = await openRelay({
    config,
    store: opened.store,
    fileOf: folder.path,
    logger: log,
    projector,
  });
  const { store } = opened;
  const deliverer = await openDeliverer({
    config,
    store,
    deliveries,
    secret,
    metrics,
    logger: log,
    projector,
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
  const sides = {
    webhookSecret: secret,
    projector,
    commands,
    relay,
    deliverer,
    verification,
    sealer,
  };
  return { config, metrics, opened, readModels, ...sides };
};

const watchMetrics = ({ metrics, opened, ...sides }: Parts): void => {
  const { commands, projector, relay, deliverer } = sides;
  watchCommits(metrics, opened);
  watchCommandMetrics(metrics, commands);
  watchProjectionMetrics(metrics, projector);
  watchRelayMetrics(metrics, relay);
  watchDelivererMetrics(metrics, deliverer);
};

const registerApis = (app: FastifyInstance, authHooks: AuthHooks, parts: Parts): void => {
  const { config, opened, readModels, projector, commands, relay, verification, sealer } = parts;
  const { store } = opened;
  commands.register(app, authHooks);
  registerProjectorApi(app, authHooks, {
    projector,
    readModels,
    store,
    relay,
    topicPrefix: topicPrefixOf(config),
    verification,
    sealer,
  });
  registerAuditApi(app, authHooks, {
    store,
    readModels,
    operationsMax: config.maxOperationsPerPayment,
    providers: config.provider.names,
    onVerified: verification.note,
    sealingKey: sealer.publicKey,
    keptHeads: sealer.keptHeads,
  });
  registerQueryApi(app, authHooks, {
    store,
    readModels,
    webhookSecret: parts.webhookSecret,
    behind: opened.shared ? behindTheLog({ store, readModels }) : inStepWith(projector),
  });
  registerConsole(app, config.tokens.merchantClaims);
};

/** Ready while the event store is up and the projector moves; no other engine stops all requests. */
const readiness = (app: FastifyInstance, parts: Parts) => async () => {
  const { config, opened, projector, commands, relay, deliverer } = parts;
  const eventStore = await engineState(opened.ping, positionOf(opened));
  const simulated = config.provider.kind === 'simulator';
  return {
    ready: eventStore.state === 'up' && !app.lifecycle.closing && !projector.status().stuck,
    engines: {
      eventStore,
      readModels: projectionState(projector),
      provider: { ...providerState(commands, config), simulated },
      relay: relayState(relay),
      webhooks: delivererState(deliverer),
    },
  };
};

/**
 * Opens the data folder's files and builds the service. Throws StoreUnavailable, SecretRefused or
 * LogMisfit, each with one line for the operator.
 */
export const openService = async (
  config: Config,
  folder: DataFolder,
  log: Log,
  onFatal: (error: Error) => void,
  wrappers: Wrappers = {},
): Promise<Service> => {
  const parts = await openParts(config, folder, log, onFatal, wrappers);
  const { metrics, opened, readModels, projector, commands, relay, verification, sealer } = parts;
  const { deliverer } = parts;
  watchMetrics(parts);
  const authHooks = await openAuthHooks(config, { log, metrics });
  const app = buildApp({ log, metrics, maxInFlight: config.maxInFlight });
  registerApis(app, authHooks, parts);
  registerHealth(app, { metrics, ready: readiness(app, parts) });
  commands.startReconciling();
  commands.watchAuthorizations();
  commands.startSweep(projector.caughtUp);
  await commands.providerAhead.start();
  return {
    app,
    eventsAtStart: Number(opened.lastPosition() ?? 0),
    warnings: [...folder.warnings, ...readOnlyWarnings(commands)],
    giveUp: async () => {
      // A file never stands still, and what is appended to it until the end is kept.
      if (opened.shared) await opened.store.close();
    },
    stop: async () => {
      commands.beginStop();
      await closeGracefully(app);
      await commands.stop();
      await verification.stop();
      await sealer.stop();
      await deliverer.stop();
      await relay.stop();
      await projector.stop();
      await opened.store.close();
      await readModels.close();
      folder.release();
    },
  };
};
