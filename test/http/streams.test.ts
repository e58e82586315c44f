/** A5: only so many streaming responses are open at once, in all and for each merchant; and those that break off. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import { createStreams, type Streams } from '../../shared/http/server/streams.ts';
import type { Log } from '../../shared/runtime/log.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { until } from '../support/until.ts';

const silent = { info: () => undefined } as unknown as Log;

const LIMITS = { openMax: 5, ownMax: 2, keepAliveMs: 1000, stalledMs: 1000 };

let app: FastifyInstance;
afterEach(async () => {
  const closed = app.close();
  app.server.closeAllConnections();
  await closed;
});

describe('A5: open streams', () => {
  let streams: Streams;
  let url: string;
  let arrived: number;
  let ready: PromiseWithResolvers<void>;

  beforeEach(async () => {
    app = buildApp({ log: silent, metrics: createMetrics(), maxInFlight: 100 });
    streams = createStreams(app, LIMITS);
    arrived = 0;
    ready = Promise.withResolvers();
    app.get<{ Params: { merchantId: string } }>('/:merchantId', async (request, reply) => {
      arrived += 1;
      const { merchantId } = request.params;
      request.principal = { merchantId, actor: 'a', scopes: undefined };
      if (!streams.take(reply)) return reply.code(503).send('full');
      // Counted from here on, whatever the handler still waits for before the stream begins.
      await ready.promise;
      return streams.send(reply, 'text/plain', async function* (signal) {
        yield 'begun';
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      });
    });
    url = await app.listen({ host: '127.0.0.1', port: 0 });
  });

  const ask = async (merchantId: string) => {
    const leaving = new AbortController();
    const { status } = await fetch(`${url}/${merchantId}`, { signal: leaving.signal });
    return { status, leave: () => leaving.abort() };
  };
  /** The statuses of requests that all arrive before the first stream begins. */
  const statuses = async (...merchants: string[]) => {
    arrived = 0;
    const requests = merchants.map(ask);
    await until('every request has arrived', () => arrived === merchants.length);
    ready.resolve();
    return (await Promise.all(requests)).map(({ status }) => status).toSorted();
  };

  test('a merchant that does not read its other responses gets none, and other merchants get theirs', async () => {
    app.lifecycle.unread.take('m_1', 40_000_000);
    expect(await statuses('m_1', 'm_2')).toEqual([200, 503]);
  });

  test('a stream whose client has left counts no longer', async () => {
    ready.resolve();
    const [first] = await Promise.all([ask('m_1'), ask('m_1')]);
    first?.leave();
    await until('another stream opens', async () => (await ask('m_1')).status === 200);
  });
});

test('a stream that breaks off in the middle is a line of the log', async () => {
  const lines: Record<string, unknown>[] = [];
  const write = (line: Record<string, unknown>) => lines.push(line);
  const log = { error: write, info: () => undefined } as unknown as Log;
  app = buildApp({ log, metrics: createMetrics(), maxInFlight: 10 });
  const streams = createStreams(app, LIMITS);
  app.get<{ Querystring: { at: string } }>('/broken', ({ query }, reply) => {
    streams.send(reply, 'text/plain', async function* () {
      if (query.at === 'start') throw new StoreUnavailable('the disk is full');
      yield 'begun';
      await until('the client has its status', async () => reply.raw.headersSent);
      throw new StoreUnavailable('the disk is full');
    });
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const middle = await fetch(`${url}/broken?at=middle`);
  expect(middle.status).toBe(200);
  await expect(middle.text()).rejects.toThrow();
  const line = { requestId: middle.headers.get('request-id'), route: '/broken' };
  expect(lines).toMatchObject([{ ...line, err: { message: 'the disk is full' } }]);
  // Before its first text it is a response like any other, with one line too.
  expect((await fetch(`${url}/broken?at=start`)).status).toBe(503);
  expect(lines).toHaveLength(2);
});
