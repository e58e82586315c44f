/**
 * Keyed hashes are stored forms: a repeat of today's request has to be recognised by the code of
 * every later year, or it is charged again.
 */
import { createHmac } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { createIdentities } from '../../command-api/idempotency.ts';

const SECRET = 'a secret of the tests, 32 bytes or more';
const identities = createIdentities(SECRET);

const keyed = (...parts: unknown[]): string =>
  createHmac('sha256', SECRET).update(JSON.stringify(parts)).digest('base64url');

/** What a parsed request is made of: integers, whole characters, and fields that may be absent. */
const anyRequest = fc.letrec<{ value: unknown; object: object }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: 'binary' }),
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.constantFrom(null, undefined),
    fc.array(tie('value').filter((value) => value !== undefined)),
    tie('object'),
  ),
  object: fc.dictionary(fc.string({ unit: 'binary' }), tie('value'), { noNullPrototype: true }),
})).object;

describe('gaps §8: what a repeat is recognised by', () => {
  test('a fingerprint is over the canonical JSON of the request (RFC 8785)', () => {
    fc.assert(
      fc.property(anyRequest, (request) => {
        expect(identities.fingerprintOf(request)).toBe(keyed('request', canonicalize(request)));
      }),
      { numRuns: 500 },
    );
  });

  test('requests that differ in the order of fields alone are the same, all others differ', () => {
    const request = { amount: 2500, details: { a: 'x', b: [1, 2] }, card: { last4: '4242' } };
    const turned = { card: { last4: '4242' }, details: { b: [1, 2], a: 'x' }, amount: 2500 };
    expect(identities.fingerprintOf(turned)).toBe(identities.fingerprintOf(request));
    const other = { ...request, details: { ...request.details, b: [2, 1] } };
    expect(identities.fingerprintOf(other)).not.toBe(identities.fingerprintOf(request));
    const elsewhere = createIdentities(`${SECRET}!`);
    expect(elsewhere.fingerprintOf(request)).not.toBe(identities.fingerprintOf(request));
  });

  test('ids and hashes are those that were given before', () => {
    expect([
      identities.paymentIdOf('m_1', 'key-1', 1),
      identities.keyHashOf('m_1', 'create', '', 'key-1'),
      identities.referenceHashOf('m_1', 'order-1'),
      identities.fingerprintOf({ route: 'void', paymentId: 'pay_1', amount: null, reason: null }),
    ]).toEqual([
      'pay_YGT6KYE2454P3H5X44FK55288G',
      'rdBxughKdGz_nkVSIQQ6pOg8p-EW-y3NGt6CWPkASOE',
      'RLZEZ-EKz-lnFxhn3WCyQihJeWptLTojYFWU2rHnasc',
      'fJ1k8Uu3b4GT4-_ija3hXcPhAmmDKwEXks8eRuKOtis',
    ]);
  });
});
