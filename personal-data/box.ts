/** Seals a group of personal texts into a box. Wire format: never change it, every stored box would be lost. */
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hash,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import type { PersonalKey } from './port.ts';

export const KEY_BYTES = 32;
const HASH_LENGTH = 32;
const NONCE_BYTES = 12;
/** A call of randomBytes costs as much as the cipher of a box. */
const RANDOM_BYTES = 4096;
const TAG_BYTES = 16;
/** Lengths of names and addresses do not show. */
const PADDED_TO_BYTES = 128;
const CIPHER = 'aes-256-gcm';

/** Nothing was opened. `message` holds neither text nor key. */
export class BoxRefused extends Error {
  /** `FOREIGN_KEY`: not the key that the event names. `BOX_MISMATCH`: moved, changed, or sealed by another key. */
  readonly code: 'FOREIGN_KEY' | 'BOX_MISMATCH';
  override name = 'BoxRefused';
  constructor(code: BoxRefused['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** In an event. `key` is an id. */
export type SealedBox = { box: string; key: string };

/** Where a box lies, as it is authenticated; its revision is bound by the log's chain. */
export type BoxPlace = { stream: string; eventType: string; field: string };

const aadOf = ({ stream, eventType, field }: BoxPlace): string =>
  JSON.stringify(['personal/1', stream, eventType, field]);

let random = Buffer.alloc(0);
/** Each byte is given once. */
const newRandom = (bytes: number): Buffer => {
  if (random.length < bytes) random = randomBytes(RANDOM_BYTES);
  const given = random.subarray(0, bytes);
  random = random.subarray(bytes);
  return given;
};

/** nonce | ciphertext | tag. A KeyObject, because a raw buffer costs twice the time. */
export const encrypt = (key: KeyObject, aad: string, plain: string | Buffer): Buffer => {
  const nonce = newRandom(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(aad));
  const sealed = typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain);
  cipher.final();
  return Buffer.concat([nonce, sealed, cipher.getAuthTag()]);
};

/** Throws Error for bytes that were not made with this key and `aad`. */
export const decrypt = (key: KeyObject, aad: string, bytes: Uint8Array): Buffer => {
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const cipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(aad));
  cipher.setAuthTag(bytes.subarray(Math.max(NONCE_BYTES, bytes.length - TAG_BYTES)));
  const plain = cipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
  cipher.final();
  return plain;
};

const hashOf = (bytes: Buffer): string => {
  const text = `payments/personal-key/1:${bytes.toString('base64url')}`;
  return hash('sha256', text, 'base64url').slice(0, HASH_LENGTH);
};

/** Keys made together are stored together. The oldest comes last, as in a rotation, whose end open.ts checks. */
const newestFirst = (nowMs: number): string =>
  (0xffff_ffff - Math.floor(nowMs / 1000)).toString(16);

/** `bytes`: the raw form of a new key, to be wrapped. */
export const newKeyBytes = (nowMs = Date.now()): { id: string; bytes: Buffer } => {
  const bytes = newRandom(KEY_BYTES);
  return { id: newestFirst(nowMs) + hashOf(bytes), bytes };
};

export const personalKeyOf = (made: { id: string; bytes: Uint8Array }): PersonalKey => {
  const { id, bytes } = made;
  return { id, key: createSecretKey(bytes) };
};

/** `group` is JSON, in the order of stored fields. */
export const sealBox = ({ id, key }: PersonalKey, place: BoxPlace, group: unknown): SealedBox => {
  const json = JSON.stringify(group);
  const over = Buffer.byteLength(json) % PADDED_TO_BYTES;
  const plain = over === 0 ? json : json + ' '.repeat(PADDED_TO_BYTES - over);
  return { box: encrypt(key, aadOf(place), plain).toString('base64url'), key: id };
};

/** The group. Throws BoxRefused. */
export const openBox = (key: KeyObject, place: BoxPlace, { box, key: id }: SealedBox): unknown => {
  // Under one cipher a box opens to different texts by different keys: the id commits to the one.
  if (hashOf(key.export()) !== id.slice(-HASH_LENGTH))
    throw new BoxRefused('FOREIGN_KEY', `its key is not ${id}, which the event names`);
  try {
    return JSON.parse(decrypt(key, aadOf(place), Buffer.from(box, 'base64url')).toString());
  } catch {
    throw new BoxRefused(
      'BOX_MISMATCH',
      `the box was not sealed by key ${id} for ${place.field} of ${place.eventType} in ${place.stream}`,
    );
  }
};
