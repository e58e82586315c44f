/** Recognises a repeated request (gaps §8) by keyed hashes; another secret would charge again. */
import { createHmac, createSecretKey } from 'node:crypto';
import { canonicalJson } from '../event-store/codec.ts';
import type { RequestIdentity } from '../payment/fields.ts';
import type { Recognised } from '../payment/state.ts';
import { crockford } from '../runtime/ids.ts';

type OfKey = [merchantId: string, route: string, paymentId: string, key: string];

const ID_CHARACTERS = 26;

const hashesUnder = (secret: string) => {
  const secretKey = createSecretKey(Buffer.from(secret));
  // JSON keeps the parts apart, so that no two lists of parts hash alike.
  const hash = (...parts: unknown[]): Buffer =>
    createHmac('sha256', secretKey).update(JSON.stringify(parts)).digest();
  return {
    paymentIdOf: (merchantId: string, key: string, attempt: number) =>
      `pay_${crockford(hash('payment', merchantId, key, attempt), ID_CHARACTERS)}`,
    /** Derived (gaps §17): after a restore a repeat gets the id that the provider knows. */
    operationIdOf: (...parts: [...OfKey, attempt: number]) =>
      `op_${crockford(hash('operation', ...parts), ID_CHARACTERS)}`,
    keyHashOf: (...parts: OfKey) => hash('key', ...parts).toString('base64url'),
    referenceHashOf: (merchantId: string, reference: string) =>
      hash('reference', merchantId, reference).toString('base64url'),
    /** Over a request's canonical JSON, which must hold neither card number nor CVV. */
    fingerprintOf: (request: object) =>
      hash('request', canonicalJson(request)).toString('base64url'),
    checkValue: () => hash('check').toString('base64url'),
  };
};
export type Identities = ReturnType<typeof hashesUnder> & {
  /** The same under the older secret, while its hashes are still recognised (ADR-0105). */
  previous?: ReturnType<typeof hashesUnder> | undefined;
};

export const recognisedBy = (
  identities: Identities,
  under: (by: Identities) => RequestIdentity,
): Recognised => ({
  identity: under(identities),
  previousIdentity: identities.previous && under(identities.previous),
});

/** Said of a key that stands for another request (gaps §8). */
export const KEY_REUSED = 'the Idempotency-Key was used for another request; use a new key';

export type CreateIds = { paymentId: string; operationId: string };

export const createIdsUnder = (
  by: Identities,
  merchantId: string,
  key: string,
  attempt: number,
): CreateIds => {
  const paymentId = by.paymentIdOf(merchantId, key, attempt);
  const operationId = by.operationIdOf(merchantId, 'create', paymentId, key, attempt);
  return { paymentId, operationId };
};

export const createIdentities = ([secret, previous]: readonly [
  string,
  ...string[],
]): Identities => ({
  ...hashesUnder(secret),
  previous: previous === undefined ? undefined : hashesUnder(previous),
});
