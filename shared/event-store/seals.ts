/**
 * Makes and checks a seal: an Ed25519 signature over the id of a log, a position, the log hash
 * there, and after how many events the next seal is due. Who has no key can compute every hash of the log anew, and not the seal. Pure.
 */
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { SealEvent } from '../payment/seal-events.ts';

/** What a seal says: this log has this hash at this position. */
export type SealedHead = { log: string; position: string; logHash: string };
/** True where two heads are the same place of the same log. */
export const isSameHead = (one: SealedHead, other: SealedHead): boolean =>
  one.log === other.log && one.position === other.position && one.logHash === other.logHash;

/** The data of a seal as it is stored. */
export type Seal = SealEvent['data'];

type Signed = SealedHead & Pick<Seal, 'eventsMax'>;

const KEY_ID_CHARACTERS = 16;

/** Beyond what the next seal is due after: a busy log grows while a seal is made, and makes one late. */
export const SEAL_SLACK_EVENTS = 10_000;
/** How many events may follow a sealed head before the next seal: twice what it is due after, and a slack. A seal that does not say sets no bound. */
export const unsealedEventsMax = ({ eventsMax }: Pick<Seal, 'eventsMax'>): number =>
  eventsMax === undefined ? Number.POSITIVE_INFINITY : 2 * eventsMax + SEAL_SLACK_EVENTS;

/** What is signed. A change of this text makes every earlier seal wrong: it never changes. */
const signedText = ({ log, position, logHash, eventsMax }: Signed): Buffer =>
  Buffer.from(
    eventsMax === undefined
      ? `payments log seal 1\n${log}\n${position}\n${logHash}\n`
      : `payments log seal 2\n${log}\n${position}\n${logHash}\n${eventsMax}\n`,
  );

/** The raw public key of a private or public Ed25519 key, in base64url. */
export const publicKeyOf = (key: KeyObject): string => {
  const own = key.type === 'private' ? createPublicKey(key) : key;
  return own.export({ format: 'jwk' }).x ?? '';
};

/** The id of a public key: the first 16 hex digits of its SHA-256. */
export const keyIdOf = (publicKey: string): string =>
  createHash('sha256')
    .update(Buffer.from(publicKey, 'base64url'))
    .digest('hex')
    .slice(0, KEY_ID_CHARACTERS);

/** Signs a head, and after how many events the next seal is due. */
export const makeSeal = (privateKey: KeyObject, head: Signed): Seal => {
  const publicKey = publicKeyOf(privateKey);
  const signature = sign(null, signedText(head), privateKey).toString('base64url');
  return { ...head, publicKey, keyId: keyIdOf(publicKey), signature };
};

const isSigned = (seal: Seal): boolean => {
  try {
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: seal.publicKey };
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    return verify(null, signedText(seal), key, Buffer.from(seal.signature, 'base64url'));
  } catch {
    return false;
  }
};

/** What a seal is checked against. */
export type SealedLog = {
  /** The id of the log; undefined where it is not known, as for an exported file. */
  log?: string | undefined;
  /** The public key that is trusted; undefined: the seal proves no more than that one key made it. */
  publicKey?: string | undefined;
  /** The log hash that the log has at the sealed position; undefined where it has no event there. */
  logHash: string | undefined;
};

/** Why a seal does not fit the log; undefined where it does. */
export const sealReason = (seal: Seal, against: SealedLog): string | undefined => {
  if (against.publicKey !== undefined && against.publicKey !== seal.publicKey) {
    return `it was sealed with another key (${seal.keyId}, not ${keyIdOf(against.publicKey)})`;
  }
  if (seal.keyId !== keyIdOf(seal.publicKey)) return 'its key is not the one that its id names';
  // seeded bug: seal-signature
  if (!isSigned(seal)) return 'its signature is not the one of its key';
  if (against.log !== undefined && against.log !== seal.log) return 'it is the seal of another log';
  if (against.logHash === seal.logHash) return undefined;
  return `the log is not the one that was sealed at position ${seal.position}`;
};
