/**
 * What makes a repeated request recognisable (gaps §8): keyed hashes, so that neither an id
 * nor a fingerprint can be turned back into what it was made from. The secret is the same in every
 * process of one installation; with another one, repeats would be charged again.
 */
import { createHmac, createSecretKey } from 'node:crypto';
import { canonicalJson } from '../shared/runtime/canonical-json.ts';
import { crockford } from '../shared/runtime/ids.ts';

export type Identities = {
  /** The paymentId of the n-th attempt (from 1) under a merchant's key. */
  paymentIdOf(merchantId: string, key: string, attempt: number): string;
  /**
   * The operation id of the n-th attempt (from 1) under a merchant's key (gaps §17): a log that was
   * put back to an older state gives a repeat the id that the provider knows already.
   */
  operationIdOf(
    merchantId: string,
    route: string,
    paymentId: string,
    key: string,
    attempt: number,
  ): string;
  /** The hash under which an operation's key stands in its intent. */
  keyHashOf(merchantId: string, route: string, paymentId: string, key: string): string;
  /** The hash that names the stream of a merchant's reference. */
  referenceHashOf(merchantId: string, reference: string): string;
  /** The hash of a parsed request, by its canonical JSON; it must hold neither card number nor CVV. */
  fingerprintOf(request: object): string;
  /** Stands in the event store; another secret gives another value. */
  checkValue(): string;
  /** The same under the older secret, while its hashes are still recognised (ADR-0105). */
  previous?: Identities;
};

/** The ids that one attempt to create a payment gets. */
export type CreateIds = { paymentId: string; operationId: string };

/** The ids of the n-th attempt (from 1) to create a payment under a merchant's key. */
export const createIdsUnder = (
  by: Identities,
  merchantId: string,
  key: string,
  attempt: number,
): CreateIds => {
  const paymentId = by.paymentIdOf(merchantId, key, attempt);
  return {
    paymentId,
    operationId: by.operationIdOf(merchantId, 'create', paymentId, key, attempt),
  };
};

const ID_CHARACTERS = 26;

/** The first secret makes the hashes of new requests; those of the older one are recognised. */
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
    ...(previous !== undefined && { previous: createIdentities([previous, ...rest]) }),
  };
};
