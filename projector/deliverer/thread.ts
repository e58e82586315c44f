/** On the event loop that serves requests the deliverer would take half of a create's CPU time again. */
import { Worker } from 'node:worker_threads';
import type { EventStore, Position } from '../../shared/event-store/port.ts';
import { within } from '../../shared/runtime/back-off.ts';
import type { Config } from '../../shared/runtime/config.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { countSpans, type SpanCounts } from '../../shared/runtime/tracing.ts';
import type { Attempt } from '../../shared/webhooks/delivery-row.ts';
import type { DeliveryStore } from '../../shared/webhooks/delivery-store/port.ts';
import {
  type Delivering,
  type EndpointsOptions,
  type EndpointsStatus,
  endpointsStatus,
} from './endpoints.ts';

export type CountedAttempt = Pick<Attempt, 'outcome' | 'latencyMs'>;

/** Holds a secret: never log it. `end`: how far the log may be read. */
export type ThreadData = {
  config: Pick<Config, 'dataDir' | 'mongoUrl' | 'mode' | 'traces'>;
  allowedNetworks: readonly string[];
  secret: string;
  end: Position | null;
  priorityLoweredBy: number;
};

/** The thread waits for no reply. `spans`: since the note before. */
export type Reports = {
  log(level: keyof Logger, fields: object, message: string): void;
  disable(...request: Parameters<EndpointsOptions['disable']>): void;
  attempt(attempt: CountedAttempt): void;
  note(status: EndpointsStatus, spans: SpanCounts): void;
};

/** A new end of the log, or to stop. */
export type Order = { end: Position | null } | 'stop';

type ThreadOptions = Pick<ThreadData, 'config' | 'allowedNetworks'> &
  Pick<EndpointsOptions, 'disable' | 'logger'> & {
    store: Pick<EventStore, 'end'>;
    deliveries: Pick<DeliveryStore, 'load'>;
    onAttempt(attempt: CountedAttempt): void;
    newWorker?: (data: ThreadData) => Worker;
  };

/** Between two looks for progress: many appends make one message. */
const PROGRESS_MS = 20;
const STOP_MS_MAX = 5_000;
/** Leaves the thread about a thirtieth of a CPU that requests fill (scheduling.ts). */
const PRIORITY_LOWERED_BY = 15;

export const createDelivererWorker = (data: ThreadData): Worker =>
  new Worker(new URL('./worker.ts', import.meta.url), {
    // Flags of this process, such as --input-type, concern its own main module.
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32 },
    workerData: data,
  });

export const deliverInThread = async (
  options: ThreadOptions,
  secret: string,
): Promise<Delivering> => {
  const { store, config, allowedNetworks, logger, newWorker = createDelivererWorker } = options;
  // Makes the file where there is none, so that two connections never make it at once.
  await options.deliveries.load('');
  let end = await store.end();
  const { dataDir, mongoUrl, mode, traces } = config;
  const thread = newWorker({
    config: { dataDir, mongoUrl, mode, traces },
    allowedNetworks,
    secret,
    end,
    priorityLoweredBy: PRIORITY_LOWERED_BY,
  });
  const order = (message: Order): void => thread.postMessage(message);
  let status = endpointsStatus([]);
  let disabling = Promise.resolve();

  const reports: Reports = {
    log: (level, fields, message) => logger[level](fields, message),
    disable: (...request) => {
      disabling = disabling.then(() => options.disable(...request));
    },
    attempt: options.onAttempt,
    note: (last, spans) => {
      status = last;
      countSpans(spans);
    },
  };
  // Under `node --watch` Node itself posts messages, without a name.
  thread.on('message', ({ name, args }: { name?: keyof Reports; args: unknown[] }) => {
    if (name !== undefined) (reports[name] as (...values: unknown[]) => void)(...args);
  });
  const { promise: ended, reject } = Promise.withResolvers<never>();
  thread.on('error', reject).on('exit', () => reject(new Error('the thread of deliveries ended')));

  const announcing = setInterval(async () => {
    const now = await store.end();
    if (now === end) return;
    end = now;
    order({ end });
  }, PROGRESS_MS);

  return {
    status: () => status,
    ended,
    stop: async () => {
      clearInterval(announcing);
      order('stop');
      // A request that does not end in time is sent again later, as after a crash.
      await within(STOP_MS_MAX, ended, () => new Error('late')).catch(() => thread.terminate());
      await disabling;
    },
  };
};
