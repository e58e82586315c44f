/**
 * What a client that does not read, or hardly reads, may keep of the service's memory and places, over
 * real sockets: memory and places are bounded (A5).
 */
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import { buildApp } from '../../shared/http/server/app.ts';
import { closeGracefully } from '../../shared/http/server/health.ts';
import type { Log } from '../../shared/runtime/log.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { AWAITED_MS } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

type Line = { route?: string; status?: number };

/** More than the kernel keeps for a client that does not read, and two of them more than a merchant may have. */
const LONG = 'x'.repeat(20_000_000);
const PAGE = 'x'.repeat(262_144);

let app: FastifyInstance;
let url: string;
let lines: Line[];
let sockets: Socket[];

const start = async (stalledMs = 60_000): Promise<void> => {
  const own: Line[] = [];
  lines = own;
  const write = (line: Line) => own.push(line);
  const log = { debug: write, info: write, error: write } as unknown as Log;
  app = buildApp({ log, metrics: createMetrics(), maxInFlight: 100, stalledMs });
  app.addHook('onRequest', (request, _reply, done) => {
    const merchantId = String(request.headers.merchant);
    request.principal = { merchantId, actor: 'a', scopes: undefined };
    done();
  });
  const route = { onRequest: app.takePlace };
  app.get('/long', route, (_request, reply) => reply.header('etag', '"1"').send(LONG));
  app.get('/page', route, (_request, reply) => reply.send(PAGE));
  app.post('/page', route, (_request, reply) => reply.send(PAGE));
  app.get('/small', route, (_request, reply) => reply.send('{}'));
  url = await app.listen({ host: '127.0.0.1', port: 0 });
};

beforeEach(async () => {
  sockets = [];
  await start();
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await closeGracefully(app, { hardStopMs: 1000 });
});

/** A client that sends GETs one behind the other and reads nothing. */
const sendOnly = (merchant: string, ...paths: string[]): Socket => {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => undefined).pause();
  for (const path of paths)
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nmerchant: ${merchant}\r\n\r\n`);
  sockets.push(socket);
  return socket;
};

const ask = async (merchant: string, path: string, method = 'GET') => {
  const response = await fetch(`${url}${path}`, { method, headers: { merchant } });
  return { status: response.status, headers: response.headers, text: await response.text() };
};

const taken = () => ({
  places: app.lifecycle.places.taken(),
  unread: app.lifecycle.unread.taken(),
});
const NOTHING = { places: 0, unread: 0 };

describe('a response that is not read', () => {
  test('keeps the place of its request and counts with its length, until its client has left', async () => {
    const socket = sendOnly('m_1', '/long');
    await until('it is on its way', () => taken().unread > 0);
    expect(taken()).toEqual({ places: 1, unread: LONG.length });
    expect((await ask('m_1', '/small')).status).toBe(200);
    expect(taken()).toEqual({ places: 1, unread: LONG.length });
    socket.destroy();
    await until('nothing is taken', () => taken().places === 0);
    expect(taken()).toEqual(NOTHING);
  });

  test('one that was read leaves its place and counts no more', async () => {
    expect((await ask('m_1', '/long')).text).toHaveLength(LONG.length);
    await until('nothing is taken', () => taken().places === 0);
    expect(taken()).toEqual(NOTHING);
  });

  test('of a merchant with 32 MB of them the next large one is 503; small ones and those of other merchants are not', async () => {
    for (let n = 0; n < 2; n += 1) sendOnly('m_1', '/long');
    await until('both are on their way', () => taken().places === 2);
    const refused = await ask('m_1', '/long');
    expect(refused.status).toBe(503);
    const fields = ['error', 'message', 'details', 'timestamp'];
    expect(Object.keys(JSON.parse(refused.text))).toEqual(fields);
    expect(JSON.parse(refused.text)).toMatchObject({
      error: 'SERVICE_UNAVAILABLE',
      details: ['too many responses are not read yet'],
    });
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(refused.headers.get('etag')).toBeNull();
    expect((await ask('m_1', '/small')).status).toBe(200);
    expect((await ask('m_2', '/page')).status).toBe(200);
    for (const socket of sockets) socket.destroy();
    await until('it is served again', async () => (await ask('m_1', '/page')).status === 200);
  });

  test('what was carried out is told however much is not read', async () => {
    for (let n = 0; n < 2; n += 1) sendOnly('m_1', '/long');
    await until('both are on their way', () => taken().places === 2);
    expect(await ask('m_1', '/page', 'POST')).toMatchObject({ status: 200, text: PAGE });
  });

  test('at 64 MB of all merchants every large one is 503, and small ones are not', async () => {
    for (const merchant of ['m_1', 'm_1', 'm_2', 'm_2']) sendOnly(merchant, '/long');
    await until('all are on their way', () => taken().places === 4);
    expect((await ask('m_3', '/page')).status).toBe(503);
    expect((await ask('m_3', '/small')).status).toBe(200);
  });
});

test('what waits behind another response is dropped when its client has left', async () => {
  const pages = Array.from({ length: 20 }, () => '/page');
  const socket = sendOnly('m_1', '/long', ...pages);
  await until('all are made', () => taken().unread === LONG.length + 20 * PAGE.length);
  expect(taken().places).toBe(21);
  socket.destroy();
  await until('nothing is taken', () => taken().places === 0);
  expect(taken()).toEqual(NOTHING);
  expect(lines).toHaveLength(21);
});

describe('a client that takes something all the time, and less than 256 KiB in its time', () => {
  const STALLED_MS = 400;
  const startAnew = async (stalledMs: number): Promise<void> => {
    await closeGracefully(app, { hardStopMs: 1000 });
    await start(stalledMs);
  };

  /** Reads this much in each time of the server's. */
  const trickle = (socket: Socket, bytes: number): NodeJS.Timeout => {
    const parts = 8;
    return setInterval(() => socket.read(bytes / parts), STALLED_MS / parts);
  };

  test('is let go', async () => {
    await startAnew(STALLED_MS);
    const socket = sendOnly('m_1', ...Array.from({ length: 60 }, () => '/page'));
    const reading = trickle(socket, PAGE.length / 2);
    await until('it is on its way', () => taken().unread > 0);
    await until('its connection is closed', () => taken().places === 0);
    clearInterval(reading);
    // Else it would have been served until it had taken all but what the kernels keep.
    expect(socket.bytesRead).toBeLessThan(20 * PAGE.length);
    expect(socket.bytesRead).toBeGreaterThan(0);
    expect(taken()).toEqual(NOTHING);
  });

  test('is not let go where it takes all of each page in its time', async () => {
    await startAnew(AWAITED_MS);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    sockets.push(socket);
    let received = 0;
    const ended = new Promise((resolve) => socket.once('close', resolve));
    socket.on('data', (part) => {
      received += part.length;
      if (received > 20 * PAGE.length) socket.end();
      else if (received % PAGE.length < part.length) socket.write(PAGE_REQUEST);
    });
    const PAGE_REQUEST = 'GET /page HTTP/1.1\r\nhost: x\r\nmerchant: m_1\r\n\r\n';
    socket.write(PAGE_REQUEST);
    await ended;
    expect(received).toBeGreaterThan(20 * PAGE.length);
  });
});
