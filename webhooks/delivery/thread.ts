/** On the event loop that serves requests the deliverer would take half of a create's CPU time again. */
import { setTimeout as delay } from 'node:timers/promises';
import type { EventStore, Position } from '../../shared/event-store/port.ts';
import { within } from '../../shared/runtime/back-off.ts';
import type { Config } from '../../shared/runtime/config.ts';
import {
  createScanThread,
  logCalls,
  resultOf,
  type ScanThread,
} from '../../shared/runtime/scan.ts';
import { countSpans, type SpanCounts } from '../../shared/runtime/tracing.ts';
import type { DeliveryStore } from '../store/port.ts';
import type { Attempt } from './delivery-row.ts';
import {
  type Delivering,
  type EndpointsOptions,
  type EndpointsStatus,
  endpointsStatus,
} from './follow-endpoints.ts';

export type CountedAttempt = Pick<Attempt, 'outcome' | 'latencyMs'>;

/** Holds a secret: never log it. `end`: how far the log may be read. */
export type ThreadArgs = {
  config: Pick<Config, 'dataDir' | 'mongoUrl' | 'mode' | 'traces'>;
  allowedNetworks: readonly string[];
  secret: string;
  end: Position | null;
};

/** `spans` and `attempts`: since the note before. */
export type Note = { status: EndpointsStatus; spans: SpanCounts; attempts: CountedAttempt[] };

type ThreadOptions = Pick<ThreadArgs, 'config' | 'allowedNetworks'> &
  Pick<EndpointsOptions, 'disable' | 'logger'> & {
    store: Pick<EventStore, 'end'>;
    deliveries: Pick<DeliveryStore, 'load'>;
    onAttempt(attempt: CountedAttempt): void;
    newThread?: () => ScanThread;
  };

/** Between two looks for progress: many appends make one message. */
const PROGRESS_MS = 20;
const STOP_MS_MAX = 5_000;
const MODULE = new URL('./worker.ts', import.meta.url).href;

export const deliverInThread = async (
  options: ThreadOptions,
  secret: string,
): Promise<Delivering> => {
  const { store, config, allowedNetworks, logger } = options;
  // Leaves the thread about a thirtieth of a CPU that requests fill (scheduling.ts).
  const { newThread = () => createScanThread({ priorityLoweredBy: 15 }) } = options;
  // Makes the file where there is none, so that two connections never make it at once.
  await options.deliveries.load('');
  const { dataDir, mongoUrl, mode, traces } = config;
  const own = { dataDir, mongoUrl, mode, traces };
  const args: ThreadArgs = { config: own, allowedNetworks, secret, end: await store.end() };
  const stopping = new AbortController();
  const { signal } = stopping;
  let status = endpointsStatus([]);
  let disabling = Promise.resolve();

  const calls = {
    ...logCalls(logger),
    disable: async (...request: Parameters<EndpointsOptions['disable']>) => {
      disabling = disabling.then(() => options.disable(...request));
    },
    endAfter: async (known: Position | null): Promise<Position | null> => {
      let end = known;
      do {
        await delay(PROGRESS_MS);
        end = await store.end();
      } while (end === known && !signal.aborted);
      return end;
    },
  };
  const take = (note: Note): void => {
    status = note.status;
    countSpans(note.spans);
    note.attempts.forEach(options.onAttempt);
  };
  const thread = newThread();
  const notes = thread.run<Note, Note>({ module: MODULE, job: 'deliveries', args, calls, signal });
  const ended = resultOf(notes, take).then(take);

  return {
    status: () => status,
    ended,
    stop: async () => {
      stopping.abort();
      // A request that does not end in time is sent again later, as after a crash.
      await within(STOP_MS_MAX, ended, () => new Error('late')).catch(() => undefined);
      await thread.end();
      await disabling;
    },
  };
};
