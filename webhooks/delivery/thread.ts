/** The deliverer's thread, with its own log connection: on the event loop it would add half a create's CPU. */
import { join } from 'node:path';
import { openFollowedLog } from '../../shared/event-store/sqlite/log-reader.ts';
import { pause, within } from '../../shared/runtime/back-off.ts';
import type { Config } from '../../shared/runtime/config.ts';
import {
  type Job,
  type LogCalls,
  logCalls,
  logOver,
  type NewThread,
  resultOf,
} from '../../shared/runtime/jobs.ts';
import { openTraces } from '../../shared/runtime/traces.ts';
import { countSpans, type SpanCounts, takeSpanCounts } from '../../shared/runtime/tracing.ts';
import { addressKinds } from '../endpoints/addresses.ts';
import { openDeliveries } from '../store/open.ts';
import type { DeliveryStore } from '../store/port.ts';
import {
  type Delivering,
  deliver,
  type EndpointsOptions,
  type EndpointsStatus,
  endpointsStatus,
} from './follow-endpoints.ts';
import type { CountedAttempt } from './send-item.ts';

/** Holds a secret: never log it. */
type ThreadArgs = {
  config: Pick<Config, 'dataDir' | 'mongoUrl' | 'mode' | 'traces'>;
  allowedNetworks: readonly string[];
  secret: string;
};

/** `spans` and `attempts`: since the note before. */
type Note = { status: EndpointsStatus; spans: SpanCounts; attempts: CountedAttempt[] };

type ThreadOptions = Pick<ThreadArgs, 'config' | 'allowedNetworks'> &
  Pick<EndpointsOptions, 'disable' | 'openText' | 'logger'> & {
    deliveries: Pick<DeliveryStore, 'load'>;
    onAttempt(attempt: CountedAttempt): void;
    newThread: NewThread;
  };

type DeliveryCalls = LogCalls & Pick<EndpointsOptions, 'disable' | 'openText'>;

const STOP_MS_MAX = 5_000;
const NOTE_MS = 250;
/** Leaves the thread about a thirtieth of a CPU that requests fill. */
const LOWERED_BY = 15;

export const deliverInThread = async (
  options: ThreadOptions,
  secret: string,
): Promise<Delivering> => {
  const { config, allowedNetworks, logger } = options;
  // Makes the file where there is none, so that two connections never make it at once.
  await options.deliveries.load('');
  const { dataDir, mongoUrl, mode, traces } = config;
  const args = { config: { dataDir, mongoUrl, mode, traces }, allowedNetworks, secret };
  const stopping = new AbortController();
  const { signal } = stopping;
  let status = endpointsStatus([]);

  const { disable, openText } = options;
  const calls: DeliveryCalls = { ...logCalls(logger), disable, openText };
  const take = (note: Note): void => {
    status = note.status;
    countSpans(note.spans);
    note.attempts.forEach(options.onAttempt);
  };
  const thread = options.newThread(LOWERED_BY);
  const ended = resultOf(thread.run(deliverWebhooks, args, { calls, signal }), take).then(take);

  return {
    status: () => status,
    ended,
    stop: async () => {
      stopping.abort();
      // A request that does not end in time is sent again later, as after a crash.
      await within(STOP_MS_MAX, ended, () => new Error('late')).catch(() => undefined);
      await thread.end();
    },
  };
};

/** Until the signal is aborted; a failure ends it with its error. */
export const deliverWebhooks: Job<ThreadArgs, Note, Note, DeliveryCalls> = async function* (
  { config, allowedNetworks, secret },
  { signal, calls },
) {
  const logger = logOver(calls);
  // Only this thread loads the client.
  const { createWebhookSender } = await import('./send.ts');
  const fileOf = (name: string): string => join(config.dataDir, name);
  const log = openFollowedLog(fileOf('events.sqlite'));
  const { traces: exported, mode } = config;
  const traces = exported && (await openTraces({ ...exported, mode, log: logger }));
  const kept = await openDeliveries({ config, fileOf });
  let attempts: CountedAttempt[] = [];
  const delivering = deliver({
    store: log,
    deliveries: kept,
    sender: createWebhookSender({ kindOf: addressKinds(allowedNetworks) }),
    disable: calls.disable,
    openText: calls.openText,
    secret,
    logger,
    onAttempt: ({ outcome, latencyMs }) => attempts.push({ outcome, latencyMs }),
  });
  const note = (): Note => {
    const made = attempts;
    attempts = [];
    return { status: delivering.status(), spans: takeSpanCounts(), attempts: made };
  };
  delivering.ended.catch(() => undefined);
  try {
    while (!signal.aborted) {
      yield note();
      await Promise.race([delivering.ended, pause(NOTE_MS, signal)]);
    }
  } finally {
    await delivering.stop();
  }
  await traces?.stop();
  await kept.close();
  log.close();
  return note();
};
