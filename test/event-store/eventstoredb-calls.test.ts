/** What health, the end of the log and subscriptions cost EventStoreDB: counted at the stand-in. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import Fastify, { type FastifyInstance } from 'fastify';
import {
  type EventStoreDb,
  openEventStoreDb,
} from '../../shared/event-store/eventstoredb/event-store.ts';
import { engineState, registerHealth } from '../../shared/http/server/health.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { type StandIn, startStandIn } from '../support/eventstoredb-stand-in.ts';
import { batchOf, collect, eventsOf } from './opened.ts';

let standIn: StandIn;
let store: EventStoreDb;

const logger = { debug: () => undefined, warn: () => undefined };

beforeEach(async () => {
  standIn = await startStandIn();
  store = await openEventStoreDb({ url: standIn.url, logger });
});
afterEach(async () => {
  await store.close();
  await standIn.close();
});

/** How many reads there are during some work. */
const readsOf = async (work: () => Promise<unknown>) => {
  const before = { ...standIn.calls };
  await work();
  return {
    read: standIn.calls.read - before.read,
    readAll: standIn.calls.readAll - before.readAll,
  };
};

describe('health', () => {
  let app: FastifyInstance;
  beforeEach(() => {
    app = Fastify();
    const ready = async () => {
      const eventStore = await engineState(store.ping);
      return { ready: eventStore.state === 'up', engines: { eventStore } };
    };
    registerHealth(app, { ready, metrics: createMetrics() });
  });
  afterEach(() => app.close());

  const statuses = async (count: number): Promise<number[]> => {
    const ask = () => app.inject('/health/ready');
    const responses = await Promise.all(Array.from({ length: count }, ask));
    return [...new Set(responses.map(({ statusCode }) => statusCode))];
  };

  test('30 requests at once cost one question, and none of the whole log', async () => {
    const cost = await readsOf(async () => expect(await statuses(30)).toEqual([200]));
    expect(cost).toEqual({ read: 1, readAll: 0 });
  });

  test('a server that does not answer is asked once as well, and all are told so', async () => {
    standIn.fail('read', 'unavailable');
    const cost = await readsOf(async () => expect(await statuses(30)).toEqual([503]));
    expect(cost).toEqual({ read: 1, readAll: 0 });
  });
});

test('the end costs one read where the server has written much of its own since', async () => {
  const [, , last] = await store.append('payment-1', 'none', batchOf(3));
  for (let n = 0; n < 500; n++) standIn.foreign('$stats');
  await store.end();
  for (let n = 0; n < 20; n++) standIn.foreign('$stats');
  const cost = await readsOf(async () => expect(await store.end()).toBe(last?.position));
  expect(cost).toEqual({ read: 1, readAll: 1 });
});

test('a reading of the whole log is sent no event of others, however many there are', async () => {
  const own: (string | undefined)[] = [];
  for (const n of [1, 2, 3]) {
    own.push((await store.append(`payment-${n}`, 'none', batchOf(1))).at(-1)?.position);
    for (let n = 0; n < 2000; n++) standIn.foreign('orders-1');
  }
  const end = await store.end();
  const { sent } = standIn.calls;
  expect((await store.readAll(null, 1000, end)).map(({ position }) => position)).toEqual(own);
  expect(standIn.calls.sent - sent).toBe(own.length);
});

test('a page that is late is what has come: large events make no reading of the log fail', async () => {
  const stored = await store.append('payment-1', 'none', batchOf(4));
  const end = await store.end();
  const hasty = await openEventStoreDb({ url: standIn.url, logger, callTimeoutMs: 1000 });
  standIn.fail('read', 'cut');
  const read = await hasty.readAll(null, 1000, end);
  expect(read.map(({ revision }) => revision)).toEqual(stored.map(({ revision }) => revision));
  await hasty.close();
});

test('ADR-0036: a subscription to some types is sent no event of another type', async () => {
  for (let n = 0; n < 5; n++) await store.append(`payment-${n}`, 'none', batchOf(4));
  await collect(store, null, (all) => eventsOf(all).length === 5, ['PaymentCreated']);
  expect(standIn.calls.sent).toBe(5);
});
