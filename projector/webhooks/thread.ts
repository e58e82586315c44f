/**
 * Has the deliverer run in a thread of its own (thread-scan.ts), where one process has the log: it
 * then takes nothing of the event loop that serves requests. There is no thread before the first
 * endpoint, only a look at one stream. A thread that dies is started again, and the rows of the
 * endpoints say where it was.
 */
import type { EventStore, StoredForms } from '../../shared/event-store/port.ts';
import { WEBHOOK_MERCHANTS_STREAM } from '../../shared/payment/webhook-events.ts';
import { type BackOff, backOffMs, pause, within } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { resultOf } from '../../shared/runtime/scan.ts';
import { createScanThread, type ScanThread } from '../../shared/runtime/scan-thread.ts';
import { countSpans } from '../../shared/runtime/tracing.ts';
import type { DeliveryStore } from '../../shared/webhooks/delivery-store/port.ts';
import type { Deliverer, Turn } from './deliverer.ts';
import type { DelivererStatus } from './deliverer-status.ts';
import type { CountedAttempt, News, ThreadArgs, ThreadCalls } from './thread-messages.ts';

export type DelivererThreadOptions = Pick<ThreadArgs, 'settings' | 'allowedNetworks'> & {
  store: Pick<EventStore, 'append' | 'subscribe' | 'end' | 'lastRevision'>;
  /** How a thread reads the log of `store`. */
  scan: NonNullable<StoredForms['scan']>;
  /** The one of the routes, closed by `stop`; the thread opens its own. */
  deliveries: DeliveryStore;
  secret(): Promise<string>;
  logger: Logger;
  turn(): Turn;
  onAttempt(attempt: CountedAttempt): void;
  /** Tests end it. */
  newThread?: () => ScanThread;
  backOff?: BackOff;
};

const MODULE = new URL('./thread-scan.ts', import.meta.url).href;
/** Between two looks for the first endpoint. */
const IDLE_MS = 1_000;
/** After so long without other news the thread gets these again. */
const NEWS_MS_MAX = 500;
const STOP_MS_MAX = 5_000;
const WELL_AFTER_MS = 60_000;

/** A thread for the deliverer: of a CPU that requests fill it keeps about a thirtieth. */
export const createDelivererThread = (): ScanThread => createScanThread({ priorityLoweredBy: 15 });

/** Starts delivering in a thread, once a merchant has an endpoint. */
export const startDelivererThread = (options: DelivererThreadOptions): Deliverer => {
  const { store, deliveries, logger, turn, newThread = createDelivererThread } = options;
  const { backOff = { minMs: 250, maxMs: 30_000 } } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  let thread: ScanThread | undefined;
  let status: DelivererStatus = {
    state: 'idle',
    endpoints: { ENABLED: 0, FAILING: 0, DISABLED: 0, HALTED: 0 },
    oldestWaitingMs: null,
  };

  const newsNow = async (): Promise<News> => ({ end: await store.end(), turn: turn() });

  const calls: ThreadCalls = {
    news: async (seen) => {
      const now = await newsNow();
      if (now.end !== seen.end || now.turn !== seen.turn) return now;
      const soon = AbortSignal.any([signal, AbortSignal.timeout(NEWS_MS_MAX)]);
      for await (const { kind } of store.subscribe(now.end, soon)) if (kind === 'events') break;
      return newsNow();
    },
    append: store.append,
    note: async ({ status: last, attempts, spans }) => {
      status = last;
      for (const attempt of attempts) options.onAttempt(attempt);
      countSpans(spans);
    },
    log: async (level, fields, message) => logger[level](fields, message),
  };

  const untilEndpoint = async (): Promise<void> => {
    while (!signal.aborted && (await store.lastRevision(WEBHOOK_MERCHANTS_STREAM)) === null)
      await pause(IDLE_MS, signal);
  };

  /** Resolves when it was stopped. Throws what its thread did. */
  const run = async (): Promise<void> => {
    await untilEndpoint();
    if (signal.aborted) return;
    // Makes the file where there is none, so that two connections never do.
    await deliveries.load('');
    const { settings, allowedNetworks } = options;
    const news = await newsNow();
    const args: ThreadArgs = { settings, allowedNetworks, secret: await options.secret(), news };
    thread = newThread();
    try {
      await resultOf(options.scan({ module: MODULE, args, calls, signal }, thread));
    } finally {
      await thread.end();
    }
  };

  const loop = async (): Promise<void> => {
    let failures = 0;
    while (!signal.aborted) {
      const beganMs = performance.now();
      const error = await run().catch((thrown: unknown) => thrown);
      if (signal.aborted) break;
      if (performance.now() - beganMs > WELL_AFTER_MS) failures = 0;
      const [reason, waitMs] = [reasonOf(error), backOffMs(backOff, failures)];
      failures += 1;
      // What is known of the endpoints stays: what waits there waits on.
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
      // What a thread could not end in time is as after a crash: sent again, and not lost.
      await within(STOP_MS_MAX, ended, () => new Error('late')).catch(() => thread?.end());
      await ended;
      await deliveries.close();
    },
  };
};
