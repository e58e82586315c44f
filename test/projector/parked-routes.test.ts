/** P5: parked payments are listed, and tried again once the cause is gone. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import { type Projector, startProjector } from '../../projector/compose.ts';
import { PARKED_ROUTES } from '../../projector/parked-routes.ts';
import { PROJECTION_ROUTES } from '../../projector/projection-routes.ts';
import { registerRoutes } from '../../shared/http/route.ts';
import { createStreams } from '../../shared/http/server/streams.ts';
import { streamOf } from '../../shared/payment/events.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { openApp, signToken } from '../support/in-process.ts';
import { appendLife } from '../support/many-payments.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { timeOf } from '../support/payment-events.ts';
import { readModelsIn } from '../support/read-models-here.ts';
import { silentLog } from '../support/silent-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

let folder: ReturnType<typeof temporaryFolder>;
let store: MemoryEventStore;
let readModels: ReadModels;
let projector: Projector;
let app: FastifyInstance;

beforeEach(async () => {
  folder = temporaryFolder();
  store = memoryEventStore();
  readModels = readModelsIn(folder.path, 'read models.db');
  for (const [id, merchant] of [
    ['pay_1', 'm_1'],
    ['pay_2', 'm_2'],
  ] as const) {
    await appendLife(store, id, merchant);
    store.damage(streamOf(id), 3, 'has the unknown type PaymentShredded');
  }
  projector = await startProjector({ store, readModels, logger: silentLog });
  await projector.caughtUp;
  const opened = await openApp();
  app = opened.app;
  registerRoutes(app, opened.authHooks, PARKED_ROUTES, { projector, readModels });
  registerRoutes(app, opened.authHooks, PROJECTION_ROUTES, {
    projector,
    streams: createStreams(app),
  });
});
afterEach(async () => {
  await app.close();
  await projector.stop();
  await readModels.close();
  folder.remove();
});

const ask = async (method: 'GET' | 'POST', url: string, merchant = '*', scope = 'ops:admin') => {
  const bearer = await signToken({ merchant_id: merchant, sub: 'jane', scope });
  const headers = { authorization: `Bearer ${bearer}` };
  const response = await app.inject({ method, url, headers });
  return { status: response.statusCode, json: response.json() };
};
const letter = (paymentId: string) => ({
  paymentId,
  revision: 3,
  reason: 'has the unknown type PaymentShredded',
  since: expect.stringContaining('T'),
});

describe('GET /ops/v1/parked', () => {
  test('names payment, revision and reason; one merchant sees its own', async () => {
    const all = await ask('GET', '/ops/v1/parked');
    expect(all).toEqual({
      status: 200,
      json: { parked: [letter('pay_1'), letter('pay_2')] },
    });
    const own = await ask('GET', '/ops/v1/parked', 'm_2');
    expect(own.json).toEqual({ parked: [letter('pay_2')] });
  });
});

describe('more than a thousand payments are parked', () => {
  test('a merchant sees its own, and each of them can be tried again', async () => {
    const others = Array.from({ length: 1_001 }, (_, n) => `pay_0${n}`);
    const since = timeOf(0);
    const park = (paymentId: string) =>
      ({ kind: 'park', paymentId, revision: 0, reason: 'cannot be read', time: since }) as const;
    const checkpoint = await readModels.checkpoint();
    await readModels.apply(others.map(park), checkpoint, checkpoint);
    expect((await ask('GET', '/ops/v1/parked')).json.parked).toHaveLength(1_000);
    const own = await ask('GET', '/ops/v1/parked', 'm_2');
    expect(own.json).toEqual({ parked: [letter('pay_2')] });
    const again = await ask('POST', '/ops/v1/parked/pay_2/retry', 'm_2');
    expect(again).toMatchObject({ status: 200, json: { paymentId: 'pay_2', whole: false, at: 3 } });
  });
});

describe('POST /ops/v1/parked/{paymentId}/retry', () => {
  const retry = (id: string, merchant?: string) =>
    ask('POST', `/ops/v1/parked/${id}/retry`, merchant);

  test('the cause remains: the payment stays parked, with its reason', async () => {
    expect(await retry('pay_1')).toEqual({
      status: 200,
      json: { paymentId: 'pay_1', whole: false, at: 3, reason: expect.any(String) },
    });
  });

  test('the cause is gone: its document is whole again', async () => {
    store.mend(streamOf('pay_1'));
    expect(await retry('pay_1')).toEqual({
      status: 200,
      json: { paymentId: 'pay_1', whole: true },
    });
    expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 5, parked: false });
    await until('one is left', () => projector.status().parked === 1);
    expect((await retry('pay_1')).status).toBe(404);
  });

  test('another merchant’s, an unknown and a malformed one', async () => {
    expect((await retry('pay_1', 'm_2')).status).toBe(404);
    expect((await retry('pay_9')).status).toBe(404);
    expect((await retry('pay.9')).status).toBe(400);
  });
});
