/** The thread of the deliverer (thread.ts), which reads the log over a connection of its own. */
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { openFollowedLog } from '../../shared/event-store/sqlite/log-reader.ts';
import { openDeliveries } from '../../shared/open-drivers.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { takeLowPriority } from '../../shared/runtime/scheduling.ts';
import { openTraces } from '../../shared/runtime/traces.ts';
import { takeSpanCounts } from '../../shared/runtime/tracing.ts';
import { addressKinds } from '../../shared/webhooks/addresses.ts';
import { startDeliverer } from './deliverer.ts';
import { createSender } from './send.ts';
import type { CountedAttempt, Progress, Reports, ThreadData } from './thread.ts';

const NOTE_MS = 250;

const port = parentPort;
if (port === null) throw new Error('worker.ts runs as a worker thread only');
const { config, allowedNetworks, secret, priorityLoweredBy, ...first }: ThreadData = workerData;
let { progress } = first;

const report = <N extends keyof Reports>(name: N, ...args: Parameters<Reports[N]>): void =>
  port.postMessage({ name, args });
const logger: Logger = {
  info: (fields, message) => report('log', 'info', fields, message),
  warn: (fields, message) => report('log', 'warn', fields, message),
  error: (fields, message) => report('log', 'error', fields, message),
};

takeLowPriority(priorityLoweredBy);
const fileOf = (name: string): string => join(config.dataDir, name);
const log = openFollowedLog(fileOf('events.sqlite'), progress.end);
const traces =
  config.traces && (await openTraces({ ...config.traces, mode: config.mode, log: logger }));
const deliveries = await openDeliveries({ config, fileOf });
let attempts: CountedAttempt[] = [];
const deliverer = startDeliverer({
  store: log,
  deliveries,
  sender: createSender({ kindOf: addressKinds(allowedNetworks) }),
  disable: async (...request) => report('disable', ...request),
  secret: async () => secret,
  logger,
  turn: () => progress.turn,
  onAttempt: ({ outcome, latencyMs }) => void attempts.push({ outcome, latencyMs }),
});

const note = (): void => {
  report('note', deliverer.status(), attempts, takeSpanCounts());
  attempts = [];
};
const noting = setInterval(note, NOTE_MS);

const stop = async (): Promise<void> => {
  clearInterval(noting);
  await deliverer.stop();
  await traces?.stop();
  log.close();
  note();
  process.exit();
};

port.on('message', (message: Progress | 'stop') => {
  if (message === 'stop') void stop();
  else {
    progress = message;
    log.grow(message.end);
  }
});
