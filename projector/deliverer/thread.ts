/** On the event loop that serves requests the deliverer would take half of a create's CPU time again. */
import { Worker } from 'node:worker_threads';
import type { EventStore, Position } from '../../shared/event-store/port.ts';
import { WEBHOOK_MERCHANTS_STREAM } from '../../shared/payment/webhook-events.ts';
import { backOffMs, pause, within } from '../../shared/runtime/back-off.ts';
import type { Config } from '../../shared/runtime/config.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { countSpans, type SpanCounts } from '../../shared/runtime/tracing.ts';
import type { Attempt } from '../../shared/webhooks/delivery-row.ts';
import type { Deliverer, DelivererOptions, Turn } from './deliverer.ts';
import { type DelivererStatus, endpointsStatus } from './status.ts';

/** Sent to the thread when it changes. `end`: how far the log may be read. */
export type Progress = { end: Position | null; turn: Turn };

export type CountedAttempt = Pick<Attempt, 'outcome' | 'latencyMs'>;

/** Holds a secret: never log it. */
export type ThreadData = {
  config: Pick<Config, 'dataDir' | 'mongoUrl' | 'mode' | 'traces'>;
  allowedNetworks: readonly string[];
  secret: string;
  progress: Progress;
  priorityLoweredBy: number;
};

/** The thread waits for no reply. `note` has the news since the note before. */
export type Reports = {
  log(level: keyof Logger, fields: object, message: string): void;
  disable(...request: Parameters<DelivererOptions['disable']>): void;
  note(status: DelivererStatus, attempts: readonly CountedAttempt[], spans: SpanCounts): void;
};

type DelivererThreadOptions = Pick<ThreadData, 'config' | 'allowedNetworks'> & {
  store: Pick<EventStore, 'end' | 'lastRevision'>;
  onAttempt(attempt: CountedAttempt): void;
  newWorker?: (data: ThreadData) => Worker;
} & Pick<DelivererOptions, 'deliveries' | 'disable' | 'secret' | 'logger' | 'turn' | 'backOff'>;

const IDLE_MS = 1_000;
/** Between two looks for progress: many appends make one message. */
const PROGRESS_MS = 20;
const STOP_MS_MAX = 5_000;
const WELL_AFTER_MS = 60_000;
/** Leaves the thread about a thirtieth of a CPU that requests fill (scheduling.ts). */
const PRIORITY_LOWERED_BY = 15;

export const createDelivererWorker = (data: ThreadData): Worker =>
  new Worker(new URL('./worker.ts', import.meta.url), {
    // Flags of this process, such as --input-type, concern its own main module.
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32 },
    workerData: data,
  });

export const startDelivererThread = (options: DelivererThreadOptions): Deliverer => {
  const { store, deliveries, logger, turn, newWorker = createDelivererWorker } = options;
  const { backOff = { minMs: 250, maxMs: 30_000 } } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  let worker: Worker | undefined;
  let disabling = Promise.resolve();
  let status: DelivererStatus = { state: 'idle', ...endpointsStatus([], 0) };

  const reports: Reports = {
    log: (level, fields, message) => logger[level](fields, message),
    disable: (...request) => {
      disabling = disabling.then(() => options.disable(...request));
    },
    note: (last, attempts, spans) => {
      status = last;
      for (const attempt of attempts) options.onAttempt(attempt);
      countSpans(spans);
    },
  };

  const untilEndpoint = async (): Promise<void> => {
    while (!signal.aborted && (await store.lastRevision(WEBHOOK_MERCHANTS_STREAM)) === null)
      await pause(IDLE_MS, signal);
  };

  const progressNow = async (): Promise<Progress> => ({ end: await store.end(), turn: turn() });

  const run = async (): Promise<void> => {
    await untilEndpoint();
    // Makes the file where there is none, so that two connections never make it at once.
    await deliveries.load('');
    const secret = await options.secret();
    let progress = await progressNow();
    if (signal.aborted) return;
    const { config, allowedNetworks } = options;
    const data = { config, allowedNetworks, secret, progress };
    const thread = newWorker({ ...data, priorityLoweredBy: PRIORITY_LOWERED_BY });
    worker = thread;
    const ended = Promise.withResolvers<unknown>();
    thread.on('error', ended.reject).on('exit', ended.resolve);
    // Under `node --watch` Node itself posts messages, without a name.
    thread.on('message', ({ name, args }: { name?: keyof Reports; args: unknown[] }) => {
      if (name !== undefined) (reports[name] as (...values: unknown[]) => void)(...args);
    });
    const announcing = setInterval(async () => {
      const { end, turn: now } = await progressNow();
      if (end === progress.end && now === progress.turn) return;
      progress = { end, turn: now };
      thread.postMessage(progress);
    }, PROGRESS_MS);
    try {
      await ended.promise;
    } finally {
      clearInterval(announcing);
    }
  };

  const loop = async (): Promise<void> => {
    let failures = 0;
    while (!signal.aborted) {
      const beganMs = performance.now();
      const error = await run().then(
        () => new Error('the thread of deliveries ended'),
        (thrown: unknown) => thrown,
      );
      if (signal.aborted) break;
      if (performance.now() - beganMs > WELL_AFTER_MS) failures = 0;
      const [reason, waitMs] = [reasonOf(error), backOffMs(backOff, failures)];
      failures += 1;
      // The counts of the endpoints stay: events that wait there wait on.
      status = { ...status, state: 'backing-off', error: reason };
      logger.error({ reason, waitMs }, 'webhook deliveries interrupted: their thread starts again');
      await pause(waitMs, signal);
    }
    status = { ...status, state: 'stopped' };
  };
  const ended = loop();

  return {
    status: () => status,
    stop: async () => {
      stopping.abort();
      worker?.postMessage('stop');
      // A request that does not end in time is sent again later, as after a crash.
      await within(STOP_MS_MAX, ended, () => new Error('late')).catch(() => worker?.terminate());
      await ended;
      await disabling;
      await deliveries.close();
    },
  };
};
