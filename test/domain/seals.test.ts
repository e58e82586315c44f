/** A seal is made by one key over one log, position and log hash, and fits nothing else. */
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { keyIdOf, makeSeal, publicKeyOf, sealReason } from '../../shared/event-store/seals.ts';

const { privateKey } = generateKeyPairSync('ed25519');
const other = generateKeyPairSync('ed25519').privateKey;
const head = { log: crypto.randomUUID(), position: '36', logHash: 'ab'.repeat(32) };
const publicKey = publicKeyOf(privateKey);
const seal = makeSeal(privateKey, head);
const against = { log: head.log, publicKey, logHash: head.logHash };

describe('F15: a seal', () => {
  test('fits the log that it was made of', () => {
    expect(sealReason(seal, against)).toBeUndefined();
    expect(sealReason(seal, { logHash: head.logHash })).toBeUndefined();
    expect(seal.keyId).toBe(keyIdOf(publicKey));
  });

  test.each([
    ['another position', { position: '35' }, 'its signature is not the one of its key'],
    ['another log hash', { logHash: 'cd'.repeat(32) }, 'its signature is not the one of its key'],
    ['another log', { log: crypto.randomUUID() }, 'its signature is not the one of its key'],
    [
      'a signature of nothing',
      { signature: 'A'.repeat(86) },
      'its signature is not the one of its key',
    ],
    ['another key id', { keyId: '0'.repeat(16) }, 'its key is not the one that its id names'],
  ])('changed to %s does not fit', (_, change, reason) => {
    const changed = { ...seal, ...change };
    const { log, logHash } = changed;
    expect(sealReason(changed, { ...against, log, logHash })).toBe(reason);
  });

  test('of another key, of another log, or over another head is told apart', () => {
    expect(sealReason(makeSeal(other, head), against)).toMatch(/^it was sealed with another key/);
    const strange = makeSeal(privateKey, { ...head, log: crypto.randomUUID() });
    expect(sealReason(strange, against)).toBe('it is the seal of another log');
    const gone = { ...against, logHash: undefined };
    expect(sealReason(seal, gone)).toBe('the log is not the one that was sealed at position 36');
  });

  test('that was forged with a public key of no curve does not fit', () => {
    const forged = { ...seal, publicKey: 'A'.repeat(42), keyId: keyIdOf('A'.repeat(42)) };
    expect(sealReason(forged, { logHash: head.logHash })).toBe(
      'its signature is not the one of its key',
    );
  });
});
