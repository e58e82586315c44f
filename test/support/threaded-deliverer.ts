/** The deliverer in its thread, over a SQLite log and a receiver on loopback. */
import { join } from 'node:path';
import { createDelivererThread, startDelivererThread } from '../../projector/webhooks/thread.ts';
import type { CountedAttempt } from '../../projector/webhooks/thread-messages.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { newUlid } from '../../shared/runtime/ids.ts';
import { createScanThread, type ScanThread } from '../../shared/runtime/scan-thread.ts';
import { sqliteDeliveries } from '../../shared/webhooks/delivery-store/sqlite.ts';
import { handleEndpointCommand } from '../../shared/webhooks/endpoint-log.ts';
import { newEvent, timeOf, wholeLife } from './payment-events.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { startReceiver } from './webhook-receiver.ts';

const MERCHANT = 'm_1';

export type ThreadedOptions = {
  /** What stands between the thread and the log; the test itself appends past it. */
  store?: (own: EventStore) => Pick<EventStore, 'append'>;
  turn?: () => 'own' | 'of another';
  /** The thread is never sent a word to end. */
  isDeaf?: boolean;
  /** Of low priority, as in the product: on a full CPU it takes minutes for what else takes seconds. */
  yieldsCpu?: boolean;
};

/** Opens it. `start` makes a further deliverer over the same folder, once the one before has stopped. */
export const threadedDeliverer = async ({
  store: wrapped = (own) => own,
  turn = () => 'own',
  isDeaf = false,
  yieldsCpu = false,
}: ThreadedOptions = {}) => {
  const folder = temporaryFolder();
  const store = await openSqliteEventStore({ file: join(folder.path, 'events.sqlite') });
  const { scan } = store.stored;
  if (scan === undefined) throw new Error('a SQLite log is read by threads');
  const receiver = await startReceiver();
  const threads: ScanThread[] = [];
  let looks = 0;
  const attempts: CountedAttempt[] = [];
  const lines: { level: string; fields: object; message: string }[] = [];
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields, message });

  const deliveries = () => sqliteDeliveries(join(folder.path, 'webhook-deliveries.sqlite'));
  const start = () =>
    startDelivererThread({
      store: {
        ...store,
        append: wrapped(store).append,
        lastRevision: (stream) => {
          looks += 1;
          return store.lastRevision(stream);
        },
      },
      scan,
      deliveries: deliveries(),
      settings: { dataDir: folder.path, mongoUrl: undefined, mode: 'embedded', traces: undefined },
      allowedNetworks: ['127.0.0.0/8'],
      secret: async () => 'a secret of the tests, 32 bytes long at least',
      logger: { info: write('info'), warn: write('warn'), error: write('error') },
      turn,
      onAttempt: (attempt) => void attempts.push(attempt),
      newThread: () => {
        const thread = yieldsCpu ? createDelivererThread() : createScanThread();
        threads.push(thread);
        if (!isDeaf) return thread;
        return { ...thread, run: (order) => thread.run({ ...order, signal: undefined }) };
      },
      backOff: { minMs: 20, maxMs: 50 },
    });
  const running = { deliverer: start() };

  const register = async (path = ''): Promise<string> => {
    const endpointId = `we_${newUlid()}`;
    const place = { endpointId, merchantId: MERCHANT, url: `${receiver.url}${path}` };
    const after = await store.end();
    const endpoint = {
      ...{ ...place, ...(after === null ? {} : { after }) },
      apiVersion: 'v1' as const,
    };
    const context = { actor: 'test', requestId: 'r', correlationId: 'r', causationId: 'r' };
    await handleEndpointCommand(store, MERCHANT, { kind: 'create', endpoint }, context);
    return endpointId;
  };

  /** Two messages: the payment is authorized, and captured. */
  const pay = async (paymentId: string): Promise<void> => {
    const events = wholeLife(paymentId, MERCHANT).slice(0, 4);
    await store.append(
      streamOf(paymentId),
      'none',
      events.map((event, at) => newEvent(event, timeOf(at))),
    );
  };

  return Object.assign(running, {
    ...{ store, receiver, threads, attempts, lines, deliveries, start, register, pay },
    /** How often it has looked for the first endpoint. */
    looks: () => looks,
    said: (message: string) => lines.filter((line) => line.message.includes(message)),
    [Symbol.asyncDispose]: async () => {
      await running.deliverer.stop();
      await receiver[Symbol.asyncDispose]();
      await store.close();
      folder.remove();
    },
  });
};
