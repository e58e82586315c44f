/** Each process knows the routes of all processes, for the 405 of another process's address (gaps §1). */
import { expect, test } from '@jest/globals';
import merchant from '../../docs/openapi.json' with { type: 'json' };
import audit from '../../docs/openapi-audit.json' with { type: 'json' };
import { SERVICE_ROUTES } from '../../shared/http/server/known-routes.ts';
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

test('every route of the API documents is a known route', () => {
  const described = [merchant, audit].flatMap(({ paths }) =>
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods)
        .filter((method) => ['get', 'post', 'patch', 'delete'].includes(method))
        .map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
    ),
  );
  const plain = (route: string) => route.replaceAll(/:\w+/g, ':x');
  expect(SERVICE_ROUTES.map(plain)).toEqual(
    expect.arrayContaining(
      described.filter((route) => !/ \/(health|metrics)/.test(route)).map(plain),
    ),
  );
});
