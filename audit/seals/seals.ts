/**
 * A seal is an Ed25519 signature over a log's id, a position, the log hash there and when the next
 * seal is due: without the key every hash can be computed anew, and not the seal.
 */
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { SealEvent } from '../../shared/payment/seal-events.ts';
import { orElse } from '../../shared/runtime/error-text.ts';

export type SealedHead = { log: string; position: string; logHash: string };
/** Written to the file beside the key: no event of the log holds it. */
type SignedHead = SealedHead & { signature: string };
/** The head of the last seal, and a later one that no seal covers yet. */
export type HeadFile = { sealed?: SealedHead | undefined; last?: SignedHead | undefined };
type DataOf<T extends SealEvent['type']> = Extract<SealEvent, { type: T }>['data'];
export const isSameHead = (one: SealedHead, other: SealedHead): boolean =>
  one.log === other.log && one.position === other.position && one.logHash === other.logHash;

type Seal = DataOf<'LogSealed'>;
type Rotation = DataOf<'SealingKeyRotated'>;

type Signed = SealedHead & Pick<Seal, 'eventsMax'>;
type RotationFacts = Signed & { oldPublicKey: string; newPublicKey: string };

const KEY_ID_CHARACTERS = 16;

/** The log grows while a seal is computed. */
export const SEAL_SLACK_EVENTS = 10_000;
/** Events that may follow a sealed head. A seal that names no `eventsMax` sets no bound. */
export const unsealedEventsMax = ({ eventsMax }: Pick<Seal, 'eventsMax'>): number =>
  eventsMax === undefined ? Number.POSITIVE_INFINITY : 2 * eventsMax + SEAL_SLACK_EVENTS;

/** Wire format. Never change it: every existing seal would become invalid. */
const signedText = ({ log, position, logHash, eventsMax }: Signed): Buffer =>
  Buffer.from(
    eventsMax === undefined
      ? `payments log seal 1\n${log}\n${position}\n${logHash}\n`
      : `payments log seal 2\n${log}\n${position}\n${logHash}\n${eventsMax}\n`,
  );

/** Wire format too. It holds the head, so that it fits one place of one log alone. */
const rotationText = (facts: RotationFacts) => {
  const { log, position, logHash, eventsMax = 'none', oldPublicKey, newPublicKey } = facts;
  return Buffer.from(
    `payments sealing key rotation 1\n${log}\n${position}\n${logHash}\n${eventsMax}\n${oldPublicKey}\n${newPublicKey}\n`,
  );
};

/** Unlike a seal's text: the file beside the key must not yield a seal. */
const headText = ({ log, position, logHash }: SealedHead): Buffer =>
  Buffer.from(`payments log head 1\n${log}\n${position}\n${logHash}\n`);

/** Raw, in base64url. */
export const publicKeyOf = (key: KeyObject): string => {
  const own = key.type === 'private' ? createPublicKey(key) : key;
  return own.export({ format: 'jwk' }).x ?? '';
};

export const keyIdOf = (publicKey: string): string =>
  createHash('sha256')
    .update(Buffer.from(publicKey, 'base64url'))
    .digest('hex')
    .slice(0, KEY_ID_CHARACTERS);

export const makeSeal = (privateKey: KeyObject, head: Signed): Seal => {
  const publicKey = publicKeyOf(privateKey);
  const signature = sign(null, signedText(head), privateKey).toString('base64url');
  return { ...head, publicKey, keyId: keyIdOf(publicKey), signature };
};

/** Signs a head by two keys: trust in the one leads to the other (ADR-0114). */
export const makeRotation = (oldKey: KeyObject, newKey: KeyObject, head: Signed): Rotation => {
  const [oldPublicKey, newPublicKey] = [publicKeyOf(oldKey), publicKeyOf(newKey)];
  const text = rotationText({ ...head, oldPublicKey, newPublicKey });
  return {
    ...head,
    oldPublicKey,
    oldKeyId: keyIdOf(oldPublicKey),
    newPublicKey,
    newKeyId: keyIdOf(newPublicKey),
    signature: sign(null, text, oldKey).toString('base64url'),
    newSignature: sign(null, text, newKey).toString('base64url'),
  };
};

export const isSigned = (text: Buffer, publicKey: string, signature: string): boolean =>
  orElse(false, () => {
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: publicKey };
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    return verify(null, text, key, Buffer.from(signature, 'base64url'));
  });

export const signHead = (privateKey: KeyObject, head: SealedHead): SignedHead => ({
  ...head,
  signature: sign(null, headText(head), privateKey).toString('base64url'),
});

export const isSignedHead = (head: SignedHead, publicKeys: readonly string[]): boolean =>
  publicKeys.some((publicKey) => isSigned(headText(head), publicKey, head.signature));

export type SealedLog = {
  /** Undefined where it is not known, as for an exported file. */
  log?: string | undefined;
  /** Trusted; undefined: the seal proves no more than that one key made it. */
  publicKey?: string | undefined;
  /** Undefined where the log has no event at the sealed position. */
  logHash: string | undefined;
};

export const anotherKey = (publicKey: string, trusted: string): string =>
  `it was sealed with another key (${keyIdOf(publicKey)}, not ${keyIdOf(trusted)})`;

const NOT_ITS_ID = 'its key is not the one that its id names';

const headReason = (head: SealedHead, against: SealedLog): string | undefined => {
  if (against.log !== undefined && against.log !== head.log) return 'it is the seal of another log';
  if (against.logHash === head.logHash) return undefined;
  return `the log is not the one that was sealed at position ${head.position}`;
};

export const sealReason = (seal: Seal, against: SealedLog): string | undefined => {
  const { publicKey: trusted } = against;
  if (trusted !== undefined && trusted !== seal.publicKey)
    return anotherKey(seal.publicKey, trusted);
  if (seal.keyId !== keyIdOf(seal.publicKey)) return NOT_ITS_ID;
  if (!isSigned(signedText(seal), seal.publicKey, seal.signature))
    return 'its signature is not the one of its key';
  return headReason(seal, against);
};

export const rotationReason = (rotation: Rotation, against: SealedLog): string | undefined => {
  const { oldPublicKey, newPublicKey, signature, newSignature } = rotation;
  const { publicKey: trusted } = against;
  if (trusted !== undefined && trusted !== oldPublicKey) return anotherKey(oldPublicKey, trusted);
  if (rotation.oldKeyId !== keyIdOf(oldPublicKey) || rotation.newKeyId !== keyIdOf(newPublicKey))
    return NOT_ITS_ID;
  const text = rotationText(rotation);
  if (!isSigned(text, oldPublicKey, signature)) return 'the new key is not signed by the old one';
  if (!isSigned(text, newPublicKey, newSignature))
    return 'the old key is not signed by the new one';
  return headReason(rotation, against);
};

export const sealEventReason = (event: SealEvent, against: SealedLog): string | undefined =>
  event.type === 'LogSealed'
    ? sealReason(event.data, against)
    : rotationReason(event.data, against);

/** The key that made an event of the stream of seals, and the one whose seals follow it. */
export const keysOf = ({ type, data }: SealEvent): { before: string; after: string } =>
  type === 'LogSealed'
    ? { before: data.publicKey, after: data.publicKey }
    : { before: data.oldPublicKey, after: data.newPublicKey };
