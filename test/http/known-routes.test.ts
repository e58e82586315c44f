/** Each process knows the routes of all processes, for the 405 of another process's address (gaps §1). */
import { expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { registerConsole } from '../../console/routes.ts';
import { registerDocs } from '../../query-api/docs/routes.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import { SERVICE_ROUTES } from '../../shared/http/server/known-routes.ts';
import { createLogger } from '../../shared/runtime/log.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { openInProcess } from '../support/in-process.ts';

test('gaps §1: the known routes are exactly those that the embedded service serves', async () => {
  await using service = await openInProcess();
  const byAddress = Map.groupBy(SERVICE_ROUTES, (route) => route.split(' ')[1] ?? '');
  for (const [url, routes] of byAddress) {
    const { status, headers } = await service.ask('PUT', url.replaceAll(/:\w+/g, 'x'));
    const allowed = routes.map((route) => route.split(' ')[0]).sort();
    expect([url, status, headers.allow]).toEqual([url, 405, allowed.join(', ')]);
  }
});

test('gaps §1: a process that serves none of them rejects another method of a route or page with 405', async () => {
  const { log } = createLogger({ level: 'silent', destination: 'stdout' });
  const app = buildApp({
    log,
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
