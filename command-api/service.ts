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
import { type GuardedProvider, guarded } from './provider/guard.ts';
import { measured } from './provider/measured.ts';
import type { Provider } from './provider/port.ts';
import { createQueues } from './queues.ts';
import { createRecovery, type Recovery } from './recovery.ts';

export type CommandSideOptions = {
  config: Config;
  /** Every append of this process goes through it. */
  store: EventStore;
  views: CommandApi['views'];
  identities: Identities;
  provider: Provider;
  metrics: Metrics;
  log: Log;
};

export type CommandSide = {
  provider: GuardedProvider;
  recovery: Recovery;
  /** Registers the POST routes. */
  register(app: FastifyInstance, guard: Guard): void;
  /** Ends the ladders, waits for what has begun, closes the provider. Close the server first. */
  stop(): Promise<void>;
};

/** The event store was written with another idempotency secret: repeats would be charged again. */
export class SecretRefused extends Error {
  override name = 'SecretRefused';
}

const CACHED_PAYMENTS_MAX = 10_000;

/** Throws SecretRefused where the events were written with another secret (decisions §8). */
export const checkSecret = async (
  store: Pick<EventStore, 'claimMeta'>,
  identities: Identities,
): Promise<void> => {
  const own = identities.checkValue();
  if ((await store.claimMeta('idempotency-check', own)) === own) return;
  throw new SecretRefused(
    'IDEMPOTENCY_SECRET: the events were written with another secret; with this one repeated requests would be charged again. Put the old secret back',
  );
};

const rulesOf = (config: Config, merchantId: string) => {
  const { maxAmount, acceptedBrands } = merchantRules(config, merchantId);
  return { maxAmountMinor: maxAmount, ...(acceptedBrands && { acceptedBrands }) };
};

export const openCommandSide = (options: CommandSideOptions): CommandSide => {
  const { config, store, views, identities, metrics, log } = options;
  const provider = guarded(measured(options.provider, metrics));
  const queues = createQueues();
  const paymentLog = createPaymentLog({
    store,
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
    rulesOf: (merchantId) => rulesOf(config, merchantId),
    contextOf: ({ actor, requestId }) => ({
      actor,
      requestId,
      correlationId: requestId,
      causationId: requestId,
    }),
  };
  return {
    provider,
    recovery,
    register: (app, guard) =>
      registerCommandApi(app, {
        guard: guard('payments:write'),
        room,
        views,
        requestBudgetMs: config.requestBudgetMs,
        onCommand: (command, outcome, seconds) => {
          metrics.commands.add(1, command, outcome);
          metrics.commandSeconds.observe(seconds, command);
        },
      }),
    stop: async () => {
      recovery.stop();
      await queues.idle();
      await provider.close();
    },
  };
};
