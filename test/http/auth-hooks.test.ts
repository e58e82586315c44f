/** What the auth hooks of a route let through: tokens, scopes and rate limits (gaps §1, §10, §11). */
import { afterEach, describe, expect, test } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import { generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import {
  createAuthHooks,
  createRateLimiter,
  peerOf,
  type Rate,
} from '../../shared/http/auth/hooks.ts';
import { createAuthenticator, type TokenSettings } from '../../shared/http/auth/tokens.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import type { Log } from '../../shared/runtime/log.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { SECRET, signToken } from '../support/service-in-process.ts';

const OFF: Rate = { perSecond: 0, burst: 0 };
const CLAIMS = { merchant_id: 'm_1', sub: 'ada' };

const sharedSecret: TokenSettings = {
  keys: { kind: 'secret', secret: SECRET },
  merchantClaims: ['merchant_id', 'client_id', 'sub'],
};

describe('gaps §1, §10, §11: the authenticate and authorize hooks of a route', () => {
  let app: FastifyInstance;
  let lines: object[];
  afterEach(async () => {
    await app.close();
  });

  const start = async (
    rates: { merchant?: Rate; address?: Rate } = {},
    settings = sharedSecret,
  ) => {
    lines = [];
    const info = (fields: object) => lines.push(fields);
    const log = { info, error: () => undefined } as unknown as Log;
    app = buildApp({ log, metrics: createMetrics(), maxInFlight: 100 });
    const authHooks = createAuthHooks({
      authenticator: await createAuthenticator(settings),
      rateOf: () => rates.merchant ?? OFF,
      unauthenticatedRate: rates.address ?? OFF,
    });
    for (const scope of ['payments:read', 'payments:write', 'audit:read', 'ops:admin'] as const) {
      app.post(
        `/${scope.replace(':', '-')}`,
        { onRequest: authHooks(scope) },
        async ({ principal }) => principal,
      );
    }
  };

  const ask = async (scope: string, claims: JWTPayload | undefined) => {
    const headers = claims && {
      authorization: `Bearer ${await signToken({ ...CLAIMS, ...claims })}`,
    };
    const response = await app.inject({
      method: 'POST',
      url: `/${scope.replace(':', '-')}`,
      headers: headers ?? {},
    });
    return { ...response, error: response.json().error as string, status: response.statusCode };
  };

  test.each<[string, JWTPayload, string]>([
    ['no scope claim, so all rights of its merchant,', {}, 'payments:read payments:write'],
    ['payments:write', { scope: 'payments:write openid' }, 'payments:write'],
    ['a list of scopes', { scope: ['payments:read'] }, 'payments:read'],
    ['an empty scope claim', { scope: '' }, ''],
    ['ops:admin and audit:read', { scope: 'ops:admin audit:read' }, 'audit:read ops:admin'],
    ['merchant * and no scope claim', { merchant_id: '*' }, ''],
    ['merchant *, scopes', { merchant_id: '*', scope: 'payments:read audit:read' }, 'audit:read'],
  ])('a token with %s is allowed exactly its scopes', async (_name, claims, allowed) => {
    await start();
    const granted: string[] = [];
    for (const scope of ['payments:read', 'payments:write', 'audit:read', 'ops:admin']) {
      const { status, error } = await ask(scope, claims);
      expect([200, 403]).toContain(status);
      if (status === 200) granted.push(scope);
      else expect(error).toBe('FORBIDDEN');
    }
    expect(granted.join(' ')).toBe(allowed);
  });

  test('the log line of a token by another key says so, and who sent it', async () => {
    await start();
    const authorization = `Bearer ${await signToken(CLAIMS, 'z'.repeat(32))}`;
    await app.inject({ method: 'POST', url: '/payments-read', headers: { authorization } });
    expect(lines).toMatchObject([
      {
        status: 401,
        details: ['the token is not signed by a key of this service'],
        reason: 'it is signed by another key than the one that is set',
        client: '127.0.0.1',
      },
    ]);
  });

  test('a key set out of reach is 503 with Retry-After, not 401', async () => {
    const keys = { kind: 'jwks-url', url: 'http://127.0.0.1:1/keys' } as const;
    await start({}, { ...sharedSecret, keys });
    const { privateKey } = await generateKeyPair('ES256');
    const token = await new SignJWT({ ...CLAIMS, exp: Math.floor(Date.now() / 1000) + 60 })
      .setProtectedHeader({ alg: 'ES256' })
      .sign(privateKey);
    const response = await app.inject({
      method: 'POST',
      url: '/payments-read',
      headers: { authorization: `Bearer ${token}` },
    });
    expect(response.json()).toMatchObject({ error: 'SERVICE_UNAVAILABLE' });
    expect([response.statusCode, response.headers['retry-after']]).toEqual([503, '1']);
  });

  test('a request without the scope draws on no bucket: 403 comes before 429', async () => {
    await start({ merchant: { perSecond: 0.001, burst: 1 } });
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await ask('ops:admin', {})).status);
    expect(statuses).toEqual([403, 403, 403]);
    expect((await ask('payments:read', {})).status).toBe(200);
  });

  test('an address without a valid token is 401 until its bucket is empty, then 429', async () => {
    await start({ address: { perSecond: 0.001, burst: 2 } });
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await ask('payments:read', undefined)).status);
    expect(statuses).toEqual([401, 401, 429]);
    expect((await ask('payments:read', {})).status).toBe(200);
  });
});

describe('gaps §11: the token buckets of a rate limiter', () => {
  test('are bounded: a flood of names never empties the bucket that is used, and a forgotten one starts full', () => {
    const limiter = createRateLimiter(2, () => 1000);
    const rate = { perSecond: 0.1, burst: 1 };
    limiter.take('a', rate);
    for (let n = 0; n < 10; n += 1) {
      limiter.take(`other-${n}`, rate);
      expect(limiter.take('a', rate)).toBeGreaterThan(0);
    }
    expect(limiter.take('other-0', rate)).toBeUndefined();
  });

  test('a bucket fills at its rate up to its burst, and gives the whole seconds until its next token', () => {
    let nowMs = 1000;
    const limiter = createRateLimiter(10, () => nowMs);
    const take = () => limiter.take('a', { perSecond: 0.5, burst: 2 });
    expect([take(), take(), take(), take()]).toEqual([undefined, undefined, 2, 2]);
    nowMs += 999;
    expect(take()).toBe(2);
    nowMs += 1;
    expect(take()).toBe(1);
    nowMs += 1000;
    expect([take(), take()]).toEqual([undefined, 2]);
    nowMs += 3_600_000;
    expect([take(), take(), take()]).toEqual([undefined, undefined, 2]);
  });

  test('a burst of 0 lets one request through', () => {
    const limiter = createRateLimiter(10, () => 1000);
    const take = () => limiter.take('a', { perSecond: 100, burst: 0 });
    expect([take(), take()]).toEqual([undefined, 1]);
  });
});

describe('gaps §11: a sender without a valid token', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '::ffff:203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8::6', '2001:db8:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    [undefined, ''],
  ])('%s counts as %j', (remoteAddress, name) => {
    expect(peerOf({ remoteAddress })).toBe(name);
  });
});
