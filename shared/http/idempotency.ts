/** Recognises a repeated request (gaps §8) by keyed hashes; another secret would charge again. */
import { createHmac, createSecretKey } from 'node:crypto';
import { canonicalJson } from '../event-store/codec.ts';
import type { RequestIdentity } from '../payment/fields.ts';
import type { Recognised } from '../payment/state.ts';
import { crockford } from '../runtime/ids.ts';

export type Identities = {
  paymentIdOf(merchantId: string, key: string, attempt: number): string;
  /** Derived (gaps §17): after a restore a repeat gets the id that the provider knows. */
  operationIdOf(
    merchantId: string,
    route: string,
    paymentId: string,
    key: string,
    attempt: number,
  ): string;
  keyHashOf(merchantId: string, route: string, paymentId: string, key: string): string;
  referenceHashOf(merchantId: string, reference: string): string;
  /** Over a request's canonical JSON, which must hold neither card number nor CVV. */
  fingerprintOf(request: object): string;
  checkValue(): string;
  /** The same under the older secret, while its hashes are still recognised (ADR-0105). */
  previous?: Identities | undefined;
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

const ID_CHARACTERS = 26;

export const createIdentities = ([secret, ...older]: readonly [
  string,
  ...string[],
]): Identities => {
  const [previous, ...rest] = older;
  const key = createSecretKey(Buffer.from(secret));
  // JSON keeps the parts apart, so that no two lists of parts hash alike.
  const hash = (...parts: unknown[]): Buffer =>
    createHmac('sha256', key).update(JSON.stringify(parts)).digest();
  return {
    paymentIdOf: (merchantId, idempotencyKey, attempt) =>
      `pay_${crockford(hash('payment', merchantId, idempotencyKey, attempt), ID_CHARACTERS)}`,
    operationIdOf: (merchantId, route, paymentId, idempotencyKey, attempt) =>
      `op_${crockford(hash('operation', merchantId, route, paymentId, idempotencyKey, attempt), ID_CHARACTERS)}`,
    keyHashOf: (merchantId, route, paymentId, idempotencyKey) =>
      hash('key', merchantId, route, paymentId, idempotencyKey).toString('base64url'),
    referenceHashOf: (merchantId, reference) =>
      hash('reference', merchantId, reference).toString('base64url'),
    fingerprintOf: (request) => hash('request', canonicalJson(request)).toString('base64url'),
    checkValue: () => hash('check').toString('base64url'),
    previous: previous === undefined ? undefined : createIdentities([previous, ...rest]),
  };
};
