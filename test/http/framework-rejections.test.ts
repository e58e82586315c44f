/**
 * Rejections that no route makes: router, body parser, socket parser, time-outs, overload, shutdown
 * (gaps §1). Over real sockets, because half of them never become a request.
 */
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import { helpLink, reject } from '../../shared/http/errors.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import { closeGracefully, registerHealth } from '../../shared/http/server/health.ts';
import { parseText, textOf } from '../../shared/runtime/json.ts';
import type { Log } from '../../shared/runtime/log.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { VERSION } from '../../shared/runtime/version.ts';
import { rawClient } from '../support/raw-client.ts';
import { AWAITED_MS, HANGS_MS } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

type Line = Record<string, unknown>;

/** More than the kernel keeps for a client that does not read. */
const LONG_BYTES = 20_000_000;

let lines: Line[];
let app: FastifyInstance;
let port: number;
/** What a request for /slow waits for, and what it resolves before. */
let released: Promise<void>;
let release: () => void;
let slowStarted: Promise<void>;
let started: () => void;

const onRequest = (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
  if (request.headers.authorization === undefined) reject(reply, 'UNAUTHORIZED', ['no token']);
  else done();
};

const addRoutes = (): void => {
  const { takePlace } = app;
  app.post('/api/v1/payments', { onRequest: [onRequest, takePlace] }, async (request, reply) => {
    const parsed = parseText(
      textOf(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)),
    );
    return parsed.ok
      ? reply.send({ read: parsed.value ?? null })
      : reject(reply, 'INVALID_REQUEST');
  });
  app.get<{ Params: { paymentId: string } }>(
    '/api/v1/payments/:paymentId',
    { onRequest: [onRequest, takePlace] },
    async ({ params }, reply) => reply.send(params),
  );
  app.post('/api/v1/payments/:paymentId/capture', async (_request, reply) => reply.send({}));
  app.post('/slow', { onRequest: takePlace }, async (_request, reply) => {
    started();
    await released;
    return reply.send({ done: true });
  });
  app.get('/stream', { onRequest: takePlace }, async (_request, reply) => {
    started();
    await released;
    return reply.send(Readable.from(['x']));
  });
  app.get('/broken-stream', { onRequest: takePlace }, (_request, reply) => {
    const stream = new Readable({
      read: () => stream.destroy(new StoreUnavailable('disk full')),
    });
    reply.send(stream);
  });
  app.get('/long', (_request, reply) => {
    reply.send('x'.repeat(LONG_BYTES));
  });
  app.post('/broken', async () => {
    throw new Error('card 4242424242424242 in a message');
  });
  app.post('/no-store', async () => {
    throw new StoreUnavailable('disk full');
  });
};

/** How long a request may take to arrive: never too short for a busy machine, or soon over. */
const ARRIVAL_MS = {
  long: { request: 60_000, headers: 60_000, keepAlive: 60_000, check: 50 },
  short: { request: 300, headers: 200, keepAlive: 60_000, check: 50 },
};

type Started = {
  arrivalMs?: (typeof ARRIVAL_MS)['long'];
  stalledMs?: number;
};

const start = async ({
  arrivalMs = ARRIVAL_MS.long,
  stalledMs = 60_000,
}: Started = {}): Promise<void> => {
  const own: Line[] = [];
  lines = own;
  const write = (line: Line) => own.push(line);
  const log = { debug: write, info: write, error: write } as unknown as Log;
  const metrics = createMetrics();
  app = buildApp({ log, metrics, maxInFlight: 100, arrivalMs, stalledMs });
  addRoutes();
  registerHealth(app, { metrics, ready: async () => ({ ready: true, engines: {} }) });
  await app.listen({ host: '127.0.0.1', port: 0 });
  port = (app.server.address() as { port: number }).port;
};

/** In place of the one that tests share, for a test that needs other settings, or one without a past. */
const startAnew = async (options?: Started): Promise<void> => {
  await closeGracefully(app, { hardStopMs: 1000 });
  await start(options);
  isShared = false;
};

let isShared = false;
beforeEach(async () => {
  ({ promise: released, resolve: release } = Promise.withResolvers<void>());
  ({ promise: slowStarted, resolve: started } = Promise.withResolvers<void>());
  if (!isShared) await start();
  isShared = true;
});
afterEach(async () => {
  release();
  if (isShared && app.server.listening) return;
  await closeGracefully(app, { hardStopMs: 1000 });
  isShared = false;
});
afterAll(() => closeGracefully(app, { hardStopMs: 1000 }));

type CommandResponse = { status: number; headers: Record<string, string>; body: string };

const parseResponse = (text: string): CommandResponse => {
  const [head = '', body = ''] = text.split('\r\n\r\n', 2);
  const [statusLine = '', ...fields] = head.split('\r\n');
  const headers = Object.fromEntries(
    fields.map((field) => {
      const at = field.indexOf(':');
      return [field.slice(0, at).toLowerCase(), field.slice(at + 1).trim()];
    }),
  );
  return { status: Number(statusLine.split(' ')[1]), headers, body };
};

/** Sends bytes as they are, and resolves with all that came back when the server has closed. */
const talk = async (...parts: string[]): Promise<string> => {
  const client = rawClient(port, ...parts);
  await client.closed;
  return client.received();
};

const raw = async (...parts: string[]): Promise<CommandResponse> =>
  parseResponse(await talk(...parts));

const TOKEN = 'authorization: Bearer x\r\n';
const request = (line: string, headers = '', body = ''): string =>
  `${line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${headers}${TOKEN}\r\n${body}`;

const expectError = (response: CommandResponse, status: number, error: string): Line => {
  expect(response.status).toBe(status);
  const body = JSON.parse(response.body) as Line;
  expect(Object.keys(body)).toEqual(['error', 'message', 'details', 'timestamp']);
  expect(body).toMatchObject({ error, message: expect.stringMatching(/\w/) });
  expect(Array.isArray(body.details)).toBe(true);
  expect(new Date(body.timestamp as string).toISOString()).toBe(body.timestamp);
  expect(response.headers).toMatchObject({
    'cache-control': 'no-store',
    'content-type': 'application/json; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'request-id': expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/),
    link: helpLink(error),
  });
  expect(response.headers).not.toHaveProperty('server');
  expect(response.headers).not.toHaveProperty('x-powered-by');
  return body;
};

describe('gaps §1: a request that is not well formed gets the error body', () => {
  const host = 'host: x\r\n';
  const post = `POST /slow HTTP/1.1\r\n${host}`;
  const chunked = 'transfer-encoding: chunked\r\n\r\n';
  test.each<[string, number, string]>([
    ['a broken request line', 400, 'HELLO\r\n\r\n'],
    ['an unknown method', 400, `FOO / HTTP/1.1\r\n${host}\r\n`],
    ['a header of 20,000 bytes', 431, `GET / HTTP/1.1\r\n${host}a: ${'x'.repeat(20_000)}\r\n\r\n`],
    ['a path of 20,000 bytes', 431, `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n${host}\r\n`],
    ['no Host', 400, `GET /health/live HTTP/1.1\r\nconnection: close\r\n\r\n`],
    ['two Hosts', 400, `GET /health/live HTTP/1.1\r\n${host}${host}connection: close\r\n\r\n`],
    ['an expectation', 417, `${post}expect: x\r\ncontent-length: 1\r\n\r\n`],
    ['two lengths', 400, `${post}content-length: 1\r\ncontent-length: 2\r\n\r\n`],
    ['length and chunks', 400, `${post}content-length: 1\r\n${chunked}0\r\n\r\n`],
  ])('%s', async (_name, status, bytes) => {
    const body = expectError(await raw(bytes), status, 'INVALID_REQUEST');
    expect(body.details).toHaveLength(1);
  });

  test.each(['http://', 'https://', 'http:///'])(
    'an address without a host or path, %s',
    async (address) => {
      await startAnew();
      expectError(await raw(request(`GET ${address}`)), 400, 'INVALID_REQUEST');
      await until('it is logged', () => lines.length > 0);
      expect(lines[0]).toMatchObject({ status: 400, error: 'INVALID_REQUEST' });
      expect(app.lifecycle.places.taken()).toBe(0);
    },
  );

  describe('that does not arrive in time', () => {
    beforeEach(async () => {
      await startAnew({ arrivalMs: ARRIVAL_MS.short });
    });

    test.each<[string, number, string]>([
      ['headers that never end', 408, `GET / HTTP/1.1\r\n${host}`],
      ['a body that never ends', 408, `${post}content-length: 9\r\n\r\nx`],
    ])('%s', async (_name, status, bytes) => {
      const body = expectError(await raw(bytes), status, 'INVALID_REQUEST');
      expect(body.details).toHaveLength(1);
    });

    test('a request that never arrives as a whole does not stay counted as in flight', async () => {
      await raw(`${post}content-length: 9\r\n\r\nx`);
      await raw(`${post}${chunked}zz\r\n`);
      await until('nothing is in flight', () => app.lifecycle.places.taken() === 0);
      expect(lines).toHaveLength(2);
    });
  });

  test('a broken chunk behind a valid token', async () => {
    const head = request('POST /api/v1/payments', 'transfer-encoding: chunked\r\n');
    expectError(await raw(`${head}zz\r\n`), 400, 'INVALID_REQUEST');
  });

  test('A4: CONNECT is 405', async () => {
    const response = await raw(`CONNECT x:1 HTTP/1.1\r\n${host}\r\n`);
    expectError(response, 405, 'METHOD_NOT_ALLOWED');
    expect(response.headers.allow).toBe('GET, POST');
  });

  test('a client that is gone before the 405 of its CONNECT does not end the process', async () => {
    await startAnew();
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`CONNECT x:1 HTTP/1.1\r\n${host}\r\n`, () => socket.resetAndDestroy());
    });
    await new Promise((resolve) => {
      app.server.once('connection', (served) => served.once('close', resolve));
    });
    expect((await raw(request('GET /health/live'))).status).toBe(200);
  });

  test.each([
    ['malformed bytes', 'rubbish\r\n\r\n'],
    ['a CONNECT', `CONNECT x:1 HTTP/1.1\r\n${host}\r\n`],
  ])('a whole request gets its own response before %s behind it', async (_name, bytes) => {
    const receiving = raw(`${post}content-length: 0\r\n\r\n${bytes}`);
    await slowStarted;
    release();
    const response = await receiving;
    expect(response.status).toBe(200);
    expect(response.body).toBe('{"done":true}');
  });

  test('a request behind the last one of a connection gets no response, and none without a body', async () => {
    await startAnew();
    app.server.maxRequestsPerSocket = 2;
    const text = await talk(`GET /health/live HTTP/1.1\r\n${host}\r\n`.repeat(4));
    expect(text.match(/HTTP\/1\.1 \d+|connection: [a-z-]+/gi)).toEqual([
      'HTTP/1.1 200',
      'Connection: keep-alive',
      'HTTP/1.1 200',
      'Connection: close',
    ]);
  });

  describe('RFC 9112, section 9.3: a response before the body has come', () => {
    const early: [line: string, token: string, status: number][] = [
      ['POST /api/v1/payments', '', 401],
      ['POST /nowhere', TOKEN, 404],
      ['DELETE /api/v1/payments', TOKEN, 405],
      ['GET /health/live', '', 200],
    ];
    const head = (line: string, token: string, length: number): string =>
      `${line} HTTP/1.1\r\n${host}${token}content-length: ${length}\r\n\r\n`;
    const namedIn = (text: string) => text.match(/HTTP\/1\.1 \d+|connection: [a-z-]+/gi);

    test.each(early)('%s: is the last of its connection', async (line, token, status) => {
      const text = await talk(`${head(line, token, 60_000)}x`);
      expect(namedIn(text)).toEqual([`HTTP/1.1 ${status}`, 'connection: close']);
    });

    test.each(early)('%s: a body that comes whole is read past', async (line, token, status) => {
      const body = 'x'.repeat(60_000);
      const next = `GET /health/live HTTP/1.1\r\n${host}connection: close\r\n\r\n`;
      const text = await talk(head(line, token, body.length), `${body}${next}`);
      expect(namedIn(text)).toEqual([
        `HTTP/1.1 ${status}`,
        'Connection: keep-alive',
        'HTTP/1.1 200',
        'Connection: close',
      ]);
    });
  });

  test('100-continue is honoured', async () => {
    const text = await talk(
      request('POST /api/v1/payments', 'expect: 100-continue\r\ncontent-length: 2\r\n', '{}'),
    );
    expect(text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
  });
});

describe('gaps §1: addresses and methods', () => {
  test.each([
    '/nowhere',
    '/',
    '/api/v1/payments/x/refund',
    '/api/v1/payments/x/capture/',
    '/API/v1/payments',
  ])('%s is unknown, with or without a token', async (path) => {
    for (const token of [TOKEN, '']) {
      const text = `POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${token}\r\n`;
      const response = await raw(text);
      expectError(response, 404, 'NOT_FOUND');
      expect(response.body).not.toContain('nowhere');
    }
  });

  test.each([
    ['GET', '/api/v1/payments', 'POST'],
    ['PUT', '/api/v1/payments?x=1', 'POST'],
    ['DELETE', '/api/v1/payments/secret', 'GET'],
    ['GET', '/api/v1/payments/secret/capture', 'POST'],
    ['OPTIONS', '/api/v1/payments', 'POST'],
    ['QUERY', '/api/v1/payments', 'POST'],
    ['POST', '/health/live', 'GET, HEAD'],
    ['PUT', '/api/v1/p%61yments', 'POST'],
    ['DELETE', '/api/v1/payments/%2F', 'GET'],
    ['DELETE', '/api/v1/payments/secret%zz', 'GET'],
    ['DELETE', 'http://x:8080/api/v1/payments/secret?x=%zz', 'GET'],
    ['PUT', 'https://x/api/v1/payments', 'POST'],
  ])('%s %s is 405 and allows %s', async (method, path, allow) => {
    const response = await raw(request(`${method} ${path}`));
    expectError(response, 405, 'METHOD_NOT_ALLOWED');
    expect(response.headers.allow).toBe(allow);
    expect(response.body).not.toContain('secret');
  });
});

test('gaps §1: where one slash too many leads to another address, the 405 says so', async () => {
  const response = await raw(request('POST /api/v1/payments/?x=1'));
  expectError(response, 405, 'METHOD_NOT_ALLOWED');
  expect(JSON.parse(response.body).details).toEqual([
    'this address takes GET',
    'without the slash at its end it takes this method',
  ]);
});

test('gaps §1: HEAD is 405 too', async () => {
  const response = await raw(request('HEAD /api/v1/payments/x'));
  expect([response.status, response.headers.allow, response.body]).toEqual([405, 'GET', '']);
});

describe('gaps §3: request bodies', () => {
  const post = (headers: string, body: string) =>
    raw(request('POST /api/v1/payments', `content-length: ${body.length}\r\n${headers}`, body));

  test.each(['', 'text/plain', 'application/json', ';;;'])(
    'are read as JSON with the content type %j',
    async (type) => {
      const response = await post(type === '' ? '' : `content-type: ${type}\r\n`, '{"a":1}');
      expect([response.status, response.body]).toEqual([200, '{"read":{"a":1}}']);
    },
  );

  test.each(['', ' \n'])('an empty one (%j) with a JSON content type is none', async (body) => {
    const response = await post('content-type: application/json\r\n', body);
    expect([response.status, response.body]).toEqual([200, '{"read":null}']);
  });

  test('65,536 bytes are allowed, one more is 413, chunks counted alike', async () => {
    const text = (length: number) => `"${'x'.repeat(length - 2)}"`;
    expect((await post('', text(65_536))).status).toBe(200);
    const { details } = expectError(await post('', text(65_537)), 413, 'INVALID_REQUEST');
    expect(details).toEqual(['the body must be at most 65536 bytes']);
    const chunk = `10001\r\n${text(65_537)}\r\n0\r\n\r\n`;
    const chunked = request('POST /api/v1/payments', 'transfer-encoding: chunked\r\n', chunk);
    expectError(await raw(chunked), 413, 'INVALID_REQUEST');
  });
});

describe('gaps §1, §7: faults of the service itself', () => {
  test('a bug is 500, and its body shows nothing of the error', async () => {
    const body = expectError(await raw(request('POST /broken')), 500, 'INTERNAL_ERROR');
    expect(body.details).toEqual([]);
  });

  test('an event store out of reach is 503 with Retry-After', async () => {
    const response = await raw(request('POST /no-store'));
    expectError(response, 503, 'SERVICE_UNAVAILABLE');
    expect(response.headers['retry-after']).toBe('1');
  });

  test('a request whose client has left is carried out, counted until then, and logged once', async () => {
    await startAnew();
    const socket = connect(port, '127.0.0.1', () => socket.write(request('POST /slow')));
    await slowStarted;
    const left = new Promise((resolve) => socket.once('close', resolve));
    socket.destroy();
    await left;
    expect((await raw(request('GET /api/v1/payments/x'))).status).toBe(200);
    expect(app.lifecycle.places.taken()).toBe(1);
    release();
    expect((await raw(request('GET /api/v1/payments/x'))).status).toBe(200);
    expect(app.lifecycle.places.taken()).toBe(0);
    expect(lines.filter(({ route }) => route === '/slow')).toMatchObject([{ status: 499 }]);
  });
});

const connections = () =>
  new Promise<number>((resolve) => app.server.getConnections((_error, open) => resolve(open)));

describe('a stream that ends before it has begun', () => {
  test('is no longer in flight where its client has left, and that is no fault', async () => {
    await startAnew();
    const socket = connect(port, '127.0.0.1', () => socket.write(request('GET /stream')));
    await slowStarted;
    socket.destroy();
    await until('its connection is closed', async () => (await connections()) === 0);
    release();
    expect((await raw(request('GET /api/v1/payments/x'))).status).toBe(200);
    expect(app.lifecycle.places.taken()).toBe(0);
    expect(lines.filter(({ err }) => err !== undefined)).toEqual([]);
  });

  test('is no longer in flight where its source fails', async () => {
    expectError(await raw(request('GET /broken-stream')), 503, 'SERVICE_UNAVAILABLE');
    expect(app.lifecycle.places.taken()).toBe(0);
  });
});

describe('A5: a client that reads a long response', () => {
  test('is not let go, and its connection may wait for the next request', async () => {
    await startAnew({ stalledMs: AWAITED_MS });
    const kept = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
    let received = 0;
    const socket = connect(port, '127.0.0.1', () => socket.write(kept('/long')));
    socket.on('data', (chunk) => {
      received += chunk.length;
    });
    await until('it has the response', () => received > LONG_BYTES);
    const before = received;
    socket.write(kept('/health/live'));
    await until('it has the next one', () => received > before);
    socket.destroy();
  });
});

describe('gaps §1: shutdown', () => {
  const REQUEST = 'GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n';
  /** A connected client; `text` is what it has received, `ended` resolves once it is closed. */
  const connected = async () => {
    const socket = connect(port, '127.0.0.1');
    const received = { text: '' };
    socket.setEncoding('utf8').on('data', (part: string) => {
      received.text += part;
    });
    const ended = new Promise<Error | undefined>((resolve) => {
      socket.once('error', resolve);
      socket.once('close', () => resolve(undefined));
    });
    await new Promise((resolve) => socket.once('connect', resolve));
    return { socket, received, ended };
  };

  test('who has sent a request on a kept-alive connection before the stop gets a response', async () => {
    const clients = await Promise.all(Array.from({ length: 20 }, connected));
    for (const { socket } of clients) socket.write(REQUEST);
    await until('each has its first response', () =>
      clients.every(({ received }) => received.text.includes('HTTP/1.1 200')),
    );
    for (const { socket } of clients) socket.write(REQUEST);
    const closed = closeGracefully(app, { hardStopMs: HANGS_MS });
    expect(await Promise.all(clients.map(({ ended }) => ended))).toEqual(Array(20).fill(undefined));
    for (const { received } of clients) expect(received.text.match(/HTTP\/1\.1 /g)).toHaveLength(2);
    await closed;
  });

  /** A client of a server that is being stopped, in the time that new connections still have. */
  const connectedToStopping = async () => {
    for (let attempt = 0; attempt < 20; attempt += 1) {
      const client = await connected();
      const fromMs = performance.now();
      const closed = closeGracefully(app, { hardStopMs: HANGS_MS });
      await until('the server no longer listens', () => !app.server.listening);
      // What comes after a file was read comes before timers, and those before sockets are read.
      await readFile(import.meta.filename);
      if (performance.now() - fromMs < 400) return { ...client, closed };
      await closed;
      await start();
    }
    throw new Error('never in time');
  };

  test('also on a new connection, where the event loop was busy for long', async () => {
    const { socket, received, ended, closed } = await connectedToStopping();
    socket.write(REQUEST);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700);
    expect(await ended).toBeUndefined();
    expect(received.text).toContain('HTTP/1.1 503');
    await closed;
  });

  test('with a drain new requests are served, each as the last of its connection, until it is over', async () => {
    const [kept, unused] = [await connected(), await connected()];
    kept.socket.write(REQUEST);
    await until('it is kept', () => kept.received.text.includes('HTTP/1.1 200'));
    const fromMs = performance.now();
    let isOver = false;
    const closed = closeGracefully(app, { drainMs: AWAITED_MS, hardStopMs: HANGS_MS }).finally(
      () => {
        isOver = true;
      },
    );
    expect(app.lifecycle.closing).toBe(true);
    const late = await connected();
    for (const { socket } of [kept, late]) socket.write(REQUEST);
    await Promise.all([kept.ended, late.ended]);
    expect(isOver).toBe(false);
    expect(kept.received.text.match(/HTTP\/1\.1 200 /g)).toHaveLength(2);
    expect(kept.received.text.match(/connection: (\S+)/g)?.at(-1)).toBe('connection: close');
    expect(late.received.text).toMatch(/^HTTP\/1\.1 200 .*connection: close/s);
    await Promise.all([closed, unused.ended]);
    expect(performance.now() - fromMs).toBeGreaterThanOrEqual(AWAITED_MS);
  });

  test('a request that never ends is cut off', async () => {
    const slow = talk(request('POST /slow'));
    await slowStarted;
    await closeGracefully(app, { hardStopMs: 200 });
    expect(await slow).toBe('');
  });
});

test('gaps §4: the log line of a request has ids, route and status, and the address of a 401 alone', async () => {
  await startAnew();
  await raw(request('GET /api/v1/payments/pay_1?number=4242424242424242'));
  await raw(request('POST /broken?x=1'));
  expect(lines).toMatchObject([
    {
      requestId: expect.stringMatching(/^[0-9A-Z]{26}$/),
      method: 'GET',
      route: '/api/v1/payments/:paymentId',
      status: 200,
      durationMs: expect.any(Number),
    },
    { route: '/broken', err: expect.any(Error) },
    { route: '/broken', status: 500 },
  ]);
  const names =
    'client details durationMs error merchant method paymentId reason requestId route status trace_id';
  expect(Object.keys(lines[0] ?? {}).sort()).toEqual(names.split(' '));
  expect(lines[0]?.client).toBeUndefined();
});

test('surfaces: metrics name route and status, health names its engines', async () => {
  await startAnew();
  await raw(request('GET /api/v1/payments/pay_1'));
  const { body, headers } = await raw(request('GET /metrics'));
  expect(headers['content-type']).toMatch(/^text\/plain/);
  expect(body).toContain(
    'http_server_request_duration_seconds_count{http_request_method="GET",http_route="/api/v1/payments/:paymentId",http_response_status_code="200"} 1',
  );
  expect((await raw(request('GET /health/live'))).body).toBe(
    JSON.stringify({ status: 'live', version: VERSION }),
  );
});
