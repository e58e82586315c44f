/** One merchant cannot take the places of the others, whatever it does with its requests (A5, gaps §11). */
import { afterEach, expect, test } from '@jest/globals';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { expectError, PAYMENTS, serviceOfTests, token } from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

/** One merchant has half of it. */
const MAX_IN_FLIGHT = 160;

const service = await serviceOfTests({ MAX_IN_FLIGHT: String(MAX_IN_FLIGHT) });
const port = Number(new URL(await service.listen()).port);
afterEach(() => {
  for (const { socket } of clients) socket.destroy();
  clients = [];
});

let clients: RawClient[] = [];
/** Creates whose bodies never come whole. */
const halfSent = (bearer: string, count: number): RawClient[] => {
  const head = `POST ${PAYMENTS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${bearer}\r\n`;
  const own = Array.from({ length: count }, () =>
    rawClient(port, `${head}content-length: 900\r\n\r\n{`),
  );
  clients.push(...own);
  return own;
};

const rejected = (all: RawClient[]) =>
  all.filter(({ received }) => received().startsWith('HTTP/1.1 503'));

test('creates whose bodies never come are 503 past half of the places, and other merchants are served', async () => {
  const greedy = await token('m_greedy');
  const sent = halfSent(greedy, 2 * MAX_IN_FLIGHT);
  await until(
    'half of the places are taken',
    () => rejected(sent).length === sent.length - MAX_IN_FLIGHT / 2,
  );
  for (let round = 0; round < 5; round += 1) {
    const created = await service.create();
    expect(created.status).toBe(200);
    expect((await service.get(created.json.paymentId)).status).toBe(200);
    expect((await service.ask('GET', PAYMENTS)).status).toBe(200);
  }
  for (const own of [
    await service.create({}, { token: greedy }),
    await service.get('pay_1', { token: greedy }),
  ]) {
    expectError(own, 503, 'SERVICE_UNAVAILABLE', ['too many requests at once']);
    expect(own.headers).toMatchObject({ 'retry-after': '1' });
  }
  for (const { socket } of sent) socket.destroy();
  await until(
    'its places are free again',
    async () => (await service.get('pay_1', { token: greedy })).status === 404,
  );
});

test('two merchants that take all they can leave one place, and what comes before the places is told first', async () => {
  const both = [
    ...halfSent(await token('m_1'), MAX_IN_FLIGHT),
    ...halfSent(await token('m_2'), MAX_IN_FLIGHT),
  ];
  await until('they have all but one', () => rejected(both).length === MAX_IN_FLIGHT + 1);
  expect((await service.create()).status).toBe(200);
  const full = await service.create({}, { token: await token('m_1') });
  expectError(full, 503, 'SERVICE_UNAVAILABLE', ['too many requests at once']);
  const statusWith = async (method: string, path: string, bearer: string | null) =>
    (await service.ask(method, path, undefined, { token: bearer })).status;
  expect(await statusWith('POST', PAYMENTS, null)).toBe(401);
  expect(await statusWith('POST', PAYMENTS, await token('m_1', 'payments:read'))).toBe(403);
  expect(await statusWith('GET', '/nowhere', null)).toBe(404);
  expect(await statusWith('PUT', PAYMENTS, null)).toBe(405);
  expect(await statusWith('GET', '/health/ready', null)).toBe(200);
  expect(await statusWith('GET', '/metrics', null)).toBe(200);
  expect(await statusWith('GET', '/docs', null)).toBe(200);
});
