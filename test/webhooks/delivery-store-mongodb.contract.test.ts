import { afterAll, expect, test } from '@jest/globals';
import { mongoDeliveries } from '../../webhooks/store/mongodb.ts';
import { mongoServer } from '../support/mongo-server.ts';
import { tcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
import { attempt, describeDeliveryStore } from './describe-delivery-store.ts';

const mongo = await mongoServer();
const database = 'skip' in mongo ? undefined : mongo.database();
afterAll(() => database?.drop());

describeDeliveryStore({
  name: mongo.name,
  skip: 'skip' in mongo ? mongo.skip : undefined,
  open: () => mongoDeliveries(database?.url ?? ''),
});

const testOfMongo = database === undefined ? test.skip : test;

testOfMongo.each([
  'the next save of the same process',
  'the first save of another one',
  'a later save of another one',
])('attempts that could not be stored beside their row are stored by %s', async (by) => {
  const url = new URL(database?.url ?? '');
  const proxy = await tcpProxy(url.hostname, Number(url.port));
  url.host = `127.0.0.1:${proxy.port}`;
  url.searchParams.set('directConnection', 'true');
  const store = mongoDeliveries(url.href);
  const other = mongoDeliveries(database?.url ?? '');
  try {
    const endpointId = `we_${crypto.randomUUID()}`;
    let version = 0;
    if (by.includes('later')) {
      expect(await other.save(endpointId, '0', version, [])).toBe(true);
      version += 1;
    }
    proxy.beforeRequest('webhook_attempts', () => proxy.shut());
    const saved = await store.save(endpointId, '1', version, [attempt(1)]);
    proxy.open();
    expect(saved).toBe(true);
    expect(await other.attempts(endpointId, { limit: 10 })).toEqual([]);
    const next = by.includes('another') ? other : store;
    const isBack = (): Promise<boolean> => next.load(endpointId).then(Boolean, () => false);
    await until('the next one is in reach of its server', isBack);
    expect(await next.save(endpointId, '2', version + 1, [attempt(2)])).toBe(true);
    expect(await other.attempts(endpointId, { limit: 10 })).toMatchObject([
      { attempt: { eventId: 'evt_2' } },
      { attempt: { eventId: 'evt_1' } },
    ]);
  } finally {
    await store.close();
    await other.close();
    await proxy.close();
  }
});
