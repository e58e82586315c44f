/** Webhook endpoints while the engine that keeps their deliveries is away (gaps §7). */
import { expect, test } from '@jest/globals';
import { freePort } from '../support/free-port.ts';
import { startMongoStandIn } from '../support/mongodb-stand-in.ts';
import { openInProcess, token } from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

const ENDPOINTS = '/api/v1/webhook-endpoints';

test('one is registered, no other request for one is a fault, and what is 503 has stored nothing', async () => {
  const port = await freePort();
  await using service = await openInProcess({
    MONGODB_URL: `mongodb://127.0.0.1:${port}/payments`,
  });
  const mine = { token: await token('m_away') };
  const url = 'https://receiver.example/1';
  const registered = await service.ask('POST', ENDPOINTS, { url }, mine);
  expect(registered.status).toBe(201);
  expect(registered.json).toMatchObject({ url, secret: expect.any(String), status: 'ENABLED' });

  const one = `${ENDPOINTS}/${registered.json.id}`;
  const requests: [string, string, object?][] = [
    ['GET', ENDPOINTS],
    ['GET', one],
    ['GET', `${one}/attempts`],
    ['PATCH', one, { url: 'https://receiver.example/2' }],
    ['POST', `${one}/rotate-secret`, {}],
    ['POST', `${one}/resend`, { since: new Date(0).toISOString() }],
    ['DELETE', one],
  ];
  const responses = await Promise.all(
    requests.map(async ([method, path, body]) => {
      const { status, json } = await service.ask(method as 'GET', path, body, mine);
      return [method, path, status, json.error];
    }),
  );
  expect(responses).toEqual(
    requests.map(([method, path]) => [method, path, 503, 'SERVICE_UNAVAILABLE']),
  );

  await startMongoStandIn(port);
  let list = await service.ask('GET', ENDPOINTS, undefined, mine);
  await until('the endpoints can be read', async () => {
    list = await service.ask('GET', ENDPOINTS, undefined, mine);
    return list.status === 200;
  });
  const { secret: _, ...shown } = registered.json;
  expect(list.json).toEqual({ endpoints: [shown] });
});
