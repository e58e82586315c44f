/**
 * The command side put together over its engines, for whichever process it runs in: the guarded
 * provider, the queues, the payment log, recovery and the POST routes.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { EventStore } from '../shared/event-store/port.ts';
import type { Authorize } from '../shared/http/auth/authorize.ts';
import { type Config, merchantRules } from '../shared/runtime/config.ts';
import type { Log } from '../shared/runtime/log.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import type { Identities } from './idempotency.ts';
import type { CommandDeps } from './operate.ts';
import { registerCommandOps } from './operator/routes.ts';
import { createPaymentLog } from './payment-log.ts';
import { measured } from './provider/measured.ts';
import type { Provider } from './provider/port.ts';
import { type ResilientProvider, resilient } from './provider/resilience.ts';
import { createQueues } from './queues.ts';
import { registerReconcileApi } from './reconcile/routes.ts';
import { createRecovery, inFlightMsMaxOf, type Recovery } from './recovery/recovery.ts';
import { type Sweep, type SweepOptions, startSweep } from './recovery/sweep.ts';
import { createReferenceClaims } from './reference-claims.ts';
import type { Waiting } from './request-budget.ts';
import { type CommandApi, registerCommandApi } from './routes.ts';

export type CommandSideOptions = {
  config: Config;
  /** Every append of this process goes through it. */
  store: EventStore;
  /** Other processes append to it as well: a call of theirs may still run (gaps §7). */
  sharedStore: boolean;
  readModels: CommandApi['readModels'] & SweepOptions['readModels'];
  identities: Identities;
  provider: Provider;
  metrics: Metrics;
  log: Log;
  /** Wall clock in milliseconds; tests set it. */
  nowMs?: () => number;
};

export type CommandSide = {
  provider: ResilientProvider;
  recovery: Recovery;
  /**
   * Starts looking for open intents that nobody here follows; `ready` is what the first look may
   * wait for (sweep.ts). Ends with `beginStop`.
   */
  startSweep(ready?: Promise<unknown>): void;
  /** Registers the POST routes and the operator's routes over them. */
  register(app: FastifyInstance, authorize: Authorize): void;
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

const CACHED_PAYMENTS_MAX = 1000;
/** Below the 9 s after which the process stops hard (shared/runtime/process-life.ts). */
const STOP_MS_MAX = 8_300;
const STOP_MS_MIN = 200;
/** Below the 8 s after which connections are cut (shared/http/server/app.ts). */
const ANSWERED_MS_MAX = 7_000;

const rulesOf = (config: Config, merchantId: string) => {
  const { maxAmount, acceptedBrands, merchantReference } = merchantRules(config, merchantId);
  return {
    maxAmountMinor: maxAmount,
    ...(acceptedBrands && { acceptedBrands }),
    uniqueReferences: merchantReference === 'unique',
  };
};

export const openCommandSide = (options: CommandSideOptions): CommandSide => {
  const { config, store, sharedStore, readModels, identities, metrics, log } = options;
  const { nowMs = Date.now } = options;
  const provider = resilient(measured(options.provider, metrics));
  const queues = createQueues();
  const paymentLog = createPaymentLog({
    store,
    nowMs,
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
    // After a start no earlier call of this process runs, so only others' are waited for.
    inFlightMsMax: sharedStore ? inFlightMsMaxOf(config.provider.timeoutMs) : 0,
    nowMs,
    logger: log,
  });
  const deps: CommandDeps = {
    log: paymentLog,
    provider,
    queues,
    recovery,
    identities,
    claims: createReferenceClaims({ store, identities, nowMs }),
    sharedStore,
    logger: log,
    rulesOf: (merchantId) => rulesOf(config, merchantId),
    contextOf: ({ actor, requestId }) => ({
      actor,
      requestId,
      correlationId: requestId,
      causationId: requestId,
    }),
  };
  let sweep: Sweep | undefined;
  const waiting: Waiting = new Set();
  let stopBeganMs: number | undefined;
  return {
    provider,
    recovery,
    startSweep: (ready) => {
      sweep ??= startSweep({ store, readModels, recovery, logger: log, ...(ready && { ready }) });
    },
    register: (app, authorize) => {
      registerReconcileApi(app, { authorize: authorize('audit:read'), store, provider });
      registerCommandOps(app, { authorize: authorize('ops:admin'), deps, readModels });
      registerCommandApi(app, {
        authorize: authorize('payments:write'),
        deps,
        readModels,
        requestBudgetMs: config.requestBudgetMs,
        waiting,
        onCommand: (command, outcome, seconds) => {
          metrics.commands.add(1, command, outcome);
          metrics.commandSeconds.observe(seconds, command);
        },
      });
    },
    beginStop: () => {
      stopBeganMs ??= performance.now();
      sweep?.stop();
      recovery.stopAsking();
      // A provider that takes longer than the stop has: what was begun is answered as unknown.
      setTimeout(() => {
        for (const spend of waiting) spend();
      }, ANSWERED_MS_MAX).unref();
    },
    stop: async () => {
      const goneMs = performance.now() - (stopBeganMs ?? performance.now());
      const waitMs = Math.max(STOP_MS_MIN, STOP_MS_MAX - goneMs);
      await Promise.race([queues.idle(), delay(waitMs, undefined, { ref: false })]);
      await provider.close();
    },
  };
};
