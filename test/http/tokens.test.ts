/** Tokens, rights and rates (gaps §10, §11), by the auth hooks that the routes have. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { createAuthHooks } from '../../shared/http/auth/hooks.ts';
import { importSecret, openLocalKeys, signToken } from '../../shared/http/auth/local-keys.ts';
import { createRateLimiter, type Rate } from '../../shared/http/auth/rate-limit.ts';
import {
  createAuthenticator,
  createVerifiedTokens,
  type Principal,
  type TokenSettings,
} from '../../shared/http/auth/tokens.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import type { Log } from '../../shared/runtime/log.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';

const SECRET = 'a shared secret of 32 bytes, or so';
const MISSING = ['the Authorization header is required'];
const EXPIRED = ['the token has expired'];
const MALFORMED = ['the token format is invalid'];
const OFF: Rate = { perSecond: 0, burst: 0 };

const now = () => Math.floor(Date.now() / 1000);
const folder = mkdtempSync(join(tmpdir(), 'tokens-'));
afterAll(() => rmSync(folder, { recursive: true }));

const bySecret: TokenSettings = {
  keys: { kind: 'secret', secret: SECRET },
  merchantClaims: ['merchant_id', 'client_id', 'sub'],
};

const good = (): JWTPayload => ({ merchant_id: 'm_1', sub: 'ada', exp: now() + 60 });

const signed = (payload: JWTPayload, secret = SECRET, header: object = {}) =>
  new SignJWT(payload)
    .setProtectedHeader({ alg: 'HS256', ...header })
    .sign(new TextEncoder().encode(secret));

const judgementOn = async (settings: TokenSettings, ...headers: string[]) =>
  (await createAuthenticator(settings)).authenticate(
    headers.flatMap((value) => ['Authorization', value]),
  );

const principalOf = async (
  payload: JWTPayload,
  settings = bySecret,
): Promise<Principal | string[]> => {
  const judgement = await judgementOn(settings, `Bearer ${await signed(payload)}`);
  if (judgement.ok === 'unknown') throw new Error('the keys are out of reach');
  return judgement.ok ? judgement.principal : judgement.details;
};

const base64 = (value: object | string) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

describe('gaps §10: the Authorization header', () => {
  test.each([
    ['none', [], MISSING],
    ['an empty one', [''], MISSING],
    ['another scheme', ['Basic YTpi'], MALFORMED],
    ['no token', ['Bearer'], MALFORMED],
    ['rubbish', ['Bearer x'], MALFORMED],
    ['two dots of rubbish', ['Bearer a.b.c'], MALFORMED],
  ])('%s', async (_name, headers, details) => {
    expect(await judgementOn(bySecret, ...headers)).toEqual({ ok: false, details });
  });

  test('two Authorization headers are rejected, valid ones too', async () => {
    const header = `Bearer ${await signed(good())}`;
    expect(await judgementOn(bySecret, header, header)).toEqual({ ok: false, details: MALFORMED });
  });

  test.each(['Bearer', 'bearer', 'BEARER', 'Bearer  '])('the scheme %j', async (scheme) => {
    expect(await judgementOn(bySecret, `${scheme} ${await signed(good())}`)).toMatchObject({
      ok: true,
      principal: { merchantId: 'm_1', actor: 'ada' },
    });
  });
});

describe('gaps §10: the claims', () => {
  test.each<[string, Record<string, unknown>, string[]]>([
    ['no exp', { exp: undefined }, MALFORMED],
    ['an exp that is a string', { exp: '9999999999' }, MALFORMED],
    ['expired', { exp: now() - 60 }, EXPIRED],
    ['expired this second', { exp: now() }, EXPIRED],
    ['not yet valid', { nbf: now() + 60 }, MALFORMED],
    ['an empty merchant', { merchant_id: '' }, MALFORMED],
    ['a merchant that is a number', { merchant_id: 7 }, MALFORMED],
    ['a merchant that is null', { merchant_id: null }, MALFORMED],
    ['a merchant of 256', { merchant_id: 'x'.repeat(256) }, MALFORMED],
    ['no merchant at all', { merchant_id: undefined, sub: undefined }, MALFORMED],
    ['a scope that is a number', { scope: 7 }, MALFORMED],
  ])('%s', async (_name, claims, details) => {
    expect(await principalOf({ ...good(), ...claims } as JWTPayload)).toEqual(details);
  });

  test('an exp beyond every number never lets a token live for ever', async () => {
    const head = base64({ alg: 'HS256' });
    const body = base64('{"merchant_id":"m_1","exp":1e400}');
    const { createHmac } = await import('node:crypto');
    const signature = createHmac('sha256', SECRET).update(`${head}.${body}`).digest('base64url');
    expect(await judgementOn(bySecret, `Bearer ${head}.${body}.${signature}`)).toEqual({
      ok: false,
      details: MALFORMED,
    });
  });

  test('nbf has 5 s of tolerance', async () => {
    expect(await principalOf({ ...good(), nbf: now() + 4 })).toMatchObject({ merchantId: 'm_1' });
  });

  test('the first claim present names the merchant, the subject the actor', async () => {
    const all = { client_id: 'c', sub: 's', exp: now() + 60 };
    expect(await principalOf(all)).toMatchObject({ merchantId: 'c', actor: 's' });
    expect(await principalOf({ sub: 's', exp: now() + 60 })).toMatchObject({ merchantId: 's' });
    const own = { ...bySecret, merchantClaims: ['shop'] };
    const claims = { shop: 'x', exp: now() + 60 };
    expect(await principalOf(claims, own)).toMatchObject({ merchantId: 'x', actor: 'x' });
  });

  test('issuer and audience are checked when set', async () => {
    const strict = { ...bySecret, issuer: 'i', audience: 'a' };
    expect(await principalOf({ ...good(), iss: 'i', aud: ['b', 'a'] }, strict)).toMatchObject({
      merchantId: 'm_1',
    });
    expect(await principalOf({ ...good(), iss: 'x', aud: 'a' }, strict)).toEqual(MALFORMED);
    expect(await principalOf({ ...good(), iss: 'i' }, strict)).toEqual(MALFORMED);
    expect(await principalOf({ ...good(), iss: 'anybody' })).toMatchObject({ merchantId: 'm_1' });
  });
});

describe('gaps §10: signatures and algorithms', () => {
  test('another secret, no signature, or "none"', async () => {
    const payload = good();
    const parts = (await signed(payload)).split('.');
    for (const token of [
      await signed(payload, 'another secret of 32 bytes, or so'),
      `${parts[0]}.${parts[1]}.`,
      `${base64({ alg: 'none' })}.${parts[1]}.`,
      `${parts[0]}.${base64({ ...payload, merchant_id: 'm_2' })}.${parts[2]}`,
    ]) {
      expect(await judgementOn(bySecret, `Bearer ${token}`)).toEqual({
        ok: false,
        details: MALFORMED,
      });
    }
  });

  test('a secret means HS256 alone', async () => {
    const token = await signed(good(), SECRET, { alg: 'HS512' });
    expect(await judgementOn(bySecret, `Bearer ${token}`)).toMatchObject({ ok: false });
  });

  test('a key set: its kids alone, and never its public key as a secret', async () => {
    const { privateKey, publicKey } = await generateKeyPair('RS256');
    const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'RS256' };
    const path = join(folder, 'jwks.json');
    writeFileSync(path, JSON.stringify({ keys: [jwk] }));
    const settings: TokenSettings = { ...bySecret, keys: { kind: 'jwks-file', path } };
    const by = (kid: string) =>
      new SignJWT(good()).setProtectedHeader({ alg: 'RS256', kid }).sign(privateKey);
    expect(await judgementOn(settings, `Bearer ${await by('k1')}`)).toMatchObject({ ok: true });
    const wrong = { ok: false, details: MALFORMED };
    expect(await judgementOn(settings, `Bearer ${await by('k2')}`)).toEqual(wrong);
    const confused = await signed(good(), JSON.stringify(jwk), { kid: 'k1' });
    expect(await judgementOn(settings, `Bearer ${confused}`)).toEqual(wrong);
    const narrowed = { ...settings, algorithms: ['ES256'] };
    expect(await judgementOn(narrowed, `Bearer ${await by('k1')}`)).toEqual(wrong);
  });

  test('a file without a key set names its setting', async () => {
    const path = join(folder, 'none.json');
    await expect(
      createAuthenticator({ ...bySecret, keys: { kind: 'jwks-file', path } }),
    ).rejects.toThrow(/^JWT_JWKS_FILE: /);
  });
});

describe('gaps §10: a key set by address', () => {
  let issuer: Server;
  let response: { status: number; body: string };
  let fetches: number;
  const url = () => `http://127.0.0.1:${(issuer.address() as { port: number }).port}/keys`;

  beforeAll(async () => {
    issuer = createServer((_request, reply) => {
      fetches += 1;
      reply.writeHead(response.status).end(response.body);
    });
    await new Promise<void>((resolve) => issuer.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => {
    issuer.close();
  });

  test('a key set out of reach leaves a token undecided; once it is back, the token is verified and remembered', async () => {
    fetches = 0;
    response = { status: 500, body: '' };
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    const jwk = { ...(await exportJWK(publicKey)), kid: 'k1' };
    const authenticator = await createAuthenticator({
      ...bySecret,
      keys: { kind: 'jwks-url', url: url() },
    });
    const token = await new SignJWT(good())
      .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
      .sign(privateKey);
    const judge = async () => authenticator.authenticate(['authorization', `Bearer ${token}`]);
    expect(await judge()).toEqual({ ok: 'unknown' });
    response = { status: 200, body: '{"keys":"none"}' };
    expect(await judge()).toEqual({ ok: 'unknown' });
    response = { status: 200, body: JSON.stringify({ keys: [jwk] }) };
    expect(await judge()).toMatchObject({ ok: true });
    response = { status: 500, body: '' };
    expect(await judge()).toMatchObject({ ok: true });
    expect(fetches).toBe(3);
  });
});

describe('gaps §10: the key pair of the data folder', () => {
  test('is made once, readable by its owner alone, and signs what the service believes', async () => {
    const own = mkdtempSync(join(folder, 'data-'));
    const [one, two] = await Promise.all([openLocalKeys(own), openLocalKeys(own)]);
    expect(one.publicJwk).toEqual(two.publicJwk);
    expect(one.publicJwk).not.toHaveProperty('d');
    expect(readdirSync(own)).toEqual(['signing-key.json']);
    expect(statSync(join(own, 'signing-key.json')).mode & 0o777).toBe(0o600);
    const settings: TokenSettings = { ...bySecret, keys: { kind: 'local', folder: own } };
    const claims = { merchantId: 'm_9', merchantClaim: 'merchant_id', ttlSeconds: 60 };
    const token = await signToken(one.signer, claims);
    expect(await judgementOn(settings, `Bearer ${token}`)).toEqual({
      ok: true,
      principal: { merchantId: 'm_9', actor: 'm_9', scopes: undefined },
    });
  });

  test('a damaged key file is an error, not a new key', async () => {
    const own = mkdtempSync(join(folder, 'data-'));
    writeFileSync(join(own, 'signing-key.json'), '{');
    await expect(openLocalKeys(own)).rejects.toThrow('DATA_DIR: signing-key.json cannot be read');
  });

  test('a shared secret signs too, with scope, issuer and audience', async () => {
    const signer = { algorithm: 'HS256' as const, key: await importSecret(SECRET) };
    const token = await signToken(signer, {
      merchantId: 'm_1',
      merchantClaim: 'shop',
      ttlSeconds: 60,
      scope: 'payments:read audit:read',
      issuer: 'i',
      audience: 'a',
    });
    const settings = { ...bySecret, merchantClaims: ['shop'], issuer: 'i', audience: 'a' };
    expect(await judgementOn(settings, `Bearer ${token}`)).toMatchObject({
      ok: true,
      principal: { merchantId: 'm_1', scopes: new Set(['payments:read', 'audit:read']) },
    });
  });
});

describe('gaps §10: verified tokens are remembered', () => {
  const principal: Principal = { merchantId: 'm', actor: 'm', scopes: undefined };

  test('until the second of exp, and no longer than keys are believed', () => {
    const tokens = createVerifiedTokens(60_000);
    tokens.keep('a', principal, 1_000, 990_000);
    expect(tokens.find('a', 999_999)).toBe(principal);
    expect(tokens.find('a', 1_000_000)).toBeUndefined();
    tokens.keep('b', principal, 10_000, 0);
    expect(tokens.find('b', 59_999)).toBe(principal);
    expect(tokens.find('b', 60_000)).toBeUndefined();
  });

  test('no more than their limit, the oldest goes', () => {
    const tokens = createVerifiedTokens(60_000, 2);
    for (const digest of ['a', 'b', 'c']) tokens.keep(digest, principal, 10_000, 0);
    expect(['a', 'b', 'c'].map((digest) => tokens.find(digest, 1))).toEqual([
      undefined,
      principal,
      principal,
    ]);
  });

  test('a token that was verified before is accepted at once', async () => {
    const authenticator = await createAuthenticator(bySecret);
    const headers = ['Authorization', `Bearer ${await signed(good())}`];
    const first = authenticator.authenticate(headers);
    expect(first).toBeInstanceOf(Promise);
    const { principal: known } = (await first) as { principal: Principal };
    expect(authenticator.authenticate(headers)).toEqual({ ok: true, principal: known });
  });
});

describe('gaps §1, §10, §11: the authenticate and authorize hooks of a route', () => {
  let app: FastifyInstance;
  afterEach(async () => {
    await app.close();
  });

  const start = async (rates: { merchant?: Rate; address?: Rate } = {}, settings = bySecret) => {
    const log = { info: () => undefined, error: () => undefined } as unknown as Log;
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
    const headers = claims && { authorization: `Bearer ${await signed({ ...good(), ...claims })}` };
    const response = await app.inject({
      method: 'POST',
      url: `/${scope.replace(':', '-')}`,
      headers: headers ?? {},
    });
    return { ...response, error: response.json().error as string, status: response.statusCode };
  };

  test.each<[string, JWTPayload, string]>([
    ['no scope claim: all rights of the merchant', {}, 'payments:read payments:write'],
    ['read', { scope: 'payments:read' }, 'payments:read'],
    ['write', { scope: 'payments:write openid' }, 'payments:write'],
    ['a list', { scope: ['payments:read'] }, 'payments:read'],
    ['none of them', { scope: '' }, ''],
    ['operator', { scope: 'ops:admin audit:read' }, 'audit:read ops:admin'],
    ['all merchants', { merchant_id: '*' }, ''],
    [
      'all merchants, with rights',
      { merchant_id: '*', scope: 'payments:read audit:read' },
      'audit:read',
    ],
  ])('%s', async (_name, claims, allowed) => {
    await start();
    const responses: string[] = [];
    for (const scope of ['payments:read', 'payments:write', 'audit:read', 'ops:admin']) {
      const { status, error } = await ask(scope, claims);
      expect([200, 403]).toContain(status);
      if (status === 200) responses.push(scope);
      else expect(error).toBe('FORBIDDEN');
    }
    expect(responses.join(' ')).toBe(allowed);
  });

  test('401 has WWW-Authenticate', async () => {
    await start();
    const { status, error, headers } = await ask('payments:read', undefined);
    expect([status, error, headers['www-authenticate']]).toEqual([401, 'UNAUTHORIZED', 'Bearer']);
  });

  test('keys out of reach are 503 with Retry-After, not 401', async () => {
    const keys = { kind: 'jwks-url', url: 'http://127.0.0.1:1/keys' } as const;
    await start({}, { ...bySecret, keys });
    const { privateKey } = await generateKeyPair('ES256');
    const token = await new SignJWT(good()).setProtectedHeader({ alg: 'ES256' }).sign(privateKey);
    const response = await app.inject({
      method: 'POST',
      url: '/payments-read',
      headers: { authorization: `Bearer ${token}` },
    });
    expect(response.json()).toMatchObject({ error: 'SERVICE_UNAVAILABLE' });
    expect([response.statusCode, response.headers['retry-after']]).toEqual([503, '1']);
  });

  test('a merchant past its burst is 429 with Retry-After; others are not', async () => {
    await start({ merchant: { perSecond: 0.1, burst: 2 } });
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await ask('payments:read', {})).status);
    expect(statuses).toEqual([200, 200, 429]);
    const limited = await ask('payments:read', {});
    expect(limited.error).toBe('RATE_LIMITED');
    expect(Number(limited.headers['retry-after'])).toBeGreaterThanOrEqual(9);
    expect((await ask('payments:read', { merchant_id: 'm_2' })).status).toBe(200);
  });

  test('a request without the scope draws on no bucket: 403 comes before 429', async () => {
    await start({ merchant: { perSecond: 0.1, burst: 1 } });
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await ask('ops:admin', {})).status);
    expect(statuses).toEqual([403, 403, 403]);
    expect((await ask('payments:read', {})).status).toBe(200);
  });

  test('an address without a valid token is 401 until its bucket is empty, then 429', async () => {
    await start({ address: { perSecond: 0.1, burst: 2 } });
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await ask('payments:read', undefined)).status);
    expect(statuses).toEqual([401, 401, 429]);
    expect((await ask('payments:read', {})).status).toBe(200);
  });
});

describe('gaps §11: buckets', () => {
  test('are bounded: a forgotten name starts full again', () => {
    const limiter = createRateLimiter(2);
    const rate = { perSecond: 0.1, burst: 1 };
    expect(limiter.take('a', rate)).toBeUndefined();
    expect(limiter.take('a', rate)).toBeGreaterThan(0);
    limiter.take('b', rate);
    limiter.take('c', rate);
    expect(limiter.take('a', rate)).toBeUndefined();
  });

  test('a bucket fills at its rate up to its burst, and says in whole seconds when it has one again', () => {
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

  test('a clock that went back takes nothing away, and a burst of 0 is one at once', () => {
    let nowMs = 1000;
    const limiter = createRateLimiter(10, () => nowMs);
    const take = () => limiter.take('a', { perSecond: 100, burst: 0 });
    expect([take(), take()]).toEqual([undefined, 1]);
    nowMs -= 500;
    expect(take()).toBe(1);
    nowMs += 10;
    expect(take()).toBeUndefined();
  });

  test('0 a second is off', () => {
    const limiter = createRateLimiter();
    for (let i = 0; i < 1000; i += 1) {
      expect(limiter.take('a', { perSecond: 0, burst: 0 })).toBeUndefined();
    }
  });
});
