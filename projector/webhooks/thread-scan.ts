/**
 * The deliverer in a thread of its own beside the one that serves requests (thread.ts), and below it
 * in priority: no request waits for a delivery, and deliveries catch up where there is room. It reads
 * the log over a connection of its own, and has the state of deliveries for itself.
 */
import { join } from 'node:path';
import type { LogScan } from '../../shared/event-store/scan-log.ts';
import { openDeliveries } from '../../shared/open-deliveries.ts';
import { pause } from '../../shared/runtime/back-off.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { openTraces } from '../../shared/runtime/traces.ts';
import { spanCounts } from '../../shared/runtime/tracing.ts';
import { addressKinds } from '../../shared/webhooks/addresses.ts';
import { type Deliverer, startDeliverer } from './deliverer.ts';
import { followLog } from './followed-log.ts';
import { createSender } from './send.ts';
import {
  type CountedAttempt,
  callsOf,
  type ThreadArgs,
  type ThreadCalls,
} from './thread-messages.ts';

/** Between two looks for news: what many appends add is one message. */
const NEWS_MS = 20;
const NOTE_MS = 250;

const logThrough = ({ log }: ThreadCalls): Logger => ({
  info: (fields, message) => void log('info', fields, message),
  warn: (fields, message) => void log('warn', fields, message),
  error: (fields, message) => void log('error', fields, message),
});

/** Sends what has changed since it was last called. */
const noteTaker = (calls: ThreadCalls, { status }: Deliverer, made: CountedAttempt[]) => {
  let noted = '';
  let counted = spanCounts();
  return async (): Promise<void> => {
    const now = { status: status(), spans: spanCounts() };
    const text = JSON.stringify(now);
    if (text === noted && made.length === 0) return;
    noted = text;
    const spans = {
      exported: now.spans.exported - counted.exported,
      dropped: now.spans.dropped - counted.dropped,
    };
    counted = now.spans;
    await calls.note({ status: now.status, attempts: made.splice(0), spans });
  };
};

/** Delivers until its signal is aborted. Throws what the log and the calls throw. */
export const scan: LogScan<ThreadArgs, never, void> = async (log, args, tools) => {
  const { allowedNetworks, secret, settings } = args;
  const { traces: tracing, mode } = settings;
  const { signal } = tools;
  const calls = callsOf(tools);
  const logger = logThrough(calls);
  const traces = tracing && (await openTraces({ ...tracing, mode, log: logger }));
  const followed = followLog(log, args.news.end);
  const made: CountedAttempt[] = [];
  let { news } = args;
  const deliverer = startDeliverer({
    store: { ...log, ...followed, append: calls.append },
    deliveries: await openDeliveries({
      config: settings,
      fileOf: (name) => join(settings.dataDir, name),
    }),
    sender: createSender({ kindOf: addressKinds(allowedNetworks) }),
    secret: async () => secret,
    logger,
    turn: () => news.turn,
    onAttempt: ({ outcome, latencyMs }) => made.push({ outcome, latencyMs }),
  });
  const note = noteTaker(calls, deliverer, made);
  const noting = setInterval(() => void note(), NOTE_MS);
  try {
    while (!signal.aborted) {
      news = await calls.news(news);
      followed.grow(news.end);
      await pause(NEWS_MS, signal);
    }
  } finally {
    clearInterval(noting);
    await deliverer.stop();
    await traces?.stop();
    await note();
  }
};
