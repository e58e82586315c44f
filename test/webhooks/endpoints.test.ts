/** A merchant registers an address and gets what happens to its payments there (ADR-0220). */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { endpointStreamOf } from '../../webhooks/endpoints/endpoints.ts';
import { openInProcess, signToken, token } from '../support/service-in-process.ts';
import { until as untilWithin } from '../support/until.ts';
import { startReceiver, verified, type WebhookReceiver } from '../support/webhook-receiver.ts';

// The thread that sends keeps a thirtieth of a full CPU (docs/architecture.md).
const until = (what: string, holds: () => boolean | Promise<boolean>): Promise<void> =>
  untilWithin(what, holds, 120_000);

type Endpoint = { endpointId: string; secret: string; status: string; [field: string]: unknown };

const ENDPOINTS = '/api/v1/webhook-endpoints';

let receiver: WebhookReceiver;
const service = await openInProcess({ WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' });
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

let merchants = 0;
let merchant: string;
let mine: { token: string };
beforeEach(async () => {
  merchants += 1;
  merchant = `m_hook_${merchants}`;
  mine = { token: await token(merchant) };
  // One for each test: what another test made fail is tried again later.
  receiver = await startReceiver();
});
afterEach(async () => {
  await receiver?.[Symbol.asyncDispose]();
});

const ask = (...[method, path, body]: Parameters<typeof service.ask>) =>
  service.ask(method, path, body, mine);
const operator = { token: await signToken({ merchant_id: '*', sub: 'op', scope: 'ops:admin' }) };
const askAsOperator = (...[method, path, body]: Parameters<typeof service.ask>) =>
  service.ask(method, path, body, operator);

const register = async (fields: object = {}): Promise<Endpoint> => {
  const { status, json } = await ask('POST', ENDPOINTS, { url: receiver.url, ...fields });
  expect(status).toBe(201);
  return json as unknown as Endpoint;
};
const at = ({ id }: Endpoint, rest = '') => `${ENDPOINTS}/${id}${rest}`;
const show = async (endpoint: Endpoint): Promise<Endpoint> =>
  (await ask('GET', at(endpoint))).json as unknown as Endpoint;
const untilAttempts = (endpoint: Endpoint, count: number): Promise<void> =>
  until('its attempts are there', async () => {
    const { json } = await ask('GET', at(endpoint, '/attempts'));
    return (json.attempts as unknown[]).length === count;
  });
const arrived = () => receiver.messagesAt();
const types = () => arrived().map(({ json }) => json.type);

describe('what is sent', () => {
  test('each event of a payment arrives in order, signed, with the bytes that GET gives', async () => {
    const { secret } = await register();
    const { json } = await service.create({}, mine);
    await service.change('capture', json.paymentId, undefined, mine);
    const { text } = await service.change('refund', json.paymentId, { refundAmount: 100 }, mine);
    await until('it is so', () => arrived().length === 3);
    expect(types()).toEqual(['payment.authorized', 'payment.captured', 'payment.refunded']);
    for (const received of arrived()) {
      expect(verified(secret, received)).toEqual(received.json);
      expect(received.id).toBe(received.json.data.eventId);
    }
    const last = arrived().at(-1);
    expect(last?.body).toContain(`"payment":${text}}}`);
    expect(arrived().map((one) => one.json.data.revision)).toEqual([1, 3, 5]);
  });

  test('a sale is one message, and an intent is sent where it was asked for alone', async () => {
    await register({ eventTypes: ['payment.created', 'payment.captured', 'payment.authorized'] });
    await service.create({ captureNow: true }, mine);
    await until('it is so', () => arrived().length === 2);
    expect(types()).toEqual(['payment.created', 'payment.captured']);
  });
});

describe('a failing endpoint', () => {
  test('a revision is tried again before the next one of its payment; another payment goes on', async () => {
    const endpoint = await register();
    let refused: string | undefined;
    receiver.respond = ({ json }, response) => {
      refused ??= json.data.payment.paymentId;
      response.writeHead(json.data.payment.paymentId === refused ? 500 : 200).end();
    };
    const first = await service.create({}, mine);
    await until('it is so', () => arrived().length === 1);
    await service.change('capture', first.json.paymentId, undefined, mine);
    const second = await service.create({}, mine);
    await until('it is so', () => arrived().length === 2);
    const of = (id: string) =>
      arrived()
        .filter(({ json }) => json.data.payment.paymentId === id)
        .map(({ json }) => json.type);
    expect(of(second.json.paymentId)).toEqual(['payment.authorized']);
    expect(of(first.json.paymentId)).toEqual(['payment.authorized']);
    const attempts = async () => (await ask('GET', at(endpoint, '/attempts'))).json.attempts;
    await until('both are saved', async () => Object(await attempts()).length === 2);
    expect(await attempts()).toMatchObject([
      { outcome: 'ACCEPTED', status: 200, attempt: 1, nextAt: null },
      {
        outcome: 'RETRYING',
        status: 500,
        attempt: 1,
        paymentId: first.json.paymentId,
        revision: 1,
      },
    ]);
    expect((await show(endpoint)).oldestWaiting).not.toBeNull();

    const page = async (query: string) =>
      (await ask('GET', at(endpoint, `/attempts?${query}`))).json;
    const latest = await page('limit=1');
    expect(latest).toMatchObject({ attempts: [{ status: 200 }], next: expect.any(String) });
    const earlier = await page(`limit=1&cursor=${latest.next}`);
    expect(earlier).toMatchObject({ attempts: [{ status: 500 }], next: null });
    expect((await page('cursor=x')).details).toEqual(['cursor must be the next of a page']);
  });

  test('the other endpoints of the merchant are sent a notice', async () => {
    const endpoint = await register();
    const other = await register({
      url: `${receiver.url}/other`,
      eventTypes: ['webhook_endpoint.disabled'],
    });
    await ask('PATCH', at(endpoint), { status: 'DISABLED' });
    await until('it is so', () => receiver.received.length > 0);
    const [received] = receiver.received;
    expect(received).toMatchObject({
      path: '/hook/other',
      json: {
        type: 'webhook_endpoint.disabled',
        data: { endpointId: endpoint.id, reason: 'REQUESTED' },
      },
    });
    if (received !== undefined) verified(other.secret, received);
  });
});

describe('on request', () => {
  test('a test message is sent once, also to a disabled endpoint, and its attempt can be read', async () => {
    const endpoint = await register();
    await ask('PATCH', at(endpoint), { status: 'DISABLED' });
    const { status, json } = await ask('POST', at(endpoint, '/test'));
    expect(status).toBe(202);
    await until('it is so', () => receiver.received.length === 1);
    expect(receiver.received[0]).toMatchObject({
      id: json.eventId,
      json: { type: 'webhook.test' },
    });
    const path = at(endpoint, `/attempts?eventId=${json.eventId}`);
    await until(
      'its attempt is there',
      async () => ((await ask('GET', path)).json.attempts as unknown[]).length === 1,
    );
  });

  test('of twenty tests at a time four are sent, and the others are 429; another endpoint has its own', async () => {
    const endpoint = await register();
    const request = (one: Endpoint) => ask('POST', at(one, '/test'));
    const all = await Promise.all(Array.from({ length: 20 }, () => request(endpoint)));
    const rejected = all.filter(({ status }) => status !== 202);
    expect(rejected).toHaveLength(16);
    for (const { status, json, headers } of rejected) {
      expect([status, json.error, json.details]).toEqual([
        ...[429, 'RATE_LIMITED'],
        ['an endpoint is sent 4 tests a minute; try again later'],
      ]);
      expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
      expect(Number(headers['retry-after'])).toBeLessThanOrEqual(60);
    }
    const events = () => ask('GET', at(endpoint, '/attempts'));
    await until('their attempts', async () => Object((await events()).json.attempts).length === 4);
    expect(receiver.received).toHaveLength(4);
    expect((await request(await register())).status).toBe(202);
  });

  test('one event is sent again by its id', async () => {
    const endpoint = await register();
    await service.create({}, mine);
    await untilAttempts(endpoint, 1);
    const [message] = arrived();
    const sent = receiver.received.length;
    await ask('POST', at(endpoint, '/resend'), { eventId: message?.id });
    await until('it is so', () => receiver.received.length > sent);
    expect(receiver.received[sent]?.body).toBe(message?.body);
  });
});

describe('registration', () => {
  test('the secret is shown once; a list and a GET have none', async () => {
    const { secret, ...endpoint } = await register({ description: 'The shop' });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(await show(endpoint as Endpoint)).toEqual(endpoint);
    const { text, json } = await ask('GET', ENDPOINTS);
    expect(json).toEqual({ endpoints: [endpoint] });
    expect(text).not.toContain('whsec_');
  });

  test('another merchant finds nothing, in the very words of an unknown endpoint', async () => {
    const endpoint = await register();
    const other = { token: await token('m_other') };
    const unknown = `${ENDPOINTS}/we_00000000000000000000000000`;
    const bodyOf = async (method: string, path: string, body?: object) => {
      const { status, json } = await service.ask(method, path, body, other);
      return [status, { ...json, timestamp: '' }];
    };
    for (const [method, rest, body] of [
      ['GET', '', undefined],
      ['PATCH', '', { status: 'DISABLED' }],
      ['DELETE', '', undefined],
      ['POST', '/test', undefined],
      ['POST', '/rotate-secret', undefined],
      ['POST', '/resend', { since: '2026-01-01T00:00:00Z' }],
      ['GET', '/attempts', undefined],
    ] as const) {
      const theirs = await bodyOf(method, at(endpoint, rest), body);
      expect(theirs).toEqual(await bodyOf(method, unknown + rest, body));
      expect(theirs[0]).toBe(404);
    }
    expect(await service.ask('GET', ENDPOINTS, undefined, other)).toMatchObject({
      json: { endpoints: [] },
    });
  });

  test('of eleven registered at a time the last is rejected, and a deleted one makes place', async () => {
    const responses = await Promise.all(
      Array.from({ length: 11 }, () => ask('POST', ENDPOINTS, { url: receiver.url })),
    );
    const [made, rejected] = [201, 422].map((one) => responses.filter((r) => r.status === one));
    expect([made?.length, rejected?.length]).toEqual([10, 1]);
    expect(rejected?.[0]?.json.error).toBe('BUSINESS_RULE_VIOLATION');
    expect((await ask('DELETE', at(made?.[0]?.json as unknown as Endpoint))).status).toBe(200);
    await register();
  });

  const PRIVATE = 'must be a public https address';
  const CARD = 'must not hold a card number';
  test.each([
    ['http://shop.example/hook', PRIVATE],
    ['https://user:secret@shop.example/', PRIVATE],
    ['https://shop.example/#part', PRIVATE],
    ['https://2130706433.0x7f/', PRIVATE],
    ['https://[::1]/', PRIVATE],
    ['https://shop.example:80/', PRIVATE],
    ['https://shop.example/?pan=4242424242424242', CARD],
    ['https://shop.example/?pan=5555%205555%205555%204444&x=%&y=%ff', CARD],
    ['https://4242424242424242.shop.example/', CARD],
    ['https://34.102.136.180:8443/4242/4242/4242/4242', CARD],
    ['https://shop.example/4242424242424242/../hook', CARD],
    ['https://shop.example\\4242424242424242', CARD],
    [`https://shop.example/${'a'.repeat(2048)}`, 'must be at most 2048 characters'],
    ['https://shop.example/hook\n', 'must not hold a control character'],
    ['https://shop.example/4242/./4242/./4242/./4242', CARD],
    ['', 'is required'],
  ])('an address is rejected: %#', async (url, problem) => {
    const { status, json } = await ask('POST', ENDPOINTS, { url });
    expect([status, json.details]).toEqual([400, [`url ${problem}`]]);
  });

  test.each(['https://[2600:1901:0:4444::10]:1104/', 'https://shop.example:8443/2026/11/1009'])(
    'the digits of an IP address and of a port are no card number: %s',
    async (url) => {
      expect((await ask('POST', ENDPOINTS, { url })).status).toBe(201);
    },
  );

  test('an address is kept, shown and sent to as the URL standard writes it, and its change leaves the other fields', async () => {
    const written = 'https://xn--wgv71a.example/hook';
    const { status, json } = await ask('POST', ENDPOINTS, {
      url: 'HTTPS://日本.example:443/hook',
      description: 'The shop',
    });
    expect([status, json.url]).toEqual([201, written]);
    const endpoint = json as unknown as Endpoint;
    const before = await show(endpoint);
    expect(before).toMatchObject({ url: written, description: 'The shop' });
    await ask('PATCH', at(endpoint), { url: 'https://shop.example/a/../b' });
    const changed = { url: 'https://shop.example/b', updatedAt: expect.any(String) };
    expect(await show(endpoint)).toEqual({ ...before, ...changed });
  });

  test.each([
    [{ url: null }, 'url is required'],
    [{ url: 'https://shop.example/', eventTypes: [5] }, 'eventTypes[0] must be a string'],
    [[], 'the body must be a JSON object'],
  ])('a body that is not well formed is rejected: %j', async (body, detail) => {
    const { status, json } = await ask('POST', ENDPOINTS, body);
    expect([status, json.details]).toEqual([400, [detail]]);
  });

  test('operators read the endpoints and attempts of all merchants', async () => {
    const endpoint = await register();
    const all = await askAsOperator('GET', `/ops/v1/webhook-endpoints?merchant=${merchant}`);
    expect(all.json.endpoints).toMatchObject([{ merchantId: merchant, id: endpoint.id }]);
    const path = `/ops/v1/webhook-endpoints/${endpoint.id}/attempts`;
    expect((await askAsOperator('GET', path)).json).toEqual({
      attempts: [],
      next: null,
    });
    const unknown = path.replace(String(endpoint.id), `we_${'0'.repeat(26)}`);
    const { status, json } = await askAsOperator('GET', unknown);
    expect([status, json.error]).toEqual([404, 'WEBHOOK_ENDPOINT_NOT_FOUND']);
  });
});

const NO_SUCH_PARAMETER = 'a parameter of another name is not known here';

test.each([
  [`${ENDPOINTS}/ID/attempts?cursor=1&cursor=2`, 'cursor must be given once'],
  ['/api/v1/webhook-events/stream?types=a&types=b', 'types must be given once'],
  ['/ops/v1/webhook-endpoints?merchant=', 'merchant must not be empty'],
  // A mistyped filter would send, or show, everything.
  ['/api/v1/webhook-events/stream?type=payment.captured', NO_SUCH_PARAMETER],
  [`${ENDPOINTS}/ID/attempts?eventid=1`, NO_SUCH_PARAMETER],
  ['/ops/v1/webhook-endpoints?merchantId=m_1', NO_SUCH_PARAMETER],
])('a parameter is rejected in words of our own: %s', async (route, detail) => {
  const { id } = await register();
  const path = route.replace('ID', String(id));
  const sender = path.startsWith('/ops') ? operator : mine;
  const { status, json } = await service.ask('GET', path, undefined, sender);
  expect([status, json.details]).toEqual([400, [detail]]);
});

test('ADR-0220: operators see the endpoints of others, and whose cannot be read', async () => {
  await register();
  const other = await service.ask(
    'POST',
    ENDPOINTS,
    { url: receiver.url },
    { token: await token('m_whole') },
  );
  const list = async () => (await askAsOperator('GET', '/ops/v1/webhook-endpoints')).json;
  expect(await list()).not.toHaveProperty('unreadable');
  using db = new DatabaseSync(join(service.dataDir, 'events.sqlite'), { timeout: 5000 });
  db.exec('DROP TRIGGER events_no_update');
  const change = db.prepare(`UPDATE events SET text = replace(text, ?, ?)
    WHERE stream_id = (SELECT id FROM streams WHERE name = ?)`);
  change.run('"v1"', '"v9"', endpointStreamOf(merchant));
  const { endpoints, unreadable } = await list();
  const attemptsAt = (id: unknown) =>
    askAsOperator('GET', `/ops/v1/webhook-endpoints/${id}/attempts`);
  const ofOther = await attemptsAt(other.json.id);
  const ofNobody = await attemptsAt(`we_${'0'.repeat(26)}`);
  change.run('"v9"', '"v1"', endpointStreamOf(merchant));
  expect(ofOther.status).toBe(200);
  expect([ofNobody.status, ofNobody.json.details]).toEqual([
    503,
    ['the webhook endpoints of a merchant cannot be read, and it may be one of them'],
  ]);
  expect(unreadable).toEqual([merchant]);
  const ids = (endpoints as { id: string }[]).map(({ id }) => id);
  expect(ids).toContain(other.json.id);
  expect(await list()).not.toHaveProperty('unreadable');
});

test('auditors see where messages go, without the values of its parameters', async () => {
  await register({ url: `${receiver.url}?key=hunter2&shop=7` });
  const auditor = { token: await signToken({ merchant_id: '*', sub: 'a', scope: 'audit:read' }) };
  const { text } = await service.ask('GET', '/audit/v1/events?limit=500', undefined, auditor);
  expect(text).toContain(`"url":"${receiver.url}?key=***&shop=***"`);
  expect(text).not.toMatch(/hunter2|whsec_/);
});

test('nothing is lost over a restart, and a rebuild of the read models sends nothing', async () => {
  // Retries to the endpoints of other tests arrive whenever they are due.
  await register({ url: `${receiver.url}/restart` });
  const own = () => receiver.messagesAt('/hook/restart');
  const { json } = await service.create({}, mine);
  await until('it is so', () => own().length === 1);
  await service.restart();
  await service.change('capture', json.paymentId, undefined, mine);
  await until('it is so', () => own().length === 2);
  const rebuilt = await askAsOperator('POST', '/ops/v1/projections/rebuild');
  expect(rebuilt.status).toBe(202);
  await service.change('refund', json.paymentId, undefined, mine);
  await until('it is so', () => own().length === 3);
  expect(own().map(({ json: { type } }) => type)).toEqual([
    'payment.authorized',
    'payment.captured',
    'payment.refunded',
  ]);
});
