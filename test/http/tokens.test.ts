/** Which tokens are valid, what they say, and which keys verify them (gaps §10). */
import { mkdtempSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, jest, test } from '@jest/globals';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { importSecret, openLocalKeys, signToken } from '../../shared/http/auth/local-keys.ts';
import { createAuthenticator, type TokenSettings } from '../../shared/http/auth/tokens.ts';
import type { Principal } from '../../shared/http/request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SECRET = 'a shared secret of 32 bytes, or so';
const MISSING = ['the Authorization header is required'];
const EXPIRED = ['the token has expired'];
const NO_BEARER = ['the Authorization header must be: Bearer <token>'];
const NOT_OURS = ['the token is not signed by a key of this service'];
const MALFORMED = ['the token format is invalid'];

const now = () => Math.floor(Date.now() / 1000);
const { path: folder, remove } = temporaryFolder();
afterAll(remove);

const sharedSecret: TokenSettings = {
  keys: { kind: 'secret', secret: SECRET },
  merchantClaims: ['merchant_id', 'client_id', 'sub'],
};

const good = (): JWTPayload => ({ merchant_id: 'm_1', sub: 'ada', exp: now() + 60 });

const signed = (payload: JWTPayload, secret = SECRET, header: object = {}) =>
  new SignJWT(payload)
    .setProtectedHeader({ alg: 'HS256', ...header })
    .sign(new TextEncoder().encode(secret));

const authenticated = async (settings: TokenSettings, ...headers: string[]) =>
  (await createAuthenticator(settings)).authenticate(
    headers.flatMap((value) => ['Authorization', value]),
  );

const principalOf = async (
  payload: JWTPayload,
  settings = sharedSecret,
): Promise<Principal | string[]> => {
  const result = await authenticated(settings, `Bearer ${await signed(payload)}`);
  if (result.ok === 'unknown') throw new Error('the keys are out of reach');
  return result.ok ? result.principal : result.details;
};

const base64 = (value: object | string) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

test.each([
  ['of another key', async () => signed(good(), 'y'.repeat(32)), NOT_OURS, /another key/],
  [
    'of another audience',
    async () => signed({ ...good(), aud: 'other' }),
    MALFORMED,
    /^its aud is missing/,
  ],
  [
    'without a merchant',
    async () => signed({ exp: now() + 60, aud: 'payments' }),
    MALFORMED,
    /names no merchant/,
  ],
  [
    'of another type',
    async () => signed({ ...good(), aud: 'payments' }, SECRET, { typ: 'logout+jwt' }),
    MALFORMED,
    /^its typ/,
  ],
  [
    'of another algorithm',
    async () => `${base64({ alg: 'none' })}.${base64({})}.`,
    NOT_OURS,
    /algorithm/,
  ],
  ['that is none', async () => 'secret', MALFORMED, /no JWT/],
])('the log is told why a token %s is not valid, and nothing of the token', async (...row) => {
  const [, make, details, reason] = row;
  const token = await make();
  const settings = { ...sharedSecret, audience: 'payments' };
  const known = await authenticated(settings, `Bearer ${token}`);
  expect(known).toEqual({ ok: false, details, reason: expect.stringMatching(reason) });
  for (const part of token.split('.').filter((one) => one !== ''))
    expect(JSON.stringify(known)).not.toContain(part);
});

describe('gaps §10: the Authorization header', () => {
  test.each([
    ['none', [], MISSING],
    ['an empty one', [''], MISSING],
    ['another scheme', ['Basic YTpi'], NO_BEARER],
    ['no scheme', ['a.b.c'], NO_BEARER],
    ['no token', ['Bearer'], NO_BEARER],
    ['two tokens', ['Bearer a.b.c d.e.f'], NO_BEARER],
    ['two dots of rubbish', ['Bearer a.b.c'], MALFORMED],
    ['a token in quotes', ['Bearer "a.b.c"'], MALFORMED],
  ])('%s is 401', async (_name, headers, details) => {
    expect(await authenticated(sharedSecret, ...headers)).toMatchObject({ ok: false, details });
  });

  test.each(['Bearer', 'BEARER  '])('the scheme %j is accepted', async (scheme) => {
    expect(await authenticated(sharedSecret, `${scheme} ${await signed(good())}`)).toMatchObject({
      ok: true,
      principal: { merchantId: 'm_1', actor: 'ada' },
    });
  });
});

describe('gaps §10: a token of which one character was changed is not valid', () => {
  const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const isValid = async (settings: TokenSettings, token: string) =>
    (await authenticated(settings, `Bearer ${token}`)).ok;
  const local: TokenSettings = { ...sharedSecret, keys: { kind: 'local', folder } };
  const localToken = async () => {
    const { signer } = await openLocalKeys(folder);
    return signToken(signer, { merchantId: 'm_1', merchantClaim: 'merchant_id', ttlSeconds: 60 });
  };

  test.each<[string, TokenSettings, () => Promise<string>]>([
    ['HS256', sharedSecret, () => signed(good())],
    ['ES256', local, localToken],
  ])('the last one of %s', async (_name, settings, makeToken) => {
    const token = await makeToken();
    const start = token.slice(0, -1);
    const accepted: string[] = [];
    for (const last of BASE64URL)
      if (await isValid(settings, start + last)) accepted.push(start + last);
    expect(accepted).toEqual([token]);
  });

  test('padding, and the other alphabet of base64', async () => {
    const tokens = [];
    for (let n = 0; n < 20; n += 1) tokens.push(await signed({ ...good(), jti: String(n) }));
    const token = tokens.find((one) => /[-_][^.]*$/.test(one)) ?? '';
    const at = token.lastIndexOf('.');
    const plain = token.slice(at).replaceAll('-', '+').replaceAll('_', '/');
    expect(await isValid(sharedSecret, token)).toBe(true);
    for (const changed of [`${token}=`, `${token}==`, `${token}.`, token.slice(0, at) + plain])
      expect(await isValid(sharedSecret, changed)).toBe(false);
  });
});

describe('gaps §10: the claims', () => {
  test.each<[string, Record<string, unknown>, string[]]>([
    ['no exp', { exp: undefined }, MALFORMED],
    ['an exp that is a string', { exp: '9999999999' }, MALFORMED],
    ['expired', { exp: now() - 60 }, EXPIRED],
    ['expired within this second', { exp: Date.now() / 1000 - 0.001 }, EXPIRED],
    ['not yet valid', { nbf: now() + 60 }, MALFORMED],
    ['an empty merchant', { merchant_id: '' }, MALFORMED],
    ['a merchant that is a number', { merchant_id: 7 }, MALFORMED],
    ['a merchant with half of a surrogate pair', { merchant_id: 'm\ud800' }, MALFORMED],
    ['a merchant of 256', { merchant_id: 'x'.repeat(256) }, MALFORMED],
    ['no merchant at all', { merchant_id: undefined, sub: undefined }, MALFORMED],
    ['a scope that is a number', { scope: 7 }, MALFORMED],
  ])('%s is 401', async (_name, claims, details) => {
    expect(await principalOf({ ...good(), ...claims } as JWTPayload)).toEqual(details);
  });

  test('an exp beyond every number is rejected, for the token would never expire', async () => {
    const head = base64({ alg: 'HS256' });
    const body = base64('{"merchant_id":"m_1","exp":1e400}');
    const { createHmac } = await import('node:crypto');
    const signature = createHmac('sha256', SECRET).update(`${head}.${body}`).digest('base64url');
    expect(await authenticated(sharedSecret, `Bearer ${head}.${body}.${signature}`)).toMatchObject({
      ok: false,
      details: MALFORMED,
    });
  });

  test('a token is accepted up to 5 s before its nbf', async () => {
    expect(await principalOf({ ...good(), nbf: now() + 4 })).toMatchObject({ merchantId: 'm_1' });
  });

  test('the first claim present names the merchant, the subject the actor', async () => {
    const all = { client_id: 'c', sub: 's', exp: now() + 60 };
    expect(await principalOf(all)).toMatchObject({ merchantId: 'c', actor: 's' });
    expect(await principalOf({ sub: 's', exp: now() + 60 })).toMatchObject({ merchantId: 's' });
    const own = { ...sharedSecret, merchantClaims: ['shop'] };
    const claims = { shop: 'x', exp: now() + 60 };
    expect(await principalOf(claims, own)).toMatchObject({ merchantId: 'x', actor: 'x' });
  });

  test('issuer and audience are checked when set', async () => {
    const strict = { ...sharedSecret, issuer: 'i', audience: 'a' };
    expect(await principalOf({ ...good(), iss: 'i', aud: ['b', 'a'] }, strict)).toMatchObject({
      merchantId: 'm_1',
    });
    expect(await principalOf({ ...good(), iss: 'x', aud: 'a' }, strict)).toEqual(MALFORMED);
    expect(await principalOf({ ...good(), iss: 'i' }, strict)).toEqual(MALFORMED);
    expect(await principalOf({ ...good(), iss: 'anybody' })).toMatchObject({ merchantId: 'm_1' });
  });
});

describe('gaps §10: the type of a token', () => {
  test.each<[unknown, boolean]>([
    [undefined, true],
    ['JWT', true],
    ['AT+JWT', true],
    ['application/at+jwt', true],
    ['logout+jwt', false],
    ['', false],
    [7, false],
  ])('a token whose typ is %j is accepted: %j', async (typ, isAccepted) => {
    const token = await signed(good(), SECRET, typ === undefined ? {} : { typ });
    expect(await authenticated(sharedSecret, `Bearer ${token}`)).toMatchObject(
      isAccepted ? { ok: true } : { ok: false, details: MALFORMED },
    );
  });
});

describe('gaps §10: one form of a name', () => {
  test.each(['caf\u00e9', 'cafe\u0301'])(
    'a merchant and an actor are one, composed or decomposed: %j',
    async (name) => {
      expect(await principalOf({ ...good(), merchant_id: name, sub: name })).toMatchObject({
        merchantId: 'caf\u00e9',
        actor: 'caf\u00e9',
      });
    },
  );

  test('a name that is too long in its one form is 401', async () => {
    // This sign has one unit, and two in NFC.
    expect(await principalOf({ ...good(), merchant_id: '\u0958'.repeat(128) })).toEqual(MALFORMED);
  });
});

describe('gaps §10: signatures and algorithms', () => {
  test('a body of another token and a missing signature are rejected', async () => {
    const payload = good();
    const [head, body, signature] = (await signed(payload)).split('.');
    const other = base64({ ...payload, merchant_id: 'm_2' });
    for (const token of [`${head}.${body}.`, `${head}.${other}.${signature}`])
      expect(await authenticated(sharedSecret, `Bearer ${token}`)).toMatchObject({
        ok: false,
        details: NOT_OURS,
      });
  });

  test('with a shared secret only HS256 is accepted', async () => {
    const token = await signed(good(), SECRET, { alg: 'HS512' });
    expect(await authenticated(sharedSecret, `Bearer ${token}`)).toMatchObject({ ok: false });
  });

  test('a key set verifies by its own kids alone, and its public key is never taken for a secret', async () => {
    const { privateKey, publicKey } = await generateKeyPair('RS256');
    const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'RS256' };
    const jwks = { keys: [jwk] };
    const settings: TokenSettings = { ...sharedSecret, keys: { kind: 'jwks-file', jwks } };
    const by = (kid: string) =>
      new SignJWT(good()).setProtectedHeader({ alg: 'RS256', kid }).sign(privateKey);
    expect(await authenticated(settings, `Bearer ${await by('k1')}`)).toMatchObject({ ok: true });
    const wrong = { ok: false, details: NOT_OURS };
    expect(await authenticated(settings, `Bearer ${await by('k2')}`)).toMatchObject(wrong);
    const confused = await signed(good(), JSON.stringify(jwk), { kid: 'k1' });
    expect(await authenticated(settings, `Bearer ${confused}`)).toMatchObject(wrong);
    const narrowed = { ...settings, algorithms: ['ES256'] };
    expect(await authenticated(narrowed, `Bearer ${await by('k1')}`)).toMatchObject(wrong);
  });
});

describe('gaps §10: the key pair of the data folder', () => {
  test('is made once, readable by its owner alone, and signs tokens that the service accepts', async () => {
    const own = mkdtempSync(join(folder, 'data-'));
    const [one, two] = await Promise.all([openLocalKeys(own), openLocalKeys(own)]);
    expect(one.publicJwk).toEqual(two.publicJwk);
    expect(one.publicJwk).not.toHaveProperty('d');
    expect(readdirSync(own)).toEqual(['signing-key.json']);
    expect(statSync(join(own, 'signing-key.json')).mode & 0o777).toBe(0o600);
    const settings: TokenSettings = { ...sharedSecret, keys: { kind: 'local', folder: own } };
    const claims = { merchantId: 'm_9', merchantClaim: 'merchant_id', ttlSeconds: 60 };
    const token = await signToken(one.signer, claims);
    expect(await authenticated(settings, `Bearer ${token}`)).toEqual({
      ok: true,
      principal: {
        merchantId: 'm_9',
        actor: 'm_9',
        scopes: undefined,
        expiresAtSeconds: expect.any(Number),
      },
    });
  });

  test('a damaged key file is an error, not a new key', async () => {
    const own = mkdtempSync(join(folder, 'data-'));
    writeFileSync(join(own, 'signing-key.json'), '{');
    await expect(openLocalKeys(own)).rejects.toThrow('DATA_DIR: signing-key.json cannot be read');
  });

  test('a shared secret signs a token with scope, issuer and audience', async () => {
    const signer = { algorithm: 'HS256' as const, key: await importSecret(SECRET) };
    const token = await signToken(signer, {
      merchantId: 'm_1',
      merchantClaim: 'shop',
      ttlSeconds: 60,
      scope: 'payments:read audit:read',
      issuer: 'i',
      audience: 'a',
    });
    const settings = { ...sharedSecret, merchantClaims: ['shop'], issuer: 'i', audience: 'a' };
    expect(await authenticated(settings, `Bearer ${token}`)).toMatchObject({
      ok: true,
      principal: { merchantId: 'm_1', scopes: new Set(['payments:read', 'audit:read']) },
    });
  });
});

test.each([
  ['', undefined],
  [' on its connection', {}],
])(
  'gaps §10: a verified token is remembered%s until the second of exp, one that was rejected is not',
  async (_, connection) => {
    const authenticator = await createAuthenticator(sharedSecret);
    const authenticate = (headers: string[]) =>
      authenticator.authenticate(headers, undefined, connection);
    const headersOf = (token: string) => ['Authorization', `Bearer ${token}`];
    const headers = headersOf(await signed(good()));
    const first = authenticate(headers);
    // What is checked by its signature comes as a promise.
    expect(first).toBeInstanceOf(Promise);
    const known = await first;
    for (const again of [headers, headers]) expect(authenticate(again)).toEqual(known);
    const anothers = headersOf(await signed({ ...good(), merchant_id: 'm_2' }));
    expect(await authenticate(anothers)).toMatchObject({ principal: { merchantId: 'm_2' } });
    expect(authenticate(headers)).toEqual(known);
    const atExp = jest.spyOn(Date, 'now').mockReturnValue((now() + 60) * 1000);
    expect(await authenticate(headers)).toEqual({ ok: false, details: EXPIRED });
    atExp.mockRestore();
    const other = headersOf(await signed(good(), 'y'.repeat(32)));
    expect(await authenticate(other)).toMatchObject({ ok: false });
    expect(authenticate(other)).toBeInstanceOf(Promise);
  },
);
