/**
 * The pages about the API: served from this machine, without a token, under a strict policy. And the
 * routes that each process knows, for the 405 of another process's address (gaps §1).
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { registerConsole } from '../../console/routes.ts';
import manifest from '../../package.json' with { type: 'json' };
import { registerDocs } from '../../query-api/docs/routes.ts';
import { ERROR_CODES, helpLink } from '../../shared/http/errors.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import { SERVICE_ROUTES } from '../../shared/http/server/known-routes.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import {
  type CommandResponse,
  expectError,
  type InProcess,
  openInProcess,
  PAYMENTS,
  serviceOfTests,
  token,
} from '../support/service-in-process.ts';
import { silentLog } from '../support/silent-log.ts';

const page = (file: string): string =>
  readFileSync(join(import.meta.dirname, '../..', file), 'utf8');

const service = await serviceOfTests();

const open = (path: string): Promise<CommandResponse> =>
  service.ask('GET', path, undefined, { token: null });

describe('A5: the bytes of a page', () => {
  test('are held once, however many clients wait for them', async () => {
    const sent: unknown[] = [];
    const app = Fastify();
    app.addHook('onSend', (_request, _reply, payload, done) => {
      sent.push(payload);
      done();
    });
    registerDocs(app);
    for (let n = 0; n < 2; n += 1) await app.inject('/docs/swagger-ui-bundle.js');
    expect(sent[0]).toBeInstanceOf(Buffer);
    expect(sent[1]).toBe(sent[0]);
    await app.close();
  });
});

describe('what is at the root, and HEAD', () => {
  const atRoot = (accept?: string) =>
    service.ask('GET', '/', undefined, { token: null, ...(accept && { headers: { accept } }) });

  test('a browser is led to the console', async () => {
    const { status, headers } = await atRoot('text/html,application/xhtml+xml;q=0.9,*/*;q=0.8');
    expect([status, headers.location, headers.vary]).toEqual([303, '/console', 'accept']);
  });

  test('a program is told the version and where everything is, and each link leads somewhere', async () => {
    for (const accept of [undefined, '*/*', 'application/json']) {
      const { status, json } = await atRoot(accept);
      expect([status, json.name, json.version]).toEqual([200, 'payments', manifest.version]);
      const links = Object.values(json.links as Record<string, string>);
      const statuses = links.map(async (path) => (await open(path)).status);
      expect(await Promise.all(statuses)).toEqual([200, 200, 200, 200, 200, 200, 401]);
    }
  });

  test.each(['/', '/docs', '/docs/errors', '/health/ready', '/metrics'])(
    'HEAD %s is as GET, without the body',
    async (path) => {
      const { status, text, headers } = await service.ask('HEAD', path, undefined, { token: null });
      const got = await open(path);
      expect([status, text]).toEqual([200, '']);
      expect(headers['content-type']).toBe(got.headers['content-type']);
    },
  );
});

describe('surfaces: pages about the API', () => {
  test.each([
    ['/openapi.json', 'application/json; charset=utf-8', 'docs/openapi.json'],
    ['/openapi-audit.json', 'application/json; charset=utf-8', 'docs/openapi-audit.json'],
    ['/docs', 'text/html; charset=utf-8', 'query-api/docs/index.html'],
    ['/docs/page.js', 'text/javascript; charset=utf-8', 'query-api/docs/page.js'],
    [
      '/docs/swagger-ui-bundle.js',
      'text/javascript; charset=utf-8',
      'node_modules/swagger-ui-dist/swagger-ui-bundle.js',
    ],
  ])('%s is served without a token, and never cached', async (path, type, file) => {
    const response = await open(path);
    expect(response.status).toBe(200);
    expect(response.text).toBe(page(file));
    expect(response.headers).toMatchObject({
      'content-type': type,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
  });

  test.each(['/docs', '/docs/errors'])(
    'the policy of %s lets it fetch, run and show only what this service serves',
    async (path) => {
      const policy = String((await open(path)).headers['content-security-policy']);
      expect(policy).toContain("default-src 'none'");
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
    },
  );

  test('no other file of the folders is served', async () => {
    const paths = [
      '/docs/index.js',
      '/docs/routes.ts',
      '/docs/swagger-ui-bundle.js.map',
      '/docs/..%2f..%2fpackage.json',
      '/docs/%2e%2e/%2e%2e/package.json',
    ];
    for (const path of paths) expectError(await open(path), 404, 'NOT_FOUND');
  });
});

describe('the console', () => {
  const TEXT = /^text\/(html|javascript|css); charset=utf-8$/;

  test('every address below it that is no file gives the page', async () => {
    for (const path of ['/console', '/console/find', '/console/payments/pay_1?revision=2']) {
      const { status, headers, text } = await open(path);
      expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
      expect(text).toContain('<script type="module" src="/console/app/main.js">');
    }
  });

  test('each module of the page and of its libraries is served', async () => {
    const { text } = await open('/console');
    const [, map = ''] = /<script type="importmap">(.+)<\/script>/.exec(text) ?? [];
    const { imports } = JSON.parse(map) as { imports: Record<string, string> };
    const own = [...text.matchAll(/(?:src|href)="(\/console\/[^"]+)"/g)].map(
      ([, path = '']) => path,
    );
    expect(own.length).toBe(2);
    for (const path of [...Object.values(imports), ...own]) {
      const { status, headers } = await open(path);
      expect([path, status, TEXT.test(String(headers['content-type']))]).toEqual([path, 200, true]);
    }
  });

  test('a file is served however its address is written', async () => {
    const plain = await open('/console/app/main.js?x=1');
    const escaped = await open('/console/%61pp/main.js');
    expect(escaped.headers['content-type']).toBe('text/javascript; charset=utf-8');
    expect(escaped.text).toBe(plain.text);
  });

  test('its policy names the import map by its hash and allows nothing unsafe', async () => {
    const { headers, text } = await open('/console');
    const policy = String(headers['content-security-policy']);
    const [, map = ''] = /<script type="importmap">(.+)<\/script>/.exec(text) ?? [];
    const hash = createHash('sha256').update(map).digest('base64');
    expect(policy).toContain(`script-src 'self' 'sha256-${hash}'`);
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
  });

  test('the page is told which claims name the merchant of a token', async () => {
    const shown = async ({ ask }: InProcess) =>
      /name="merchant-claims" content="(.*)">/.exec((await ask('GET', '/console')).text)?.[1];
    expect(await shown(service)).toBe('merchant_id,client_id,sub');
    await using other = await openInProcess({ JWT_MERCHANT_CLAIM: '"><b>,https://shop/$&' });
    expect(await shown(other)).toBe('%22%3E%3Cb%3E,https%3A%2F%2Fshop%2F%24%26');
  });

  test('no other file is served', async () => {
    for (const path of [
      '/console/app/tsconfig.json',
      '/console/app/..%2froutes.ts',
      '/console/lib/preact/package.json',
    ]) {
      expectError(await open(path), 404, 'NOT_FOUND', []);
    }
  });

  test('an operator of all merchants learns when the log was verified and sealed', async () => {
    const operator = { token: await token('*', 'ops:admin') };
    const { status, json } = await service.ask('GET', '/ops/v1/log', undefined, operator);
    expect([status, json]).toEqual([
      200,
      { verification: { lastRunAt: null, lastOkAt: null, broken: null }, seal: null },
    ]);
  });
});

describe('docs/errors.md', () => {
  test('every error code has its entry, in the document and on the page', async () => {
    const headings = page('docs/errors.md').match(/^## [A-Z_]+$/gm);
    expect(headings).toEqual([...ERROR_CODES, 'PAYMENT_FAILED'].map((code) => `## ${code}`));
    const { text } = await open('/docs/errors');
    for (const code of ERROR_CODES) expect(text).toContain(`<section id="${code.toLowerCase()}">`);
  });

  test('each error response links to the entry of its code', async () => {
    const { json } = await service.create();
    await service.change('void', json.paymentId);
    const reader = { token: await token('m_test', 'payments:read') };
    const responses = {
      INVALID_REQUEST: await service.ask('POST', PAYMENTS, '{'),
      INVALID_PAYMENT_ID: await service.get('a+b'),
      UNAUTHORIZED: await open(PAYMENTS),
      FORBIDDEN: await service.create({}, reader),
      NOT_FOUND: await open('/nowhere'),
      PAYMENT_NOT_FOUND: await service.get('pay_unknown'),
      METHOD_NOT_ALLOWED: await service.ask('PUT', PAYMENTS),
      BUSINESS_RULE_VIOLATION: await service.create({ currency: 'EUR' }),
      CAPTURE_NOT_ALLOWED: await service.change('capture', json.paymentId),
      PROVIDER_UNAVAILABLE: await service.create({ number: '4000000000004210' }),
      PAYMENT_FAILED: await service.create({ number: '4000000000000002' }),
    };
    for (const [code, response] of Object.entries(responses)) {
      expect([code, response.headers.link]).toEqual([code, helpLink(code)]);
    }
    expect(responses.UNAUTHORIZED.headers.link).toBe('</docs/errors#unauthorized>; rel="help"');
    expect((await service.get(json.paymentId)).headers).not.toHaveProperty('link');
  });
});

test('gaps §1: the known routes are exactly those that the embedded service serves', async () => {
  const byAddress = Map.groupBy(SERVICE_ROUTES, (route) => route.split(' ')[1] ?? '');
  for (const [url, routes] of byAddress) {
    const allowed = routes.map((route) => route.split(' ')[0]).sort();
    const other = allowed.includes('PUT') ? 'PATCH' : 'PUT';
    const { status, headers } = await service.ask(other, url.replaceAll(/:\w+/g, 'x'));
    expect([url, status, headers.allow]).toEqual([url, 405, allowed.join(', ')]);
  }
});

test.each([
  ...['unresolved', 'parked', 'log', 'settings', 'projections', 'webhook-endpoints', 'topics'],
  'topics/parked',
])('a mistyped parameter of /ops/v1/%s is 400, and no empty list', async (list) => {
  const asOperator = { token: await token('*', 'ops:admin') };
  const ask = (query: string) =>
    service.ask('GET', `/ops/v1/${list}${query}`, undefined, asOperator);
  expectError(await ask('?stauts=OPEN'), 400, 'INVALID_REQUEST', [
    'a parameter of another name is not known here',
  ]);
  expect((await ask('')).status).toBe(200);
});

test('a mistyped parameter of the list of webhook endpoints is 400', async () => {
  const { status } = await service.ask('GET', '/api/v1/webhook-endpoints?stauts=DISABLED');
  expect(status).toBe(400);
});

test('gaps §1: a process that serves none of them rejects another method of a route or page with 405', async () => {
  const app = buildApp({
    log: silentLog,
    metrics: createMetrics(),
    maxInFlight: 10,
    servedElsewhere: SERVICE_ROUTES,
  });
  for (const path of ['/', '/docs', '/docs/errors', '/openapi.json', '/console', '/console/find']) {
    const { statusCode, headers } = await app.inject({ method: 'POST', url: path });
    expect([path, statusCode, headers.allow]).toEqual([path, 405, 'GET, HEAD']);
  }
  const { statusCode, headers } = await app.inject({ method: 'PUT', url: '/api/v1/payments' });
  expect([statusCode, headers.allow]).toEqual([405, 'GET, POST']);
  const elsewhere = (await app.inject({ url: '/audit/v1/export' })).json();
  expect([elsewhere.error, elsewhere.details]).toEqual([
    'NOT_FOUND',
    ['another process serves this address: send requests to the gateway'],
  ]);
  await app.close();
});

test('every page that a process serves is a known one', async () => {
  const app = Fastify();
  const served: string[] = [];
  app.addHook('onRoute', ({ method, url }) => {
    served.push(...[method].flat().map((name) => `${name} ${url}`));
  });
  registerDocs(app);
  registerConsole(app, ['sub']);
  await app.ready();
  expect(SERVICE_ROUTES).toEqual(expect.arrayContaining(served));
  await app.close();
});
