/**
 * The topics without a broker: what the routes and `payments topics tail` give is to the byte what
 * the relay sends, page after page, from any place in the log. And what the relay has parked: listed, and
 * sent again on request, by route and by command.
 */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { registerRoutes } from '../../shared/http/route.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { SEALS_STREAM } from '../../shared/payment/seal-events.ts';
import type { KeyDocument } from '../../shared/read-models/key-document.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { partitionOf } from '../../topics/messages.ts';
import type { Topic } from '../../topics/port.ts';
import { noRelay, RETRIED_MAX, type Relay } from '../../topics/relay.ts';
import { openTopics, RELAY_PARKED_ROUTES, TOPIC_ROUTES } from '../../topics/topic-routes.ts';
import { runCli } from '../support/cli.ts';
import { expectWhole } from '../support/feed-checks.ts';
import { appendLives } from '../support/many-payments.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { memoryDocument, memoryFeed } from '../support/memory-feed.ts';
import { relaying, startOver, untilHalted, untilReady, untilSent } from '../support/relaying.ts';
import { appendSeals } from '../support/seal-events.ts';
import { openApp, signToken } from '../support/service-in-process.ts';
import { silentLog } from '../support/silent-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const LATER = 'of a later version';

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const served = (store: Pick<EventStore, 'readAll' | 'readStream' | 'end'>): FastifyInstance => {
  const app = buildApp({ log: silentLog, metrics: createMetrics(), maxInFlight: 100 });
  const authenticate = (request: FastifyRequest, _reply: unknown, done: () => void): void => {
    request.principal = { merchantId: '*', actor: 'operator', scopes: new Set(['ops:admin']) };
    done();
  };
  const topics = openTopics({ store, relay: noRelay(), topicPrefix: 'payments' });
  registerRoutes(app, () => authenticate, TOPIC_ROUTES, topics);
  ends.push(() => app.close());
  return app;
};

const filled = async (payments: number) => {
  const store = memoryEventStore({ batchMax: 5 });
  await Promise.all(Array.from({ length: payments }, (_, n) => appendLives(store, [`pay_${n}`])));
  return store;
};

/** What the relay sends of a log, in order. */
const sentOf = async (store: ReturnType<typeof memoryEventStore>, topic: Topic) => {
  const parts = { store, feed: memoryFeed(), checkpoint: memoryDocument() };
  await relaying(parts, (relay) => untilSent(parts, relay));
  return parts.feed.stored(topic).map(({ value }) => value);
};

const pageOf = async (app: FastifyInstance, topic: string, query: Record<string, string>) => {
  const url = `/ops/v1/topics/${topic}/messages`;
  const { statusCode, body, headers } = await app.inject({ url, query });
  const lines = body.split('\n').slice(0, -1);
  return { status: statusCode, body, lines, next: String(headers['next-position']) };
};

const allPages = async (app: FastifyInstance, topic: string, limit: number): Promise<string[]> => {
  const lines: string[] = [];
  let from = 'start';
  for (;;) {
    const page = await pageOf(app, topic, { from, limit: String(limit) });
    if (page.next === from) return lines;
    lines.push(...page.lines);
    from = page.next;
  }
};

describe('GET /ops/v1/topics/{topic}/messages', () => {
  test.each<[Topic, number]>([
    ['events', 8 * 6 + 3],
    ['state', 8 * 6 + 3],
    ['seals', 2],
  ])('%s: the bytes of the relay, %i messages in any pages', async (topic, messages) => {
    const store = await filled(9);
    store.damage(streamOf('pay_4'), 3, LATER);
    await appendSeals(store, 3);
    store.damage(SEALS_STREAM, 1, LATER);
    const sent = await sentOf(store, topic);
    expect(sent).toHaveLength(messages);
    for (const limit of [1, 7, 1000])
      expect(await allPages(served(store), topic, limit)).toEqual(sent);
  });

  test('begins anywhere, with the numbers that count from the start', async () => {
    const store = await filled(9);
    const sent = await sentOf(store, 'events');
    const from = JSON.parse(sent[20] ?? '').globalposition;
    const page = await pageOf(served(store), 'events', { from });
    expect(page.lines).toEqual(sent.slice(21));
  });

  describe('over a store whose positions are numbers', () => {
    const folder = temporaryFolder();
    let store: EventStore;
    beforeAll(async () => {
      store = await openSqliteEventStore({ file: join(folder.path, 'events.sqlite') });
      await appendLives(store, ['pay_1']);
    });
    afterAll(async () => {
      await store.close();
      folder.remove();
    });

    test('a position padded with zeros, as the pages show it, is taken', async () => {
      const page = await pageOf(served(store), 'events', { from: '000000000004' });
      expect(page.lines.map((line) => JSON.parse(line).globalposition)).toEqual(['5', '6']);
    });

    test.each(['2026-11-01', 'yesterday', '-1', '99999999999999999999', '000000000007'])(
      'A4: from=%s, which is no position of the store, is rejected with what from takes',
      async (from) => {
        const { status, body } = await pageOf(served(store), 'events', { from });
        expect([status, JSON.parse(body).details]).toEqual([
          400,
          ['from must be start, latest or the position of an event'],
        ]);
      },
    );
  });

  test('partition and key stand beside the message where they are wanted', async () => {
    const store = await filled(3);
    const plain = await pageOf(served(store), 'state', {});
    const { lines } = await pageOf(served(store), 'state', { keys: 'true' });
    expect(lines).toHaveLength(plain.lines.length);
    for (const [n, line] of lines.entries()) {
      const { partition, key, value } = JSON.parse(line);
      expect(line.endsWith(`,"value":${plain.lines[n]}}`)).toBe(true);
      expect([partition, key]).toEqual([partitionOf(value.subject, 6), value.subject]);
    }
  });

  test('after "latest" comes only what is new', async () => {
    const store = await filled(2);
    const app = served(store);
    const end = await pageOf(app, 'events', { from: 'latest' });
    expect(end.lines).toEqual([]);
    await appendLives(store, ['pay_new']);
    const { lines } = await pageOf(app, 'events', { from: end.next });
    expect(new Set(lines.map((line) => JSON.parse(line).subject))).toEqual(new Set(['pay_new']));
  });

  test('an unknown topic or limit is refused', async () => {
    const app = served(await filled(1));
    expect((await pageOf(app, 'other', {})).status).toBe(404);
    for (const limit of ['0', '1001', '-1', 'x']) {
      expect((await pageOf(app, 'events', { limit })).status).toBe(400);
    }
  });

  test('a store out of reach is 503, not an empty topic', async () => {
    const store = await filled(1);
    store.failWith(new StoreUnavailable('away'));
    expect((await pageOf(served(store), 'events', {})).status).toBe(503);
  });
});

describe('payments topics', () => {
  const env = async (store: ReturnType<typeof memoryEventStore>) => ({
    PAYMENTS_URL: await served(store).listen({ port: 0, host: '127.0.0.1' }),
    PAYMENTS_TOKEN: 'any',
  });

  test('tail prints the bytes of the topic, one message a line', async () => {
    const store = await filled(3);
    const sent = await sentOf(store, 'state');
    const { code, stdout } = await runCli(['topics', 'tail', '--topic', 'state'], await env(store));
    expect(code).toBe(0);
    expect(stdout).toBe(sent.map((line) => `${line}\n`).join(''));
  });

  test('list names the topics and says that there is no broker', async () => {
    const { code, stdout, stderr } = await runCli(['topics', 'list'], await env(await filled(0)));
    expect([code, stdout]).toEqual([0, expect.stringMatching(/payments\.events\.v1.*delete.*6/)]);
    expect(stdout).toMatch(/payments\.state\.v1.*compact/);
    expect(stdout).toMatch(/payments\.seals\.v1 +log +delete +1/);
    expect(stderr).toMatch(/no broker is set/);
  });
});

const PATH = '/ops/v1/topics/parked';

const servedParked = async (relay: Relay): Promise<FastifyInstance> => {
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
    const app = await servedParked(relay);
    const { status, json } = await ask(app, 'GET');
    expect(status).toBe(200);
    expect(json).toEqual({ state: 'running', count: 2, parked: [note('pay_0'), note('pay_1')] });
  });
});

describe('POST /ops/v1/topics/parked/{paymentId}/retry', () => {
  test('the cause remains, and is gone: sent once, whole and in order', async () => {
    const store = await damaged(2);
    const { relay, feed } = relayOver({ store });
    await untilReady(relay);
    const app = await servedParked(relay);
    const { json } = await ask(app, 'POST', '/pay_0/retry');
    const reason = expect.stringContaining(LATER);
    expect(json).toEqual({ paymentId: 'pay_0', sent: false, at: 3, reason });
    for (const id of ['pay_0', 'pay_1']) store.mend(streamOf(id));
    const { json: sent } = await ask(app, 'POST', '/pay_0/retry');
    expect(sent).toEqual({ paymentId: 'pay_0', sent: true });
    expect((await ask(app, 'POST', '/pay_0/retry')).status).toBe(404);
    expect((await ask(app, 'POST', '/pay.9/retry')).status).toBe(400);
    const { json: all } = await ask(app, 'POST', '/retry');
    expect(all).toEqual({ retried: [{ paymentId: 'pay_1', sent: true }], left: 0 });
    const events = await store.readAll(null, 100);
    expectWhole(feed.stored('events'), events as Parameters<typeof expectWhole>[1]);
  });

  test('waiting sets no broker: without one the retry is 422', async () => {
    const app = await servedParked(noRelay());
    for (const path of ['/pay_0/retry', '/retry']) {
      const { status, headers, json } = await ask(app, 'POST', path);
      expect([status, json.error]).toEqual([422, 'BUSINESS_RULE_VIOLATION']);
      expect(headers).not.toHaveProperty('retry-after');
      expect(json.details).toEqual([expect.stringContaining('no broker is set')]);
    }
  });

  test('a relay that stands by, backs off or has halted says so, with what is parked, and sends nothing', async () => {
    const rejected = async (relay: Relay) => {
      const app = await servedParked(relay);
      const { state, error } = relay.status();
      const listed = { state, ...(error !== undefined && { error }), count: 1 };
      expect((await ask(app, 'GET')).json).toEqual({ ...listed, parked: [note('pay_0')] });
      const { status, headers, json } = await ask(app, 'POST', '/pay_0/retry');
      expect([status, json.error]).toEqual([503, 'SERVICE_UNAVAILABLE']);
      expect(headers['retry-after']).toBe('5');
      const all = await ask(app, 'POST', '/retry');
      expect([all.status, all.json.details]).toEqual([status, json.details]);
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
    PAYMENTS_URL: await (await servedParked(relay)).listen({ port: 0, host: '127.0.0.1' }),
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
