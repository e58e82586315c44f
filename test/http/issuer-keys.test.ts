/** An outage of the issuer is not ours, and no token makes us ask the issuer too often (gaps §10). */
import { afterAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { followIssuerKeys, type IssuerKeys } from '../../shared/http/auth/issuer-keys.ts';
import { createAuthenticator } from '../../shared/http/auth/tokens.ts';
import { httpServer } from '../support/faulty-server.ts';
import { openInProcess } from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The body that the issuer answers 200 with; undefined: 500. */
let body: string | undefined;
let fetches: number;

const pair = await generateKeyPair('ES256');
const goodKeys = JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'k1' }] });
const issuer = await httpServer((_request, response) => {
  fetches += 1;
  response.writeHead(body === undefined ? 500 : 200).end(body);
});
const url = `${issuer.url}/keys`;
afterAll(() => issuer.close());
beforeEach(() => {
  fetches = 0;
  body = goodKeys;
});

const tokenOf = (kid: string): Promise<string> =>
  new SignJWT({ merchant_id: 'm_1', iss: 'i', aud: 'a' })
    .setProtectedHeader({ alg: 'ES256', kid })
    .setExpirationTime('1h')
    .sign(pair.privateKey);

/** Keys with a clock of their own, and what looking for a key comes to. */
const followed = () => {
  const clock = { ms: 0 };
  const failed: unknown[] = [];
  const keys: IssuerKeys = followIssuerKeys({
    url,
    nowMs: () => clock.ms,
    onFailure: (error) => failed.push(error),
  });
  const find = (kid = 'k1', mayLoad = () => true) =>
    keys.find({ alg: 'ES256', kid }, { payload: '', signature: '' }, mayLoad).then(
      () => 'found',
      (error: Error) => error.name,
    );
  return { clock, failed, keys, find };
};

describe('while the issuer cannot be reached', () => {
  test('the last good keys verify tokens for a day, and their age is known', async () => {
    const { clock, failed, keys, find } = followed();
    expect(await find()).toBe('found');
    body = undefined;
    for (const [at, hours] of [1, 12, 23].entries()) {
      clock.ms = hours * HOUR_MS;
      expect(await find()).toBe('found');
      await until('the load has failed', () => failed.length === at + 1);
    }
    expect(keys.outdatedSeconds()).toBe((23 * HOUR_MS) / 1000);
    clock.ms = 24 * HOUR_MS;
    expect(await find()).toBe('KeysOutOfReach');
    body = goodKeys;
    clock.ms += MINUTE_MS;
    expect(await find()).toBe('found');
    expect(keys.outdatedSeconds()).toBe(0);
  });

  test('it is asked less and less often, however many tokens come', async () => {
    const { clock, find } = followed();
    body = undefined;
    for (let at = 0; at < 600; at += 1) {
      clock.ms = at * 100;
      expect(await find()).toBe('KeysOutOfReach');
    }
    // In a minute: once at first, then after waits that double up to 30 s.
    expect(fetches).toBeLessThan(20);
  });

  test.each([
    ['too large', () => `{"keys":[],"x":"${'x'.repeat(65_536)}"}`],
    ['no key set', () => '{"keys":"none"}'],
    ['no JSON', () => '<html>'],
  ])('a body that is %s changes nothing', async (_name, bad) => {
    const { clock, failed, find } = followed();
    expect(await find()).toBe('found');
    body = bad();
    clock.ms = HOUR_MS;
    expect(await find()).toBe('found');
    await until('the load has failed', () => failed.length === 1);
    expect(await find('k2')).toBe('KeysOutOfReach');
  });
});

describe('a token with an unknown key', () => {
  test('makes one fetch in 30 s however many come, and is found once the issuer has the key', async () => {
    const { clock, find } = followed();
    clock.ms = MINUTE_MS;
    expect(await find()).toBe('found');
    clock.ms += MINUTE_MS;
    const found = await Promise.all(Array.from({ length: 100 }, () => find('k2')));
    expect(new Set(found)).toEqual(new Set(['JWKSNoMatchingKey']));
    expect(fetches).toBe(2);
    body = goodKeys.replace('"k1"', '"k2"');
    clock.ms += 29_999;
    expect(await find('k2')).toBe('JWKSNoMatchingKey');
    clock.ms += 1;
    expect(await find('k2')).toBe('found');
    expect(fetches).toBe(3);
  });

  test('makes no fetch for an address that has sent too many bad tokens', async () => {
    const { clock, find } = followed();
    expect(await find()).toBe('found');
    clock.ms = MINUTE_MS;
    expect(await find('k2', () => false)).toBe('JWKSNoMatchingKey');
    expect(fetches).toBe(1);
  });

  test('is 401 and then 429 over the whole service, with one fetch', async () => {
    await using service = await openInProcess({
      JWT_SECRET: '',
      JWT_JWKS_URL: url,
      JWT_ISSUER: 'i',
      JWT_AUDIENCE: 'a',
      RATE_LIMIT_UNAUTHENTICATED_PER_SECOND: '1',
    });
    const token = await tokenOf('k2');
    const statuses: number[] = [];
    for (let n = 0; n < 20; n += 1) {
      statuses.push((await service.ask('GET', '/api/v1/payments/p', undefined, { token })).status);
    }
    expect(statuses.slice(0, 2)).toEqual([401, 401]);
    expect(statuses).toContain(429);
    expect(fetches).toBe(1);
  });
});

test('a token that was verified is checked anew after a minute: its issuer may have withdrawn the key', async () => {
  const authenticator = await createAuthenticator({
    keys: { kind: 'jwks-url', url },
    merchantClaims: ['merchant_id'],
  });
  const headers = ['Authorization', `Bearer ${await tokenOf('k1')}`];
  const startMs = Date.now();
  expect(await authenticator.authenticate(headers)).toMatchObject({ ok: true });
  const clock = jest.spyOn(Date, 'now').mockReturnValue(startMs + MINUTE_MS - 1);
  expect(authenticator.authenticate(headers)).toMatchObject({ ok: true });
  clock.mockReturnValue(Date.now() + MINUTE_MS + 10_000);
  expect(authenticator.authenticate(headers)).toBeInstanceOf(Promise);
  clock.mockRestore();
});
