/** Everything in one process over one data folder. */
import { statfs } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { registerAuditApi } from '../audit/routes.ts';
import { type CommandSideOptions, openCommandSide, openDocuments } from '../command-api/compose.ts';
import { providerState, readOnlyWarnings } from '../command-api/health.ts';
import { withCheckedSecret } from '../command-api/idempotency-secret.ts';
import { registerConsole } from '../console/routes.ts';
import { openErasureLedger } from '../personal-data/erasure/ledger.ts';
import { KEYS_FILE, openKeyStore } from '../personal-data/open.ts';
import { createOpener } from '../personal-data/opener.ts';
import type { KeyStore } from '../personal-data/port.ts';
import { verifyKeysOf } from '../personal-data/verify-keys.ts';
import { trackFreshness } from '../projector/freshness.ts';
import { openProjectorSide } from '../projector/open.ts';
import type { Provider } from '../providers/port.ts';
import { openSimulator, type Simulator } from '../providers/simulator/simulator.ts';
import { behindTheStream } from '../query-api/get-payment.ts';
import { registerQueryApi } from '../query-api/routes.ts';
import { openEventStore } from '../shared/event-store/open.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { openAuthHooks } from '../shared/http/auth/hooks.ts';
import { createIdentities } from '../shared/http/idempotency.ts';
import { buildApp } from '../shared/http/server/app.ts';
import { closeGracefully, engineState, registerHealth } from '../shared/http/server/health.ts';
import { searchedOnceFilled } from '../shared/read-models/filled.ts';
import { openReadModels } from '../shared/read-models/open.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { type Config, secretsOf } from '../shared/runtime/config.ts';
import type { NewThread } from '../shared/runtime/jobs.ts';
import type { Log } from '../shared/runtime/log.ts';
import { createMetrics, type Metrics } from '../shared/runtime/metrics.ts';
import { lastBackupOf } from '../shared/runtime/private-files.ts';
import { addressKinds } from '../webhooks/endpoints/addresses.ts';
import { openDeliveries } from '../webhooks/store/open.ts';
import {
  type DataFolder,
  idempotencySecret,
  openFileIn,
  personalKek,
  webhookSecret,
} from './data-folder.ts';
import { newThread as newJobThread } from './jobs.ts';

/** Tests stand between the service and its engines. */
export type Wrappers = {
  store?: (own: EventStore) => EventStore;
  provider?: (own: Provider) => Provider;
  readModels?: (own: ReadModels) => ReadModels;
  keys?: (own: KeyStore) => KeyStore;
};

type Options = Wrappers & Pick<CommandSideOptions, 'unresolvedAfterMs'> & { newThread?: NewThread };

const openProvider = async (
  config: Config,
  log: Log,
  ledgerFile: string,
): Promise<Provider | Simulator> => {
  const { kind, timeoutMs, authenticationTimeoutMs } = config.provider;
  if (kind === 'simulator') {
    const times = { timeoutMs, authenticationTimeoutMs };
    return openSimulator({ ...times, file: ledgerFile, port: config.port, logger: log });
  }
  // Its HTTP client is a sixth of the files that a start would read (ADR-0014).
  const { openOuterProvider } = await import('../command-api/open-provider.ts');
  return openOuterProvider(config, log);
};

const watchFolder = (metrics: Metrics, { dataDir, eventStoreDbUrl }: Config): void =>
  metrics.beforeScrape(async () => {
    const { bavail, bsize } = await statfs(dataDir);
    metrics.dataFreeBytes.set(bavail * bsize);
    if (eventStoreDbUrl !== undefined) return;
    const since = lastBackupOf(dataDir)?.getTime() ?? performance.timeOrigin;
    metrics.backupAgeSeconds.set((Date.now() - since) / 1000);
  });

const openSides = async (
  config: Config,
  folder: DataFolder,
  log: Log,
  onFatal: (error: Error) => void,
  { newThread = newJobThread, ...wrappers }: Options,
) => {
  const metrics = createMetrics();
  const drivers = { config, log, fileOf: folder.path, onFatal, newThread };
  const engine = await openEventStore({ ...drivers, metrics });
  const secrets = secretsOf(config, config.idempotencySecret ?? (await idempotencySecret(folder)));
  const identities = createIdentities(secrets);
  const freshness = trackFreshness();
  const checked = await withCheckedSecret(engine.store, identities, onFatal);
  const store = freshness.tracked(wrappers.store?.(checked) ?? checked);
  // Before anything opens a box that the log does not know as erased.
  const noteErasure = await openErasureLedger(config.erasureLedger, store);
  const opened = await openReadModels(drivers, secrets);
  const readModels = searchedOnceFilled(wrappers.readModels?.(opened) ?? opened, store);
  const deliveries = await openDeliveries(drivers);
  const ownKek = config.personalData.kek ?? (await personalKek(folder));
  if (config.personalData.kek === undefined)
    log.warn(
      'the master key of personal data lies beside the keys: a thief of the data folder can read every text; set PERSONAL_DATA_KEK_FILE to a file on another volume',
    );
  const stored = await openFileIn(folder, KEYS_FILE, () =>
    openKeyStore({ ...drivers, ownKek, takes: true }),
  );
  const keys = wrappers.keys?.(stored) ?? stored;
  const opener = createOpener({ keys, store, logger: log });
  const own = { config, store, metrics, log };
  const verifyKeys = verifyKeysOf(store, keys);
  const projection = await openProjectorSide({
    ...{ ...own, readModels, freshness, deliveries },
    webhookSecret: async () => config.webhooks.secret ?? webhookSecret(folder),
    fileOf: folder.path,
    newThread,
    openText: opener.openText,
    verifyKeys,
  });
  const provider = await openFileIn(folder, 'provider-ledger.sqlite', (file) =>
    openProvider(config, log, file),
  );
  const commands = openCommandSide({
    ...own,
    webhooks: {
      deliveries,
      secret: projection.webhookSecret,
      kindOf: addressKinds(config.webhooks.allowedNetworks),
    },
    documents: await openDocuments(drivers),
    unresolvedAfterMs: wrappers.unresolvedAfterMs,
    sharedStore: engine.shared,
    readModels: { ...readModels, waitForRevision: freshness.waitIn(readModels) },
    identities,
    keys,
    noteErasure,
    opener,
    provider: wrappers.provider?.(provider) ?? provider,
  });
  watchFolder(metrics, config);
  return { ...own, engine, readModels, projection, commands, provider, keys, verifyKeys, opener };
};

type Sides = Awaited<ReturnType<typeof openSides>>;

const registerApis = async (app: FastifyInstance, sides: Sides): Promise<void> => {
  const { config, log, metrics, store, engine, readModels, projection, commands } = sides;
  const { openText, bodies } = sides.opener;
  const { projector, verification, sealer } = projection;
  const authHooks = await openAuthHooks(config, { log, metrics });
  commands.register(app, authHooks);
  projection.register(app, authHooks);
  registerAuditApi(app, authHooks, {
    store,
    openText,
    readModels,
    operationsMax: config.maxOperationsPerPayment,
    providers: config.provider.names,
    noteVerification: verification.noteVerification,
    verifyKeys: sides.verifyKeys,
    sealingKey: sealer.publicKey,
    keptHeads: sealer.keptHeads,
  });
  registerQueryApi(app, authHooks, {
    store,
    openText,
    bodies,
    readModels,
    webhookSecret: projection.webhookSecret,
    // The projector of this process knows what is behind: no read is needed.
    behind: engine.shared ? behindTheStream(store) : projector.isBehind,
  });
  if ('register' in sides.provider) sides.provider.register(app);
  registerConsole(app, config.tokens.merchantClaims);
};

/** Ready while the event store is up and the projector moves; no other engine stops all requests. */
const readiness =
  (app: FastifyInstance, { config, engine, projection, commands }: Sides) =>
  async () => {
    const position = engine.shared ? {} : { position: engine.lastPosition() ?? '0' };
    const eventStore = await engineState(engine.ping, position);
    const simulated = config.provider.kind === 'simulator';
    const { projection: readModels, relay, webhooks } = await projection.states();
    const isStuck = projection.projector.status().stuck;
    const provider = { ...providerState(commands, config), simulated };
    return {
      ready: eventStore.state === 'up' && !app.lifecycle.closing && !isStuck,
      engines: { eventStore, readModels, provider, relay, webhooks },
    };
  };

/** Throws StoreUnavailable, SecretRefused or LogMisfit, each with one line for the operator. */
export const openService = async (
  config: Config,
  folder: DataFolder,
  log: Log,
  onFatal: (error: Error) => void,
  wrappers: Options = {},
) => {
  const sides = await openSides(config, folder, log, onFatal, wrappers);
  const { metrics, engine, store, readModels, projection, commands } = sides;
  const app = buildApp({ log, metrics, maxInFlight: config.maxInFlight });
  await registerApis(app, sides);
  registerHealth(app, { metrics, ready: readiness(app, sides) });
  await commands.start(projection.projector.caughtUp);
  return {
    app,
    eventsAtStart: Number(engine.lastPosition() ?? 0),
    warnings: [...folder.warnings, ...readOnlyWarnings(commands)],
    /** Gives up the calls of an event store that stands still, so that `stop` ends in its time. */
    giveUp: async (): Promise<void> => {
      // A file never stands still, and appends to it are kept until the end.
      if (engine.shared) await store.close();
    },
    stop: async (): Promise<void> => {
      commands.beginStop();
      await closeGracefully(app, config);
      await commands.stop();
      await projection.stop();
      await store.close();
      await readModels.close();
      await sides.keys.close();
      folder.release();
    },
  };
};
export type EmbeddedService = Awaited<ReturnType<typeof openService>>;
