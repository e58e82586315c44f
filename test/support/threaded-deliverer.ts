/** The deliverer in its thread, over a SQLite log and a receiver on loopback. */
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { startDeliverer } from '../../projector/deliverer/deliverer.ts';
import { disableIn } from '../../projector/deliverer/open.ts';
import {
  type CountedAttempt,
  createDelivererWorker,
  deliverInThread,
  type ThreadData,
} from '../../projector/deliverer/thread.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { newUlid } from '../../shared/runtime/ids.ts';
import { sqliteDeliveries } from '../../shared/webhooks/delivery-store/sqlite.ts';
import { newEvent, timeOf, wholeLife } from './payment-events.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { startReceiver } from './webhook-receiver.ts';
import { registerEndpoint, WORLD_SECRET } from './webhook-world.ts';

/**
 * Opens it: of ordinary priority, for one that yields the CPU takes minutes where all of it is taken.
 * `start` makes a further deliverer over the same folder, once the one before has stopped.
 */
export const threadedDeliverer = async () => {
  const folder = temporaryFolder();
  const store = await openSqliteEventStore({ file: join(folder.path, 'events.sqlite') });
  const receiver = await startReceiver();
  const threads: Worker[] = [];
  /** `isDeaf`: the next thread is never sent a word to end. */
  const course = { isDeaf: false };
  const attempts: CountedAttempt[] = [];
  const lines: { level: string; fields: object; message: string }[] = [];
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields, message });
  const logger = { info: write('info'), warn: write('warn'), error: write('error') };

  const deliveries = () => sqliteDeliveries(join(folder.path, 'webhook-deliveries.sqlite'));
  const thread = {
    store,
    deliveries: deliveries(),
    config: { dataDir: folder.path, mongoUrl: undefined, mode: 'embedded', traces: undefined },
    allowedNetworks: ['127.0.0.0/8'],
    disable: disableIn(store, logger),
    logger,
    onAttempt: (attempt: CountedAttempt) => void attempts.push(attempt),
    newWorker: (data: ThreadData) => {
      const worker = createDelivererWorker({ ...data, priorityLoweredBy: 0 });
      threads.push(worker);
      const post = worker.postMessage.bind(worker);
      if (course.isDeaf) worker.postMessage = (message) => message === 'stop' || post(message);
      return worker;
    },
  } as const;
  const start = () =>
    startDeliverer({
      store,
      begin: (secret) => deliverInThread(thread, secret),
      secret: async () => WORLD_SECRET,
      interrupted: (fields) => logger.error(fields, 'webhook deliveries interrupted'),
      turn: () => 'own',
      backOff: { minMs: 20, maxMs: 50 },
    });
  const running = { deliverer: start() };

  /** Registers an endpoint of a merchant; it is sent to a path of that name. */
  const register = (merchantId: string): Promise<string> =>
    registerEndpoint(store, merchantId, `${receiver.url}/${merchantId}`);

  /** Two messages: the payment is authorized, and captured. */
  const pay = async (merchantId: string, paymentId = `pay_${newUlid()}`): Promise<void> => {
    const events = wholeLife(paymentId, merchantId).slice(0, 4);
    await store.append(
      streamOf(paymentId),
      'none',
      events.map((event, at) => newEvent(event, timeOf(at))),
    );
  };

  /** What a merchant's endpoint was sent. */
  const receivedBy = (merchantId: string) =>
    receiver.received.filter(({ path }) => path.endsWith(`/${merchantId}`));

  return Object.assign(running, {
    ...{ store, receiver, threads, attempts, deliveries, start, register, pay, receivedBy },
    course,
    said: (message: string) => lines.filter((line) => line.message.includes(message)),
    [Symbol.asyncDispose]: async () => {
      if (running.deliverer.status().state !== 'stopped') await running.deliverer.stop();
      await receiver[Symbol.asyncDispose]();
      await store.close();
      folder.remove();
    },
  });
};
