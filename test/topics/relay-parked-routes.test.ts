/** The payments that the relay has parked: listed, and sent again on request, by route and by command. */
import { afterEach, describe, expect, test } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import { registerRoutes } from '../../shared/http/route.ts';
import { streamOf } from '../../shared/payment/events.ts';
import type { KeyDocument } from '../../shared/read-models/key-document.ts';
import { noRelay } from '../../topics/open-relay.ts';
import { RETRIED_MAX, type Relay } from '../../topics/relay.ts';
import { RELAY_PARKED_ROUTES } from '../../topics/topic-routes.ts';
import { runCli } from '../support/cli.ts';
import { expectWhole } from '../support/feed-checks.ts';
import { openApp, signToken } from '../support/in-process.ts';
import { appendLives } from '../support/many-payments.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { memoryDocument, memoryFeed } from '../support/memory-feed.ts';
import { startOver, untilHalted, untilReady } from '../support/relaying.ts';
import { until } from '../support/until.ts';

const LATER = 'of a later version';
const PATH = '/ops/v1/topics/parked';

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const served = async (relay: Relay): Promise<FastifyInstance> => {
  const { app, authHooks } = await openApp();
  registerRoutes(app, authHooks, RELAY_PARKED_ROUTES, { relay });
  ends.push(() => app.close());
  return app;
};

const tokenOf = (merchant: string, scope: string): Promise<string> =>
  signToken({ merchant_id: merchant, sub: 'jane', scope });

const ask = async (
  app: FastifyInstance,
  method: 'GET' | 'POST',
  path = '',
  merchant = '*',
  scope = 'ops:admin',
) => {
  const headers = { authorization: `Bearer ${await tokenOf(merchant, scope)}` };
  const { statusCode, ...response } = await app.inject({ method, url: PATH + path, headers });
  return { status: statusCode, headers: response.headers, json: response.json() };
};

/** Payments `pay_0` and so on, each damaged at its fourth event. */
const damaged = async (payments: number): Promise<MemoryEventStore> => {
  const store = memoryEventStore();
  for (let n = 0; n < payments; n += 1) {
    await appendLives(store, [`pay_${n}`]);
    store.damage(streamOf(`pay_${n}`), 3, LATER);
  }
  return store;
};

type Options = { store: MemoryEventStore; checkpoint?: KeyDocument; mayRun?: () => boolean };

const relayOver = ({ store, checkpoint = memoryDocument(), mayRun }: Options) => {
  const feed = memoryFeed();
  const options = { waitsMs: { standBy: 1 }, ...(mayRun && { mayRun }) };
  const relay = startOver({ store, feed, checkpoint }, options);
  ends.push(() => relay.stop());
  return { relay, feed };
};
const note = (paymentId: string) => ({
  paymentId,
  from: 3,
  to: 5,
  reason: expect.stringContaining(LATER),
  since: expect.stringContaining('T'),
});

describe('GET /ops/v1/topics/parked', () => {
  test('says which payments wait, since when, from which revision and why', async () => {
    const { relay } = relayOver({ store: await damaged(2) });
    await untilReady(relay);
    const app = await served(relay);
    const { status, json } = await ask(app, 'GET');
    expect(status).toBe(200);
    expect(json).toEqual({ state: 'running', count: 2, parked: [note('pay_0'), note('pay_1')] });
  });

  test('a relay that stands by or has halted still says it', async () => {
    const store = await damaged(1);
    const checkpoint = memoryDocument();
    const first = relayOver({ store, checkpoint });
    await untilReady(first.relay);
    const { relay } = relayOver({ store, checkpoint, mayRun: () => false });
    await until('it stands by', () => relay.status().state === 'standing-by');
    const waiting = await ask(await served(relay), 'GET');
    expect(waiting.json).toEqual({ state: 'standing-by', count: 1, parked: [note('pay_0')] });
    await first.relay.stop();
    store.cut(2);
    const halted = relayOver({ store, checkpoint });
    await untilHalted(halted.relay);
    const { json } = await ask(await served(halted.relay), 'GET');
    expect(json).toMatchObject({ state: 'halted', error: expect.any(String), count: 1 });
  });
});

describe('POST /ops/v1/topics/parked/{paymentId}/retry', () => {
  test('the cause remains, and is gone: sent once, whole and in order', async () => {
    const store = await damaged(2);
    const { relay, feed } = relayOver({ store });
    await untilReady(relay);
    const app = await served(relay);
    const { json } = await ask(app, 'POST', '/pay_0/retry');
    const reason = expect.stringContaining(LATER);
    expect(json).toEqual({ paymentId: 'pay_0', sent: false, at: 3, reason });
    for (const id of ['pay_0', 'pay_1']) store.mend(streamOf(id));
    expect((await ask(app, 'POST', '/pay_0/retry')).json).toEqual({
      paymentId: 'pay_0',
      sent: true,
    });
    expect((await ask(app, 'POST', '/pay_0/retry')).status).toBe(404);
    expect((await ask(app, 'POST', '/pay.9/retry')).status).toBe(400);
    expect((await ask(app, 'POST', '/retry')).json).toEqual({
      retried: [{ paymentId: 'pay_1', sent: true }],
      left: 0,
    });
    const events = await store.readAll(null, 100);
    expectWhole(feed.stored('events'), events as Parameters<typeof expectWhole>[1]);
  });

  test('waiting sets no broker: without one the retry is 422', async () => {
    const app = await served(noRelay());
    for (const path of ['/pay_0/retry', '/retry']) {
      const { status, headers, json } = await ask(app, 'POST', path);
      expect([status, json.error, headers['retry-after']]).toEqual([
        422,
        'BUSINESS_RULE_VIOLATION',
        undefined,
      ]);
      expect(json.details).toEqual([expect.stringContaining('no broker is set')]);
    }
  });

  test('a relay that stands by, backs off or has halted says so, and sends nothing', async () => {
    const rejected = async (relay: Relay) => {
      const app = await served(relay);
      const { status, headers, json } = await ask(app, 'POST', '/pay_0/retry');
      expect([status, json.error]).toEqual([503, 'SERVICE_UNAVAILABLE']);
      expect(headers['retry-after']).toBe('5');
      expect(await ask(app, 'POST', '/retry')).toMatchObject({
        status,
        json: { details: json.details },
      });
      return { code: headers.rejection, details: json.details.join() };
    };
    const store = await damaged(1);
    const checkpoint = memoryDocument();
    const { relay, feed } = relayOver({ store, checkpoint });
    await untilReady(relay);
    feed.down(true);
    await appendLives(store, ['pay_9']);
    await until('it backs off', () => relay.status().state === 'backing-off');
    expect((await rejected(relay)).details).toMatch(/backs off \(the broker is down\)/);
    await relay.stop();
    const second = relayOver({ store, checkpoint, mayRun: () => false }).relay;
    await until('it stands by', () => second.status().state === 'standing-by');
    expect((await rejected(second)).code).toBe('STANDING_BY');
    store.cut(2);
    const third = relayOver({ store, checkpoint }).relay;
    await untilHalted(third);
    expect((await rejected(third)).details).toMatch(/has halted: .*log/);
  });
});

describe('payments topics parked and retry', () => {
  const env = async (relay: Relay) => ({
    PAYMENTS_URL: await (await served(relay)).listen({ port: 0, host: '127.0.0.1' }),
    PAYMENTS_TOKEN: await tokenOf('*', 'ops:admin'),
  });

  test('the list, one payment, and all of them: each once, however many a request tries', async () => {
    const payments = RETRIED_MAX + 20;
    const store = await damaged(payments);
    const { relay } = relayOver({ store });
    await untilReady(relay);
    const own = await env(relay);
    const listed = await runCli(['topics', 'parked'], own);
    expect([listed.code, listed.stdout]).toEqual([0, expect.stringMatching(/pay_0 +3-5 .*later/)]);
    const one = await runCli(['topics', 'retry', 'pay_0'], own);
    expect([one.code, one.stdout]).toEqual([1, expect.stringMatching(/^pay_0 +still parked at/)]);
    // The last of them can be sent: all others have been tried before it.
    store.mend(streamOf(`pay_${payments - 1}`));
    const all = await runCli(['topics', 'retry', '--all', '--format', 'json'], own);
    const retried = JSON.parse(all.stdout) as { paymentId: string; sent: boolean }[];
    expect(new Set(retried.map(({ paymentId }) => paymentId)).size).toBe(payments);
    expect(retried).toHaveLength(payments);
    expect(retried.filter(({ sent }) => sent)).toHaveLength(1);
    expect([all.code, all.stderr]).toEqual([1, expect.stringMatching(/119 payments still parked/)]);
  });

  test('a payment or --all, and not both', async () => {
    expect((await runCli(['topics', 'retry'])).code).toBe(2);
    expect((await runCli(['topics', 'retry', 'pay_0', '--all'])).code).toBe(2);
    const nothing = await runCli(['topics', 'parked'], await env(noRelay()));
    expect([nothing.code, nothing.stderr]).toEqual([
      0,
      expect.stringMatching(/relay off\n.*no pay/),
    ]);
  });
});
