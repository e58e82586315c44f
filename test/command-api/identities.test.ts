/**
 * Keyed hashes are stored: a later version has to compute the same hash for the same request, or a
 * repeat is not recognised and is charged again.
 */
import { createHmac } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { comparableCreate } from '../../command-api/create-payment.ts';
import { createIdentities } from '../../shared/http/idempotency.ts';
import { minor } from '../../shared/payment/transitions.ts';
import { anyCharacter } from '../support/any-character.ts';
import { propertyRuns } from '../support/property-runs.ts';

const SECRET = 'a secret of the tests, 32 bytes or more';
const identities = createIdentities([SECRET]);

const keyed = (...parts: unknown[]): string =>
  createHmac('sha256', SECRET).update(JSON.stringify(parts)).digest('base64url');

/** What a parsed request is made of: integers, whole characters, and fields that may be absent. */
const anyRequest = fc.letrec<{ value: unknown; object: object }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: anyCharacter }),
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.constantFrom(null, undefined),
    fc.array(tie('value').filter((value) => value !== undefined)),
    tie('object'),
  ),
  object: fc.dictionary(fc.string({ unit: anyCharacter }), tie('value'), { noNullPrototype: true }),
})).object;

describe('gaps §8: what a repeat is recognised by', () => {
  test('a fingerprint is over the canonical JSON of the request (RFC 8785)', () => {
    fc.assert(
      fc.property(anyRequest, (request) => {
        expect(identities.fingerprintOf(request)).toBe(keyed('request', canonicalize(request)));
      }),
      { numRuns: propertyRuns(500) },
    );
  });

  test('a create is compared by the canonical JSON of its fields, in whatever order they came', () => {
    const details = {
      source: { storeId: 's', initiatedBy: 'CONSUMER' as const },
      productItems: [
        { unitPrice: 5, quantity: 2, name: 'n', id: 'i', goodsType: 'DIGITAL' as const },
      ],
      merchantReference: 'order "1" é',
      consumer: { lastName: 'l', firstName: 'f', email: 'e@example.com' },
      billing: { address: { zip: '1', street: 's', country: 'US', city: 'c' } },
    };
    const expiry = { expiryYear: '2030', expiryMonth: '12' };
    const card = { number: '4242424242424242', holderName: 'H', ...expiry };
    const masked = { ...expiry, bin: '42424242', last4: '4242', cvvPresentDuringAttempt: false };
    const shown = { card: { ...masked, holderName: 'H' }, numberBrand: undefined };
    const fields = { currency: 'USD', captureNow: true };
    const fingerprintOf = (given: object) => {
      const request = { ...fields, amount: minor(2500), card, details: given };
      return identities.fingerprintOf(comparableCreate(identities, 'm_1', request, shown));
    };
    const comparable = { bin: '42424242', last4: '4242', holderName: 'H', ...expiry, brand: null };
    const compared = { merchantId: 'm_1', ...fields, amount: 2500, details, card: comparable };
    const expected = keyed('request', canonicalize(compared));
    expect(fingerprintOf(details)).toBe(expected);
    const { billing, ...rest } = details;
    expect(fingerprintOf({ billing, ...rest })).toBe(expected);
  });

  test('S5: requests that differ only in the order of fields have one fingerprint, all others differ', () => {
    const request = { amount: 2500, details: { a: 'x', b: [1, 2] }, card: { last4: '4242' } };
    const reordered = { card: { last4: '4242' }, details: { b: [1, 2], a: 'x' }, amount: 2500 };
    expect(identities.fingerprintOf(reordered)).toBe(identities.fingerprintOf(request));
    const other = { ...request, details: { ...request.details, b: [2, 1] } };
    expect(identities.fingerprintOf(other)).not.toBe(identities.fingerprintOf(request));
    const otherSecret = createIdentities([`${SECRET}!`]);
    expect(otherSecret.fingerprintOf(request)).not.toBe(identities.fingerprintOf(request));
  });

  test('ids and hashes of a known request never change', () => {
    expect([
      identities.paymentIdOf('m_1', 'key-1', 1),
      identities.operationIdOf('m_1', 'create', 'pay_1', 'key-1', 1),
      identities.keyHashOf('m_1', 'create', '', 'key-1'),
      identities.referenceHashOf('m_1', 'order-1'),
      identities.fingerprintOf({ route: 'void', paymentId: 'pay_1', amount: null, reason: null }),
    ]).toEqual([
      'pay_YGT6KYE2454P3H5X44FK55288G',
      'op_DVFQW56JH1BBPWGZ12VQ0T5JJ3',
      'rdBxughKdGz_nkVSIQQ6pOg8p-EW-y3NGt6CWPkASOE',
      'RLZEZ-EKz-lnFxhn3WCyQihJeWptLTojYFWU2rHnasc',
      'fJ1k8Uu3b4GT4-_ija3hXcPhAmmDKwEXks8eRuKOtis',
    ]);
  });
});
