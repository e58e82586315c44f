/**
 * What makes a repeated request recognisable (gaps §8): keyed hashes, so that neither an id
 * nor a fingerprint can be turned back into what it was made from. The secret is the same in every
 * process of one installation; with another one, repeats would be charged again.
 */
import { createHmac, createSecretKey } from 'node:crypto';
import { configure } from 'safe-stable-stringify';

export type Identities = {
  /** The paymentId of the n-th attempt (from 1) under a merchant's key. */
  paymentIdOf(merchantId: string, key: string, attempt: number): string;
  /** The hash under which an operation's key stands in its intent. */
  keyHashOf(merchantId: string, route: string, paymentId: string, key: string): string;
  /** The hash that names the stream of a merchant's reference. */
  referenceHashOf(merchantId: string, reference: string): string;
  /** The hash of a parsed request; it must hold neither card number nor CVV. */
  fingerprintOf(request: object): string;
  /** Stands in the event store; another secret gives another value. */
  checkValue(): string;
};

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const ID_CHARACTERS = 26;

/** 26 characters of 5 bits each, from the first bytes of a digest. */
const crockford = (digest: Buffer): string => {
  let text = '';
  let bits = 0;
  let count = 0;
  for (const byte of digest) {
    bits = (bits << 8) | byte;
    count += 8;
    while (count >= 5 && text.length < ID_CHARACTERS) {
      count -= 5;
      text += CROCKFORD[(bits >> count) & 31];
    }
    bits &= (1 << count) - 1;
  }
  return text;
};

/**
 * What RFC 8785 asks for, as long as no text has half of a pair of surrogates, which no parsed
 * request has: at a third of the price of the library that the events are written with.
 */
const canonicalText = configure({ strict: true });

export const createIdentities = (secret: string): Identities => {
  const key = createSecretKey(Buffer.from(secret));
  // The parts are told apart by JSON, so that no two lists of them hash alike.
  const hash = (...parts: unknown[]): Buffer =>
    createHmac('sha256', key).update(JSON.stringify(parts)).digest();
  return {
    // seeded bug: key-scope
    paymentIdOf: (merchantId, idempotencyKey, attempt) =>
      `pay_${crockford(hash('payment', merchantId, idempotencyKey, attempt))}`,
    keyHashOf: (merchantId, route, paymentId, idempotencyKey) =>
      hash('key', merchantId, route, paymentId, idempotencyKey).toString('base64url'),
    referenceHashOf: (merchantId, reference) =>
      hash('reference', merchantId, reference).toString('base64url'),
    fingerprintOf: (request) => hash('request', canonicalText(request)).toString('base64url'),
    checkValue: () => hash('check').toString('base64url'),
  };
};
