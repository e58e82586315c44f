/**
 * Two command processes on one event store, one provider and one set of read models, as far as they
 * can be had in one test process: each has queues, cache, recovery, sweep and a clock of its own, and
 * neither knows of the other. The projector runs beside them, as the third process would.
 */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import { type CommandSide, openCommandSide } from '../../command-api/compose.ts';
import { createOpener } from '../../personal-data/opener.ts';
import { startProjector } from '../../projector/compose.ts';
import { PARKED_ROUTES, PROJECTION_ROUTES } from '../../projector/projection-routes.ts';
import type { LedgerEntry, Provider } from '../../providers/port.ts';
import { openSimulator } from '../../providers/simulator/simulator.ts';
import { AppendOutcomeUnknown } from '../../shared/event-store/errors.ts';
import { asPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { createIdentities } from '../../shared/http/idempotency.ts';
import { registerRoutes } from '../../shared/http/route.ts';
import { createStreams } from '../../shared/http/server/streams.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { foldReadModel, foldState } from '../../shared/payment/fold.ts';
import { bodyOf } from '../../shared/payment/response.ts';
import { openPersonal } from '../../shared/payment/state.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { addressKinds } from '../../webhooks/endpoints/addresses.ts';
import { sqliteDeliveries } from '../../webhooks/store/sqlite.ts';
import { providerFaults } from './faults-on-demand.ts';
import { memoryDocument } from './memory-feed.ts';
import { memoryKeys } from './personal-data.ts';
import { readModelsIn } from './read-models-here.ts';
import {
  configOf,
  idOf,
  openApp,
  requestsTo,
  SECRET,
  SECRETS,
  token,
} from './service-in-process.ts';
import { silentLog } from './silent-log.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { PATIENT } from './time-bounds.ts';
import { until } from './until.ts';

/** For so long after its intent a call may be in flight (gaps §7). */
export const IN_FLIGHT_MS = Number(PATIENT.PROVIDER_TIMEOUT_MS) + 5_000;
export const PAST_FLIGHT_MS = IN_FLIGHT_MS + 100;

type StoreFaults = {
  /** How many streams have been read. */
  streamReads: number;
  /** So many appends from now on are stored, and their answer is lost. */
  loseResponses: number;
  /** Called before each stream is read. */
  beforeRead: ((stream: string) => Promise<void>) | undefined;
  /** Called before each append that is let through. */
  beforeAppend: ((stream: string) => Promise<void>) | undefined;
};

type LogLine = { level: 'info' | 'warn' | 'error'; message: string; fields: object };

export type CommandProcess = Awaited<ReturnType<TwoCommandProcesses['open']>>;

/** A provider in the place of the one that all processes share, and settings over theirs. */
type OtherProvider = { settings: Record<string, string>; provider?: Provider };

export type TwoCommandProcesses = Awaited<ReturnType<typeof openTwoCommandProcesses>>;

const NO_FAULTS: StoreFaults = {
  streamReads: 0,
  loseResponses: 0,
  beforeRead: undefined,
  beforeAppend: undefined,
};

const withFaults = (store: EventStore, faults: StoreFaults): EventStore => ({
  ...store,
  readStream: async (stream) => {
    faults.streamReads += 1;
    await faults.beforeRead?.(stream);
    return store.readStream(stream);
  },
  append: async (stream, expected, events) => {
    await faults.beforeAppend?.(stream);
    const stored = await store.append(stream, expected, events);
    if (faults.loseResponses === 0) return stored;
    faults.loseResponses -= 1;
    throw new AppendOutcomeUnknown('the answer was lost');
  },
});

/**
 * Opens two processes; `await using` ends them. `settings` are those of every process, `around`
 * stands between each of them and the provider. The log begins as a copy of `log`, a file.
 */
export const openTwoCommandProcesses = async (
  settings: Record<string, string> = {},
  around: (provider: Provider) => Provider = (provider) => provider,
  log?: string,
) => {
  const folder = temporaryFolder();
  if (log !== undefined) copyFileSync(log, join(folder.path, 'events.sqlite'));
  const config = configOf({ ...SECRETS, DATA_DIR: folder.path, ...settings });
  const own = await token('m_test');
  const store: EventStore = await openSqliteEventStore({
    file: join(folder.path, 'events.sqlite'),
  });
  const readModels = readModelsIn(folder.path);
  const projector = await startProjector({ store, readModels, logger: silentLog });
  const provider = await openSimulator({
    file: join(folder.path, 'provider-ledger.sqlite'),
    timeoutMs: config.provider.timeoutMs,
  });
  const deliveries = sqliteDeliveries(join(folder.path, 'webhook-deliveries.sqlite'));
  const documents = {
    relay: memoryDocument(),
    verification: memoryDocument(),
    reconciliation: memoryDocument(),
    turn: memoryDocument(),
  };
  const keys = memoryKeys();
  const opener = createOpener({ keys, store, logger: silentLog });
  const beganMs = Date.now();
  const opened: { app: FastifyInstance; side: CommandSide }[] = [];

  /** A process that starts now; with another provider, and settings that name it, where one is given. */
  const open = async (other?: OtherProvider) => {
    const ownConfig = other ? configOf({ ...SECRETS, ...settings, ...other.settings }) : config;
    const ownProvider = other?.provider ?? provider;
    const faults = providerFaults();
    const storeFaults: StoreFaults = { ...NO_FAULTS };
    /** Time passes where a test says so: no call is begun too late for the other process to wait for it. */
    const clock: { aheadMs: number; standsAtMs?: number | undefined } = { aheadMs: 0 };
    const lines: LogLine[] = [];
    const metrics = createMetrics();
    const write = (level: LogLine['level']) => (fields: object, message: string) =>
      void lines.push({ level, message, fields });
    const side = openCommandSide({
      config: ownConfig,
      store: withFaults(store, storeFaults),
      sharedStore: true,
      readModels,
      documents,
      webhooks: {
        deliveries,
        secret: async () => SECRET,
        kindOf: addressKinds([]),
      },
      identities: createIdentities([SECRET]),
      keys,
      opener,
      provider: faults.wrap({ ...around(ownProvider), close: async () => undefined }),
      metrics,
      log: Object.assign(Object.create(silentLog), {
        info: write('info'),
        warn: write('warn'),
        error: write('error'),
      }),
      nowMs: () => clock.standsAtMs ?? beganMs + clock.aheadMs,
    });
    const { app, authHooks } = await openApp({ ...SECRETS, ...settings });
    side.register(app, authHooks);
    registerRoutes(app, authHooks, PARKED_ROUTES, { projector, readModels });
    registerRoutes(app, authHooks, PROJECTION_ROUTES, { projector, streams: createStreams(app) });
    opened.push({ app, side });
    return {
      /** Not listening; a test may let it. */
      app,
      side,
      faults,
      store: storeFaults,
      clock,
      /** What it has written to its log. */
      lines,
      metrics,
      ...requestsTo(() => app, own),
    };
  };

  const [a, b] = [await open(), await open()];
  const events = async (paymentId: string) =>
    (await store.readStream(streamOf(paymentId))).map(asPaymentEvent);
  return {
    a,
    b,
    open,
    store,
    /** Of both processes. */
    keys,
    readModels,
    projector,
    ledger: async (paymentId?: string): Promise<LedgerEntry[]> => {
      const { entries } = await provider.ledger(null, 5_000);
      return paymentId === undefined ? entries : entries.filter((e) => e.paymentId === paymentId);
    },
    events,
    state: async (paymentId: string) => {
      const state = foldState(await events(paymentId));
      if (state === undefined) throw new Error('there is no such payment');
      return state;
    },
    /** The body of the payment as it is now. */
    body: async (paymentId: string) => {
      const readModel = foldReadModel(await events(paymentId));
      if (readModel === undefined) throw new Error('there is no such payment');
      return bodyOf(readModel, await openPersonal(opener.openText, readModel));
    },
    /** Ends the faults of both processes, and puts their clocks right. */
    calm: (): void => {
      for (const { clock, faults, store } of [a, b]) {
        Object.assign(clock, { aheadMs: 0, standsAtMs: undefined });
        faults.respondsToLookUps = true;
        faults.questions = 0;
        faults.calls.length = 0;
        Object.assign(store, NO_FAULTS);
      }
    },
    [Symbol.asyncDispose]: async (): Promise<void> => {
      for (const { app, side } of opened) {
        await app.close();
        side.beginStop();
        await side.stop();
      }
      await projector.stop();
      await store.close();
      await readModels.close();
      await provider.close();
      folder.remove();
    },
  };
};

/** Two processes for all tests of a file, calm after each of them and ended after the last. */
export const processesOfTests = async (...options: Parameters<typeof openTwoCommandProcesses>) => {
  const processes = await openTwoCommandProcesses(...options);
  afterEach(() => processes.calm());
  afterAll(() => processes[Symbol.asyncDispose]());
  return processes;
};

/** What the provider carried out for a payment, oldest first: AUTHORIZE, CAPTURE and so on. */
export const kindsOf = async (processes: TwoCommandProcesses, paymentId: string) =>
  (await processes.ledger(paymentId)).map(({ kind }) => kind);

/** The types of a payment's events, oldest first. */
export const typesOf = async (processes: TwoCommandProcesses, paymentId: string) =>
  (await processes.events(paymentId)).map(({ event }) => event.type);

/** The id of a payment that this process has just authorized. */
export const authorizedAt = async (at: CommandProcess): Promise<string> => idOf(await at.create());

/**
 * Creates payments until one succeeds within the request budget. The first requests of a process
 * are its slowest, and would spend a short budget before they reach what a test is about.
 */
export const warmUp = async (...all: CommandProcess[]): Promise<void> => {
  for (const at of all)
    await until('a create succeeds', async () => (await at.create()).status === 200);
};
