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
import { deliver } from './endpoints.ts';
import { createSender } from './send.ts';
import type { Order, Reports, ThreadData } from './thread.ts';

const NOTE_MS = 250;

const port = parentPort;
if (port === null) throw new Error('worker.ts runs as a worker thread only');
const { config, allowedNetworks, secret, end, priorityLoweredBy }: ThreadData = workerData;

const report = <N extends keyof Reports>(name: N, ...args: Parameters<Reports[N]>): void =>
  port.postMessage({ name, args });
const logger: Logger = {
  info: (fields, message) => report('log', 'info', fields, message),
  warn: (fields, message) => report('log', 'warn', fields, message),
  error: (fields, message) => report('log', 'error', fields, message),
};

takeLowPriority(priorityLoweredBy);
const fileOf = (name: string): string => join(config.dataDir, name);
const log = openFollowedLog(fileOf('events.sqlite'), end);
const traces =
  config.traces && (await openTraces({ ...config.traces, mode: config.mode, log: logger }));
const deliveries = await openDeliveries({ config, fileOf });
const delivering = deliver({
  store: log,
  deliveries,
  sender: createSender({ kindOf: addressKinds(allowedNetworks) }),
  disable: async (...request) => report('disable', ...request),
  secret,
  logger,
  onAttempt: ({ outcome, latencyMs }) => report('attempt', { outcome, latencyMs }),
});

const note = (): void => report('note', delivering.status(), takeSpanCounts());
const noting = setInterval(note, NOTE_MS);

const stop = async (): Promise<void> => {
  clearInterval(noting);
  await delivering.stop();
  await traces?.stop();
  await deliveries.close();
  log.close();
  note();
  process.exit();
};

port.on('message', (order: Order) => {
  if (order === 'stop') void stop();
  else log.grow(order.end);
});

// A failure ends the thread with its error.
await delivering.ended;
