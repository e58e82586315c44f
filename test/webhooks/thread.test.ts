/** docs/architecture.md: where one process has the log, the deliverer runs in a thread beside the requests. */
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { newThread } from '../../embedded/jobs.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import type { OpenText } from '../../shared/payment/state.ts';
import { newUlid } from '../../shared/runtime/ids.ts';
import type { JobThread, RunJob } from '../../shared/runtime/jobs.ts';
import { startDeliverer } from '../../webhooks/delivery/deliverer.ts';
import { disableIn } from '../../webhooks/delivery/open.ts';
import type { CountedAttempt } from '../../webhooks/delivery/send-item.ts';
import { deliverInThread } from '../../webhooks/delivery/thread.ts';
import { endpointStreamOf } from '../../webhooks/endpoints/endpoints.ts';
import { sqliteDeliveries } from '../../webhooks/store/sqlite.ts';
import { appendPayment, timeOf, wholeLife } from '../support/payment-events.ts';
import { openNothing } from '../support/personal-data.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';
import { type Received, startReceiver } from '../support/webhook-receiver.ts';
import { registerEndpoint, WORLD_SECRET } from '../support/webhook-world.ts';

const INTERRUPTED = 'webhook deliveries interrupted';

/**
 * Opens it: of ordinary priority, for one that yields the CPU takes minutes where all of it is taken.
 * `start` makes a further deliverer over the same folder, once the one before has stopped.
 */
const threadedDeliverer = async () => {
  const folder = temporaryFolder();
  const store = await openSqliteEventStore({ file: join(folder.path, 'events.sqlite') });
  const receiver = await startReceiver();
  const threads: JobThread[] = [];
  /** `isDeaf`: the next thread is never sent a word to end. `hasEnded`: the last one did, by itself. */
  const course = { isDeaf: false, hasEnded: false, loweredBy: 0, diesAs: '' };
  /** Ends the thread at one of its waits for this side. */
  const dieAs = async (wait: string): Promise<void> => {
    if (course.diesAs !== wait) return;
    course.diesAs = '';
    await threads.at(-1)?.end();
  };
  const attempts: CountedAttempt[] = [];
  const lines: { level: string; fields: object; message: string }[] = [];
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields, message });
  const logger = { info: write('info'), warn: write('warn'), error: write('error') };

  const disable = disableIn(store, logger);
  const openText: OpenText = async (...given) => {
    await dieAs('a text is to be opened');
    return openNothing(...given);
  };
  const deliveries = () => sqliteDeliveries(join(folder.path, 'webhook-deliveries.sqlite'));
  const thread = {
    store,
    deliveries: deliveries(),
    config: { dataDir: folder.path, mongoUrl: undefined, mode: 'embedded', traces: undefined },
    allowedNetworks: ['127.0.0.0/8'],
    disable: async (...given: Parameters<typeof disable>) => {
      await dieAs('an endpoint is to be disabled');
      await disable(...given);
      await dieAs('an endpoint was disabled');
    },
    openText,
    logger,
    onAttempt: (attempt: CountedAttempt) => {
      attempts.push(attempt);
      void dieAs('its attempts are counted');
    },
    newThread: (priorityLoweredBy = 0) => {
      course.loweredBy = priorityLoweredBy;
      const thread = newThread();
      const { isDeaf } = course;
      threads.push(thread);
      const run: RunJob = async function* (job, args, { calls, signal }) {
        course.hasEnded = false;
        const result = yield* thread.run(job, args, { calls, ...(!isDeaf && { signal }) });
        course.hasEnded = true;
        return result;
      };
      return { ...thread, run };
    },
  } as const;
  const start = () =>
    startDeliverer({
      store,
      begin: (secret) => deliverInThread(thread, secret),
      secret: async () => WORLD_SECRET,
      // With the status of that moment: it may begin again before a test looks.
      interrupted: (fields) =>
        logger.error({ ...fields, ...running.deliverer.status() }, INTERRUPTED),
      leader: { status: () => ({ state: 'running' }), handedOver: () => true },
      backOff: { minMs: 20, maxMs: 50 },
    });
  const running = { deliverer: start() };

  /** Registers an endpoint of a merchant; it is sent to a path of that name. */
  const register = (merchantId: string): Promise<string> =>
    registerEndpoint(store, merchantId, `${receiver.url}/${merchantId}`);

  /** Two messages: the payment is authorized, and captured. */
  const pay = async (merchantId: string, paymentId = `pay_${newUlid()}`): Promise<void> => {
    const events = wholeLife(paymentId, merchantId).slice(0, 4);
    await appendPayment(store, paymentId, events, timeOf);
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

const revisionsOf = (received: readonly Received[]): Record<string, number[]> => {
  const revisions: Record<string, number[]> = {};
  for (const { json } of received) {
    const { payment, revision } = json.data;
    const before = revisions[payment.paymentId] ?? [];
    if (!before.includes(revision)) revisions[payment.paymentId] = [...before, revision];
  }
  return revisions;
};

const count = (received: readonly Received[]): number => new Set(received.map(({ id }) => id)).size;

/** One world for all tests, each with a merchant of its own: a thread takes a third of a second to start. */
const world = await threadedDeliverer();
afterAll(() => world[Symbol.asyncDispose]());

test('the first endpoint has a thread begin, which yields the CPU to requests and sends its messages', async () => {
  const { threads, deliverer } = world;
  expect([threads, deliverer.status().state]).toEqual([[], 'idle']);
  await world.register('m_first');
  await world.pay('m_first', 'pay_1');
  await until('its messages', () => world.receivedBy('m_first').length === 2);
  expect(revisionsOf(world.receivedBy('m_first'))).toEqual({ pay_1: [1, 3] });
  expect([threads.length, world.course.loweredBy]).toEqual([1, 15]);
  await until('its endpoint is counted', () => deliverer.status().endpoints.ENABLED === 1);
  expect(deliverer.status().state).toBe('running');
  await until('its attempts are counted', () => world.attempts.length === 2);
  expect(world.attempts).toMatchObject([{ outcome: 'ACCEPTED' }, { outcome: 'ACCEPTED' }]);
});

test('a stop does not wait for an address that hangs; what was under way is sent after the next start', async () => {
  const { receiver } = world;
  receiver.respond = ({ path }, response) =>
    path.endsWith('/m_hangs') ? undefined : response.writeHead(204).end();
  await world.register('m_hangs');
  await world.pay('m_hangs', 'pay_hangs');
  await until('it hangs', () => world.receivedBy('m_hangs').length === 1);
  await world.deliverer.stop();
  expect(world.course.hasEnded).toBe(true);
  expect(world.deliverer.status().state).toBe('stopped');
  expect(world.said(INTERRUPTED)).toEqual([]);
  receiver.respond = undefined;
  world.deliverer = world.start();
  await until('both', () => count(world.receivedBy('m_hangs')) === 2);
  expect(revisionsOf(world.receivedBy('m_hangs'))).toEqual({ pay_hangs: [1, 3] });
});

test.each([
  ['a text is to be opened', 204],
  ['its attempts are counted', 204],
  ['an endpoint is to be disabled', 410],
  ['an endpoint was disabled', 410],
])('a thread that dies as %s loses no message, and disables once', async (wait, status) => {
  const merchantId = `m_${wait.replaceAll(' ', '_')}`;
  world.receiver.respond = ({ path }, response) =>
    response.writeHead(path.endsWith(merchantId) ? status : 204).end();
  await world.register(merchantId);
  const deaths = world.said(INTERRUPTED).length;
  world.course.diesAs = wait;
  await world.pay(merchantId);
  await until('its death is known', () => world.said(INTERRUPTED).length === deaths + 1);
  const fields = { state: 'backing-off', error: expect.stringContaining('thread') };
  expect(world.said(INTERRUPTED).at(-1)).toMatchObject({ level: 'error', fields });
  const stream = endpointStreamOf(merchantId);
  const ends = async (): Promise<boolean> => {
    const types = (await world.store.readStream(stream)).map(({ event }) => event.type);
    return types.filter((type) => type === 'WebhookEndpointDisabled').length === 1;
  };
  if (status === 410) await until('it is disabled', ends);
  else await until('both', () => count(world.receivedBy(merchantId)) === 2);
  await until('it runs again', () => world.deliverer.status().state === 'running');
  expect(world.deliverer.status()).not.toHaveProperty('error');
  for (const one of Object.values(revisionsOf(world.receivedBy(merchantId))))
    expect(one).toEqual([1, 3].slice(0, one.length));
  expect(await ends()).toBe(status === 410);
  world.receiver.respond = undefined;
});

test('a thread that does not end by itself at a stop is ended', async () => {
  world.course.isDeaf = true;
  const before = world.threads.length;
  await world.threads.at(-1)?.end();
  await until('the next one', () => world.threads.length > before);
  await world.deliverer.stop();
  expect(world.course.hasEnded).toBe(false);
  expect(world.deliverer.status().state).toBe('stopped');
});
