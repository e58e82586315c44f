/** Notices without a signature cannot take the places of requests with a token (gaps §1, §11). */
import { afterAll, afterEach, expect, test } from '@jest/globals';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { expectError, openInProcess } from '../support/service-in-process.ts';
import { openOverStripe } from '../support/stripe-service.ts';
import { until } from '../support/until.ts';

const PATH = '/webhooks/stripe';
let notices: RawClient[] = [];

const over = await openOverStripe({ MAX_IN_FLIGHT: '2' });
const { service } = over;
const port = Number(new URL(await service.listen()).port);
afterEach(() => {
  for (const { socket } of notices) socket.destroy();
  notices = [];
});
afterAll(() => over[Symbol.asyncDispose]());

/** The start of a notice whose body never comes. */
const beginNotice = (headers = 'stripe-signature: t=1,v1=0\r\n'): RawClient => {
  const start = `POST ${PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n${headers}\r\n`;
  const notice = rawClient(port, start);
  notices.push(notice);
  return notice;
};

const signedNotice = () =>
  over.deliver(
    JSON.stringify({ id: 'evt_1', type: 'any', data: { object: { object: 'payout' } } }),
  );

test('notices whose bodies never come take a share of the places, and a create has its own', async () => {
  const begun = [beginNotice(), beginNotice(), beginNotice()];
  const rejected = () => begun.filter(({ received }) => received().startsWith('HTTP/1.1 503'));
  await until('two are rejected', () => rejected().length === 2);
  expect((await service.create()).status).toBe(200);
  expectError(await signedNotice(), 503, 'SERVICE_UNAVAILABLE', ['too many requests at once']);
  for (const { socket } of begun) socket.destroy();
  await until('its share is free again', async () => (await signedNotice()).status === 200);
});

test('a notice without a signature, or without a body, holds no place', async () => {
  const unsigned = [beginNotice(''), beginNotice(''), beginNotice('')];
  await until('each is rejected before its body', () =>
    unsigned.every(({ received }) => received().startsWith('HTTP/1.1 401')),
  );
  for (let time = 0; time < 3; time += 1) {
    const headers = { 'stripe-signature': 't=1,v1=0' };
    const empty = await fetch(`http://127.0.0.1:${port}${PATH}`, { method: 'POST', headers });
    expect(empty.status).toBe(401);
  }
  expect((await signedNotice()).status).toBe(200);
});

test('where no secret is set, every notice is 401 before its body', async () => {
  await using simulated = await openInProcess({ MAX_IN_FLIGHT: '2' });
  const headers = { 'stripe-signature': 't=1,v1=0' };
  const asking = { token: null, headers };
  const tooLarge = 'x'.repeat(65_537);
  expectError(await simulated.ask('POST', PATH, tooLarge, asking), 401, 'UNAUTHORIZED', [
    'the signature is missing or not valid',
  ]);
});
