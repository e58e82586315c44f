/** GETs of one payment that are served before the framework sees them: over a real connection. */
import { once } from 'node:events';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { paymentAtOnce } from '../../query-api/get-at-once.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import { createLogger } from '../../shared/runtime/log.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { type InProcess, idOf, openInProcess, PAYMENTS, token } from '../support/in-process.ts';
import { until } from '../support/until.ts';

const PER_SECOND = 20;
const PRINCIPAL = { merchantId: 'm_1', actor: 'a', scopes: undefined };

let service: InProcess;
let url: string;
let own: string;

beforeAll(async () => {
  const rate = { RATE_LIMIT_PER_SECOND: String(PER_SECOND), RATE_LIMIT_BURST: String(PER_SECOND) };
  service = await openInProcess(rate);
  url = await service.listen();
  own = await token('m_test');
  await until('the read models have followed', async () => {
    const { json } = await service.ask('GET', '/health/ready');
    return JSON.stringify(json).includes('"caughtUp":true');
  });
});
afterAll(() => service[Symbol.asyncDispose]());

const get = async (paymentId: string, bearer: string | null = own, headers = {}) => {
  const authorization = bearer === null ? {} : { authorization: `Bearer ${bearer}` };
  const response = await fetch(`${url}${PAYMENTS}/${paymentId}`, {
    headers: { ...authorization, ...headers },
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
};

test('the response is the one of the framework, to the byte and the header', async () => {
  const created = await service.create();
  const id = idOf(created);
  // As they are for every request, and as they are for a connection.
  const varies = ['request-id', 'date', 'connection', 'keep-alive'];
  const kept = (headers: object) => Object.entries(headers).filter(([n]) => !varies.includes(n));
  const ofFramework = await service.get(id);
  const atOnce = await get(id);
  expect(atOnce.text).toBe(created.text);
  expect(atOnce.text).toBe(ofFramework.text);
  expect(kept(Object.fromEntries(atOnce.headers)).sort()).toEqual(kept(ofFramework.headers).sort());
  expect(atOnce.headers.get('request-id')).toMatch(/^[0-9A-Z]{26}$/);
});

test('gaps §9: a document that was read before and is behind is not given', async () => {
  const created = await service.create();
  const id = idOf(created);
  expect((await get(id)).text).toBe(created.text);
  service.readModels.hold();
  const captured = await service.change('capture', id);
  expect((await get(id)).text).toBe(captured.text);
  service.readModels.release();
});

test('gaps §10: a token without the scope, of another merchant or none gets what it always gets', async () => {
  const id = idOf(await service.create());
  const writer = await token('m_test', 'payments:write');
  const other = await token('m_other');
  // Each twice: only a token that was verified before is looked at before the framework.
  for (const _ of [1, 2]) {
    expect((await get(id, writer)).status).toBe(403);
    expect((await get(id, other)).status).toBe(404);
    expect((await get(id, null)).status).toBe(401);
    expect((await get('pay_unknown')).status).toBe(404);
    expect((await get(`${id}?a=b`)).status).toBe(200);
  }
});

test('gaps §11: each GET draws once on the rate of its merchant', async () => {
  const slow = await token('m_slow');
  const id = idOf(await service.create({}, { token: slow }));
  const startedAtMs = performance.now();
  const all = await Promise.all(Array.from({ length: 4 * PER_SECOND }, () => get(id, slow)));
  const seconds = (performance.now() - startedAtMs) / 1000;
  const served = all.filter(({ status }) => status === 200).length;
  expect(served).toBeLessThanOrEqual(PER_SECOND * (1 + seconds));
  expect(served).toBeGreaterThanOrEqual(Math.min(all.length, PER_SECOND - 1));
});

test('GETs on one connection get their responses in turn, also after one with a large body', async () => {
  const created = await service.create();
  const target = `${PAYMENTS}/${idOf(created)}`;
  const head = `GET ${target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${own}\r\n`;
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const body = ' '.repeat(1_000_000);
  socket.write(`${head}\r\n${head}content-length: ${body.length}\r\n\r\n${body}`);
  socket.write(`${head}connection: close\r\n\r\n`);
  const responses = (await text(socket)).split('HTTP/1.1 200 OK').slice(1);
  expect(responses.map((response) => response.split('\r\n\r\n')[1])).toEqual(
    Array(3).fill(created.text),
  );
});

test('every GET is measured under its route', async () => {
  const id = idOf(await service.create());
  const count = async (): Promise<number> => {
    const { text } = await service.ask('GET', '/metrics');
    const line = text
      .split('\n')
      .find((one) => /_count\{.*"GET".*\/payments\/:paymentId",.*"200"/.test(one));
    return Number(line?.split(' ').at(-1) ?? 0);
  };
  const before = await count();
  await get(id);
  await get(id);
  expect(await count()).toBe(before + 2);
});

test('gaps §9: a document that is parked is not given', () => {
  const auth = { principalOf: () => PRINCIPAL, draw: () => true };
  const found = (parked: boolean) => {
    const document = {
      paymentId: 'pay_1',
      merchantId: 'm_1',
      revision: 1,
      body: '{}',
      bodyBytes: 2,
      parked,
    };
    const route = paymentAtOnce({ getAtOnce: () => document, isBehind: () => false }, auth);
    const request = { url: `${PAYMENTS}/pay_1`, rawHeaders: [] as string[] } as IncomingMessage;
    return route.find(request, () => false);
  };
  expect(found(false)?.body).toBe('{}');
  expect(found(true)).toBeUndefined();
});

test('read models that throw are met again, and worded, by the framework', () => {
  const auth = { principalOf: () => PRINCIPAL, draw: () => true };
  const getAtOnce = () => {
    throw new Error('the file is damaged');
  };
  const { find } = paymentAtOnce({ getAtOnce, isBehind: () => false }, auth);
  const request = { url: `${PAYMENTS}/pay_1`, rawHeaders: [] as string[] } as IncomingMessage;
  expect(find(request, () => false)).toBeUndefined();
});

test('a server that is closing or full lets the framework reject the request', async () => {
  const { log } = createLogger({ level: 'silent', destination: 'stdout' });
  const app = buildApp({ log, metrics: createMetrics(), maxInFlight: 1 });
  const found = { etag: '"1"', body: '{}', bodyBytes: 2, paymentId: 'pay_1', merchantId: 'm_1' };
  app.atOnce.route = { route: '/', find: (_, isFull) => (isFull('m_1') ? undefined : found) };
  app.get('/', { onRequest: app.takePlace }, () => '{}');
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const statusOf = async (): Promise<number> => (await fetch(address)).status;
  expect(await statusOf()).toBe(200);
  app.lifecycle.places.take('m_1', 1);
  expect(await statusOf()).toBe(503);
  app.lifecycle.places.take('m_1', -1);
  app.lifecycle.closing = true;
  expect(await statusOf()).toBe(503);
  await app.close();
});

test('gaps §11: a GET without a Host is rejected, and draws nothing on the way', async () => {
  const { log } = createLogger({ level: 'silent', destination: 'stdout' });
  const app = buildApp({ log, metrics: createMetrics(), maxInFlight: 1 });
  let finds = 0;
  const find = () => {
    finds += 1;
    return { etag: '"1"', body: '{}', bodyBytes: 2, paymentId: 'pay_1', merchantId: 'm_1' };
  };
  app.atOnce.route = { route: '/', find };
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const get = async (setHost: boolean) => {
    const [response] = await once(httpGet(address, { setHost, agent: false }), 'response');
    response.resume();
    return { status: response.statusCode, finds };
  };
  const without = await get(false);
  const withHost = await get(true);
  await app.close();
  expect(without).toEqual({ status: 400, finds: 0 });
  expect(withHost).toEqual({ status: 200, finds: 1 });
});
