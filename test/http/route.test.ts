/** What a bound route takes (gaps §2, §8), the order in which it checks (gaps §1), and when the budget starts. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { createAuthHooks } from '../../shared/http/auth/hooks.ts';
import { parseIdempotencyKey, type Read } from '../../shared/http/request.ts';
import { type Input, type Route, registerRoutes } from '../../shared/http/route.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import { PAYMENT_ID } from '../../shared/payment/fields.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { silentLog } from '../support/silent-log.ts';

const READING_MS = 20;

/** Takes its time, as parsing a large body does. */
const read = ({ body }: { body: unknown }): Read<string> => {
  const end = performance.now() + READING_MS;
  while (performance.now() < end);
  return body === undefined
    ? { ok: false, details: ['the body is missing'] }
    : { ok: true, value: String(body) };
};

const request = {
  query: z.strictObject({}, { error: 'a parameter is not known' }),
  paymentId: 'INVALID_PAYMENT_ID',
  read,
} as const;

let app: FastifyInstance;
let given: { input: Input<typeof request>; passedMs: number } | undefined;

const voidPayment: Route<undefined, typeof request> = {
  request,
  responses: {},
  handle: (_deps, input, reply) => {
    given = { input, passedMs: performance.now() - input.arrivedAtMs };
    return reply.send('{}');
  },
};

const principals = {
  good: { merchantId: 'm_1', actor: 'a', scopes: undefined },
  reader: { merchantId: 'm_1', actor: 'a', scopes: new Set(['payments:read']) },
  hasty: { merchantId: 'm_hasty', actor: 'a', scopes: undefined },
};
const nameOf = (rawHeaders: readonly string[]) =>
  rawHeaders[rawHeaders.indexOf('authorization') + 1] as keyof typeof principals;

beforeEach(() => {
  given = undefined;
  app = buildApp({ log: silentLog, metrics: createMetrics(), maxInFlight: 10 });
  const authHooks = createAuthHooks({
    authenticator: {
      authenticate: (rawHeaders) =>
        rawHeaders.includes('authorization')
          ? { ok: true, principal: principals[nameOf(rawHeaders)] }
          : { ok: false, details: ['no token'] },
    },
    rateOf: (merchantId) => ({ perSecond: merchantId === 'm_hasty' ? 0.001 : 0, burst: 1 }),
    unauthenticatedRate: { perSecond: 0, burst: 1 },
  });
  registerRoutes(app, authHooks, { voidPayment }, undefined);
});
afterEach(() => app.close());

const TOO_LARGE = ' '.repeat(65_537);

const send = async (name: string | undefined, url: string, body?: string) => {
  const headers = name === undefined ? {} : { authorization: name };
  const payload = body === undefined ? {} : { payload: body };
  const response = await app.inject({ method: 'POST', url, headers, ...payload });
  return [response.statusCode, response.json().error, response.json().details?.[0]];
};

test('gaps §1: token, scope, rate, size, query, paymentId and content are checked in this order', async () => {
  const WRONG = '/api/v1/payments/a+b/void?colour=blue';
  await send('hasty', WRONG);
  expect([
    await send(undefined, WRONG, TOO_LARGE),
    await send('reader', WRONG, TOO_LARGE),
    await send('hasty', WRONG, TOO_LARGE),
    await send('good', WRONG, TOO_LARGE),
    await send('good', WRONG),
    await send('good', '/api/v1/payments/a+b/void'),
    await send('good', '/api/v1/payments/pay_1/void'),
  ]).toEqual([
    [401, 'UNAUTHORIZED', 'no token'],
    [403, 'FORBIDDEN', 'the scope payments:write is required'],
    [429, 'RATE_LIMITED', 'too many requests; try again later'],
    [413, 'INVALID_REQUEST', 'the body must be at most 65536 bytes'],
    [400, 'INVALID_REQUEST', 'a parameter is not known'],
    [400, 'INVALID_PAYMENT_ID', expect.stringContaining('paymentId must be')],
    [400, 'INVALID_REQUEST', 'the body is missing'],
  ]);
  expect(given).toBeUndefined();
});

test('V1, gaps §11: the request budget includes the time in which the content is read', async () => {
  const response = await send('good', '/api/v1/payments/pay_1/void', 'x');
  expect(response).toEqual([200, undefined, undefined]);
  expect(given?.input).toMatchObject({ paymentId: 'pay_1', content: 'x' });
  expect(given?.passedMs).toBeGreaterThanOrEqual(READING_MS);
});

describe('gaps §2: a paymentId in a path', () => {
  test.each(['pay_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'a', 'A-_9', 'x'.repeat(32)])(
    '%s is well formed',
    (id) => {
      expect(id).toMatch(PAYMENT_ID);
    },
  );
  test.each(['', 'x'.repeat(33), 'a/b', '\0', 'ä', '%zz', 'a\n', 'a.b'])(
    '%j is not well formed',
    (id) => {
      expect(id).not.toMatch(PAYMENT_ID);
    },
  );
});

describe('gaps §8: the Idempotency-Key', () => {
  test('is optional, and kept as it is', () => {
    expect(parseIdempotencyKey([])).toEqual({ ok: true, key: undefined });
    const key = `!~${'x'.repeat(253)}`;
    expect(parseIdempotencyKey(['idempotency-KEY', key])).toEqual({ ok: true, key });
  });
  test.each(['', 'a b', 'ä', 'x'.repeat(256), '\x7f'])('%j is refused', (key) => {
    expect(parseIdempotencyKey(['Idempotency-Key', key])).toEqual({
      ok: false,
      details: ['Idempotency-Key must be 1 to 255 visible ASCII characters'],
    });
  });
  test('two Idempotency-Key headers are rejected, equal ones too', () => {
    const twice = ['Idempotency-Key', 'a', 'Accept', '*/*', 'idempotency-key', 'a'];
    const details = ['Idempotency-Key must be given once'];
    expect(parseIdempotencyKey(twice)).toEqual({ ok: false, details });
  });
});
