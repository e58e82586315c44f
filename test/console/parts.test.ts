/** The parts of the console that need no browser. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { JWTPayload } from 'jose';
import { breakLine, exportLine, LINES_START } from '../../audit/export-lines.ts';
import { followToResult } from '../../console/app/api.js';
import { cardNumberIn, duration, minorOf, money, pathOf } from '../../console/app/format.js';
import { KEPT_MAX, LIVE_START, liveAfter } from '../../console/app/live-events.js';
import { exportFiles } from '../../console/app/pages/payment.js';
import { headOf } from '../../console/app/pages/verify.js';
import { placeOf } from '../../console/app/router.js';
import { claimsOf, tokenMayUse } from '../../console/app/session.js';
import { mayUse as mayUseByService } from '../../shared/http/auth/tokens.ts';
import { principalOf, SCOPES } from '../../shared/http/request.ts';
import { holdsKnownCard } from '../../shared/runtime/card-numbers.ts';
import { CLOTHES, SEPARATED } from '../support/card-clothes.ts';
import { httpServer } from '../support/faulty-server.ts';
import { propertyRuns } from '../support/property-runs.ts';

describe('amounts and times', () => {
  test.each([
    ['5', 500],
    ['5.00', 500],
    ['0,5', 50],
    ['12.34', 1234],
    [' 7.1 ', 710],
    ['5.001', undefined],
    ['-5', undefined],
    ['', undefined],
    ['1e3', undefined],
  ])('%p typed is %p minor units', (typed, minor) => {
    expect(minorOf(typed)).toBe(minor);
  });

  test('minor units are shown as the command line shows them', () => {
    expect([money(1500, 'USD'), money(5, 'USD')]).toEqual(['15.00 USD', '0.05 USD']);
  });

  test.each([
    [12, '12 ms'],
    [1_500, '1.5 s'],
    [125_000, '2 min 5 s'],
    [3_600_000, '1 h'],
    [100_000_000, '1 d 3 h'],
  ])('%p ms is %p', (ms, text) => {
    expect(duration(ms)).toBe(text);
  });
});

describe('a card number is known before it can leave the browser', () => {
  test.each(CLOTHES)('%s', (_name, dress) => {
    expect(cardNumberIn(`order 7: ${dress('4012888888881881')}!`)).toBe('4012888888881881');
  });

  test.each(SEPARATED)('not with %s between its digits', (_name, dress) => {
    expect(cardNumberIn(dress('4012888888881881'))).toBeUndefined();
  });

  test.each(['4242', 'pay_01M8GN6ZEHE3FBF1JX983AF7Y2', 'order-20261125', '4242424242424243'])(
    '%s may be searched',
    (text) => {
      expect(cardNumberIn(text)).toBeUndefined();
    },
  );

  test('wherever the service finds one', () => {
    const digits = fc.stringMatching(/^[1-9][0-9]{11,18}$/);
    fc.assert(
      fc.property(digits, fc.nat(9), (text, last) => {
        const number = `${text.slice(0, -1)}${last}`;
        if (holdsKnownCard(number)) expect(cardNumberIn(number)).toBe(number);
      }),
      { numRuns: propertyRuns(5000) },
    );
  });
});

test('an address names its page, its subject and its revision', () => {
  const place = placeOf({ pathname: '/console/payments/pay_1', search: '?revision=3' });
  expect([place.page, place.id, place.query.get('revision')]).toEqual(['payments', 'pay_1', '3']);
  expect(placeOf({ pathname: '/console', search: '' })).toMatchObject({ page: '', id: undefined });
  expect(pathOf('/x', { a: 'b&c', none: '', gone: undefined, zero: 0 })).toBe('/x?a=b%26c&zero=0');
});

describe('what a token says of itself (gaps §10)', () => {
  const CLAIMS = ['shop', 'merchant_id', 'client_id', 'sub'];
  const tokenOf = (payload: object | null) =>
    `x.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.x`;

  test.each<JWTPayload>([
    { merchant_id: 'm_ü', sub: 'ann', scope: 'audit:read ops:admin' },
    { merchant_id: 'm_1', sub: 'ann' },
    { merchant_id: 'm_1', scope: '' },
    { merchant_id: 'm_1', scope: ['payments:read', 'audit:read'] },
    { merchant_id: '*', sub: '' },
    { merchant_id: '*', sub: 'ann', scope: 'payments:read ops:resolve' },
    { client_id: 'm_2', sub: 'u\u0308' },
    { shop: 'm_3', merchant_id: 'm_4', scope: 'payments:write webhooks:write' },
    { sub: 'm_5' },
  ])('%j is read as the service reads it', (payload) => {
    const claims = claimsOf(tokenOf(payload), CLAIMS);
    const principal = principalOf(payload, CLAIMS);
    if (claims === undefined || principal === undefined) throw new Error('it is a token');
    expect([claims.merchant, claims.actor]).toEqual([principal.merchantId, principal.actor]);
    expect(SCOPES.filter((scope) => tokenMayUse(claims, scope))).toEqual(
      SCOPES.filter((scope) => mayUseByService(principal, scope)),
    );
  });

  test('it is a token, and the service says what is wrong with it, where nothing names a merchant', () => {
    expect(claimsOf(tokenOf({ exp: 10 }), CLAIMS)).toEqual({
      merchant: undefined,
      actor: '',
      scopes: undefined,
      expiresAtMs: 10_000,
    });
  });

  test('an end that no calendar has is not shown', () => {
    expect(claimsOf(tokenOf({ sub: 'm_1', exp: 1e15 }), CLAIMS)?.expiresAtMs).toBeUndefined();
  });

  test.each(['', 'a.b.c', 'no token', tokenOf(null)])('%j is none', (text) => {
    expect(claimsOf(text, CLAIMS)).toBeUndefined();
  });
});

describe('the live list', () => {
  const event = (position: number) => ({ position: String(position), unreadable: 'x' }) as never;

  test('given more events than are kept, then the oldest are left out and all are counted', () => {
    const events = Array.from({ length: KEPT_MAX + 5 }, (_, at) => event(at));
    const state = liveAfter(LIVE_START, { kind: 'events', events });
    expect([state.shown.length, state.seen]).toEqual([KEPT_MAX, KEPT_MAX + 5]);
  });
});

describe('files', () => {
  const hash = 'a'.repeat(64);

  test('the head of a manifest, and nothing of another file', () => {
    const manifest = { head: { position: '7', hash, logHash: 'b'.repeat(64) } };
    expect(headOf(JSON.stringify(manifest))).toEqual({ position: '7', hash: 'b'.repeat(64) });
    for (const text of ['', '{}', '{"head":null}', '{"head":{"position":"7","hash":"x"}}']) {
      expect(() => headOf(text)).toThrow();
    }
  });

  const form = { position: '7', stream: 'payment-pay_1', revision: 0, hash, text: '{"a":"ü"}' };
  const line = `${exportLine(form, LINES_START).line}\n`;
  const broken = `${breakLine({ ...form, reason: 'its text does not have its hash' })}\n`;
  const last = `{"manifest":{"bytes":${Buffer.byteLength(line)}}}\n`;
  const filesOf = (text: string) => exportFiles(new TextEncoder().encode(text));

  test('the line that names a break is in neither file, and all events are', () => {
    const { bytes, manifest } = filesOf(line + broken + last) ?? {};
    expect(new TextDecoder().decode(bytes)).toBe(line);
    expect(JSON.parse(manifest ?? '')).toEqual({ bytes: Buffer.byteLength(line) });
  });

  test.each([
    ['no manifest', line + broken],
    ['a part of the manifest', (line + last).slice(0, -1)],
    ['fewer events than the manifest names', last],
    ['nothing', ''],
  ])('gaps §25: no file is made of an export that has %s: it was cut off', (_what, text) => {
    expect(filesOf(text)).toBeUndefined();
  });
});

test.each([
  ['event: progress\ndata: {}\n\n', 'UNREACHABLE'],
  ['event: result\ndata: {}\n\n', undefined],
  ['event: failed\ndata: {}\n\n', undefined],
])('a stream that ends by itself after %j has the problem %s', async (text, code) => {
  const { url, close } = await httpServer((_request, response) => response.end(text));
  const { signal } = new AbortController();
  const problem = await followToResult(url, { signal, onEvent: () => undefined });
  await close();
  expect(problem?.code).toBe(code);
});
