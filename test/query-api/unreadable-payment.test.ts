/** P5: a poison event stops its own payment only, in lists too. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import { listUnresolved } from '../../command-api/recovery/unresolved.ts';
import { createBodies } from '../../personal-data/opener.ts';
import { type Projector, startProjector } from '../../projector/compose.ts';
import { behindTheStream } from '../../query-api/get-payment.ts';
import { registerQueryApi } from '../../query-api/routes.ts';
import { expectedAfter } from '../../shared/event-store/codec.ts';
import { streamOf } from '../../shared/payment/events.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import {
  appendPayment,
  authorized,
  created,
  newEvent,
  refunded,
  timeOf,
} from '../support/payment-events.ts';
import { paymentLogOver } from '../support/payment-log.ts';
import { openNothing } from '../support/personal-data.ts';
import { readModelsIn } from '../support/read-models-here.ts';
import { openApp, SECRET, token } from '../support/service-in-process.ts';
import { silentLog } from '../support/silent-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';
import { allMessages } from '../support/webhook-merchant.ts';

const BAD = 'pay_bad';
const GOOD = 'pay_good';

const KINDS = {
  'cannot be read': (store: MemoryEventStore) => store.damage(streamOf(BAD), 1, 'is not JSON'),
  'cannot follow': () => undefined,
};

describe.each(Object.entries(KINDS))('P5: a payment with an event that %s', (_, damage) => {
  let folder: ReturnType<typeof temporaryFolder>;
  let store: MemoryEventStore;
  let readModels: ReadModels;
  let projector: Projector;
  let app: FastifyInstance;

  beforeAll(async () => {
    folder = temporaryFolder();
    store = memoryEventStore();
    readModels = readModelsIn(folder.path);
    for (const paymentId of [BAD, GOOD])
      await appendPayment(store, paymentId, [created({ paymentId })]);
    projector = await startProjector({ store, readModels, logger: silentLog });
    await projector.caughtUp;
    damage(store);
    store.inject(streamOf(BAD), 1, newEvent(refunded(), timeOf(1)));
    await until('it is parked', async () => (await readModels.parked(10)).length === 1);
    const opened = await openApp();
    app = opened.app;
    registerQueryApi(app, opened.authHooks, {
      store,
      readModels,
      behind: behindTheStream(store),
      openText: openNothing,
      bodies: createBodies(openNothing),
      webhookSecret: async () => SECRET,
    });
  });
  afterAll(async () => {
    await app.close();
    await projector.stop();
    await readModels.close();
    folder.remove();
  });

  const get = async (url: string, merchant = 'm_1') => {
    const headers = { authorization: `Bearer ${await token(merchant)}` };
    const { statusCode, body } = await app.inject({ method: 'GET', url, headers });
    return { status: statusCode, json: JSON.parse(body) };
  };

  test('is 503 by its id, and in the list as the read models last had it', async () => {
    expect((await get(`/api/v1/payments/${BAD}`)).status).toBe(503);
    const { status, json } = await get('/api/v1/payments');
    expect(status).toBe(200);
    expect(json.payments).toMatchObject([
      { paymentId: GOOD, status: 'PENDING' },
      { paymentId: BAD, status: 'PENDING' },
    ]);
  });

  test('A2: does not exist for another merchant, to the byte but the time', async () => {
    const [foreign, unknown] = await Promise.all([
      get(`/api/v1/payments/${BAD}`, 'm_2'),
      get('/api/v1/payments/pay_unknown', 'm_2'),
    ]);
    expect(foreign.status).toBe(404);
    expect({ ...foreign.json, timestamp: '' }).toEqual({ ...unknown.json, timestamp: '' });
  });

  test('is left out of the list of unresolved payments, which holds the others', async () => {
    const paymentLog = paymentLogOver(store);
    const inFlight = { mayRun: () => false, isWaiting: () => false };
    const unresolved = { list: () => [] };
    const deps = { paymentLog, inFlight, unresolved, providers: ['simulator'] };
    const listed = await listUnresolved(deps, readModels, '*');
    expect(listed).toMatchObject([{ paymentId: GOOD, operation: 'create' }]);
  });

  test('is left out of what its merchant listens to, which holds the others', async () => {
    const [first] = await store.readStream(streamOf(GOOD));
    const approval = newEvent(authorized(), timeOf(2));
    await store.append(streamOf(GOOD), expectedAfter(first), [approval]);
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    const messages = await allMessages({ url, token: await token('m_1') });
    expect(messages.map(({ body }) => JSON.parse(body).data.payment)).toMatchObject([
      { paymentId: GOOD, status: 'AUTHORIZED' },
    ]);
  });
});
