/**
 * The topics without a broker: what the routes and `payments topics tail` give is to the byte what
 * the relay sends, page after page, from any place in the log.
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
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { partitionOf } from '../../topics/messages.ts';
import { noRelay } from '../../topics/open-relay.ts';
import type { Topic } from '../../topics/port.ts';
import { openTopics, TOPIC_ROUTES } from '../../topics/topic-routes.ts';
import { runCli } from '../support/cli.ts';
import { appendLives } from '../support/many-payments.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { memoryDocument, memoryFeed } from '../support/memory-feed.ts';
import { relaying, untilSent } from '../support/relaying.ts';
import { appendSeals } from '../support/seal-events.ts';
import { silentLog } from '../support/silent-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

const served = (
  store: Pick<EventStore, 'readAll' | 'readStream' | 'end'>,
  relay = noRelay(),
  merchantId = '*',
): FastifyInstance => {
  const app = buildApp({ log: silentLog, metrics: createMetrics(), maxInFlight: 100 });
  const authenticate = (request: FastifyRequest, _reply: unknown, done: () => void): void => {
    request.principal = { merchantId, actor: 'operator', scopes: new Set(['ops:admin']) };
    done();
  };
  const topics = openTopics({ store, relay, topicPrefix: 'payments' });
  registerRoutes(app, () => [authenticate], TOPIC_ROUTES, topics);
  apps.push(app);
  return app;
};

const filled = async (payments: number) => {
  const store = memoryEventStore({ batchMax: 5 });
  await Promise.all(Array.from({ length: payments }, (_, n) => appendLives(store, [`pay_${n}`])));
  return store;
};

test('A2: the topics hold every merchant, so one merchant alone may not read them', async () => {
  const app = served(await filled(1), noRelay(), 'm_1');
  expect((await app.inject('/ops/v1/topics')).statusCode).toBe(403);
  expect((await pageOf(app, 'events', {})).status).toBe(403);
});

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
  test.each(['events', 'state'] as const)(
    '%s: the bytes of the relay, in any pages',
    async (topic) => {
      const store = await filled(9);
      store.damage(streamOf('pay_4'), 3, 'of a later version');
      const sent = await sentOf(store, topic);
      expect(sent).toHaveLength(8 * 6 + 3);
      for (const limit of [1, 7, 1000])
        expect(await allPages(served(store), topic, limit)).toEqual(sent);
    },
  );

  test('seals: the bytes of the relay, in any pages, and no message of a payment', async () => {
    const store = await filled(2);
    await appendSeals(store, 3);
    store.damage(SEALS_STREAM, 1, 'of a later version');
    const sent = await sentOf(store, 'seals');
    expect(sent).toHaveLength(2);
    for (const limit of [1, 7, 1000])
      expect(await allPages(served(store), 'seals', limit)).toEqual(sent);
    expect(await allPages(served(store), 'events', 7)).toEqual(await sentOf(store, 'events'));
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
