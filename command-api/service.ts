/**
 * The command side put together over its engines, for whichever process it runs in: the guarded
 * provider, the queues, the payment log, recovery and the POST routes.
 */
import type { FastifyInstance } from 'fastify';
import { type Config, merchantRules } from '../shared/config.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import type { Guard } from '../shared/http/guard.ts';
import type { Log } from '../shared/log.ts';
import type { Metrics } from '../shared/metrics.ts';
import { type CommandApi, registerCommandApi } from './app.ts';
import type { CommandRoom } from './carry-out.ts';
import { createPaymentLog } from './execute.ts';
import type { Identities } from './idempotency.ts';
import { registerCommandOps } from './ops.ts';
import { type GuardedProvider, guarded } from './provider/guard.ts';
import { measured } from './provider/measured.ts';
import type { Provider } from './provider/port.ts';
import { createQueues } from './queues.ts';
import { registerReconcileApi } from './reconcile-route.ts';
import { createRecovery, inFlightMsMaxOf, type Recovery } from './recovery.ts';
import { createReferenceClaims } from './reference-claims.ts';
import { type Sweep, type SweepOptions, startSweep } from './sweep.ts';

export type CommandSideOptions = {
  config: Config;
  /** Every append of this process goes through it. */
  store: EventStore;
  /** Other processes append to it as well: a call of theirs may still run (decisions §7). */
  sharedStore: boolean;
  views: CommandApi['views'] & SweepOptions['views'];
  identities: Identities;
  provider: Provider;
  metrics: Metrics;
  log: Log;
  /** Wall clock in milliseconds; tests set it. */
  nowMs?: () => number;
};

export type CommandSide = {
  provider: GuardedProvider;
  recovery: Recovery;
  /**
   * Starts looking for open intents that nobody here follows; `ready` is what the first look may
   * wait for (sweep.ts). Ends with `stop`.
   */
  startSweep(ready?: Promise<unknown>): void;
  /** Registers the POST routes and the operator's routes over them. */
  register(app: FastifyInstance, guard: Guard): void;
  /** Ends the ladders, waits for what has begun, closes the provider. Close the server first. */
  stop(): Promise<void>;
};

const CACHED_PAYMENTS_MAX = 1000;

const rulesOf = (config: Config, merchantId: string) => {
  const { maxAmount, acceptedBrands, merchantReference } = merchantRules(config, merchantId);
  return {
    maxAmountMinor: maxAmount,
    ...(acceptedBrands && { acceptedBrands }),
    uniqueReferences: merchantReference === 'unique',
  };
};

export const openCommandSide = (options: CommandSideOptions): CommandSide => {
  const { config, store, sharedStore, views, identities, metrics, log } = options;
  const { nowMs = Date.now } = options;
  const provider = guarded(measured(options.provider, metrics));
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
  const room: CommandRoom = {
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
  return {
    provider,
    recovery,
    startSweep: (ready) => {
      sweep ??= startSweep({ store, views, recovery, logger: log, ...(ready && { ready }) });
    },
    register: (app, guard) => {
      registerReconcileApi(app, { guard: guard('audit:read'), store, provider });
      registerCommandOps(app, { guard: guard('ops:admin'), room, views });
      registerCommandApi(app, {
        guard: guard('payments:write'),
        room,
        views,
        requestBudgetMs: config.requestBudgetMs,
        onCommand: (command, outcome, seconds) => {
          metrics.commands.add(1, command, outcome);
          metrics.commandSeconds.observe(seconds, command);
        },
      });
    },
    stop: async () => {
      sweep?.stop();
      recovery.stop();
      await queues.idle();
      await provider.close();
    },
  };
};
