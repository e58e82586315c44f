/** A seal signs log id, position, log hash and next due time (Ed25519); plain hashes can be computed anew. */
import { createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';
import { breakAt } from '../../shared/event-store/chain.ts';
import { decode } from '../../shared/event-store/codec.ts';
import type { StoredForm } from '../../shared/event-store/port.ts';
import { isSealEvent } from '../../shared/payment/events.ts';
import { SEALS_STREAM, type SealEvent } from '../../shared/payment/seal-events.ts';
import { orElse } from '../../shared/runtime/error-text.ts';
import { unsealedReason } from '../breaks.ts';
import type { AuditVerification } from '../contract.ts';

export type SealedHead = { log: string; position: string; logHash: string };
/** Written to the file next to the key: no event of the log holds it. */
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
const unsealedEventsMax = ({ eventsMax }: Pick<Seal, 'eventsMax'>): number =>
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

/** Unlike a seal's text: the file next to the key must not yield a seal. */
const headText = ({ log, position, logHash }: SealedHead): Buffer =>
  Buffer.from(`payments log head 1\n${log}\n${position}\n${logHash}\n`);

/** Raw, in base64url. */
export const publicKeyOf = (key: KeyObject): string => {
  const own = key.type === 'private' ? createPublicKey(key) : key;
  return own.export({ format: 'jwk' }).x ?? '';
};

export const keyIdOf = (publicKey: string): string =>
  hash('sha256', Buffer.from(publicKey, 'base64url')).slice(0, KEY_ID_CHARACTERS);

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

export const sealEventReason = (event: SealEvent, against: SealedLog): string | undefined => {
  const { data } = event;
  const { before, after } = keysOf(event);
  const { publicKey: trusted = before } = against;
  if (trusted !== before) return anotherKey(before, trusted);
  if ('keyId' in data) {
    if (data.keyId !== keyIdOf(before)) return NOT_ITS_ID;
    if (!isSigned(signedText(data), before, data.signature))
      return 'its signature is not the one of its key';
    return headReason(data, against);
  }
  if (data.oldKeyId !== keyIdOf(before) || data.newKeyId !== keyIdOf(after)) return NOT_ITS_ID;
  const text = rotationText(data);
  if (!isSigned(text, before, data.signature)) return 'the new key is not signed by the old one';
  if (!isSigned(text, after, data.newSignature)) return 'the old key is not signed by the new one';
  return headReason(data, against);
};

/** The key that made an event of the stream of seals, and the one whose seals follow it. */
export const keysOf = ({ type, data }: SealEvent): { before: string; after: string } =>
  type === 'LogSealed'
    ? { before: data.publicKey, after: data.publicKey }
    : { before: data.oldPublicKey, after: data.newPublicKey };

export type SealsFound = NonNullable<AuditVerification['sealed']>;

type Form = Omit<StoredForm, 'id' | 'logHashBefore'>;

const sealIn = (form: Form): SealEvent | undefined => {
  if (form.stream !== SEALS_STREAM) return undefined;
  const recorded = decode(form);
  return 'event' in recorded && isSealEvent(recorded.event) ? recorded.event : undefined;
};

export type SealsAgainst = Pick<SealedLog, 'log'> & {
  /** Trusted, of any time of the log. */
  publicKey?: string | undefined;
  /** The heads that were kept outside the log before the check began. */
  kept?: HeadFile | undefined;
};

const STRIPPED = 'its seal is not in the log: the seals, or the end of the log, were taken out';
const NOT_KEPT =
  'its log hash is not the one that was kept beside the sealing key: the log was changed after its last seal';
const CUT =
  'the log ends before the head that was kept beside the sealing key: its last events were taken out';
const breakOfSeals = ({ position }: SealedHead, reason: string) =>
  breakAt({ position, stream: SEALS_STREAM, revision: 0 }, reason);

/** Whether the heads that were kept outside the log are met in it. */
const keptHeadsCheck = ({ sealed, last }: HeadFile) => {
  let sealedIsThere = sealed === undefined;
  let lastIsThere = last === undefined;
  return {
    meetSeal: (head: SealedHead): void => {
      sealedIsThere ||= sealed !== undefined && isSameHead(head, sealed);
    },
    reasonFor: ({ position, logHash }: Form): string | undefined => {
      if (position !== last?.position) return undefined;
      lastIsThere = true;
      return logHash === last.logHash ? undefined : NOT_KEPT;
    },
    missing: () => {
      if (!sealedIsThere && sealed !== undefined) return breakOfSeals(sealed, STRIPPED);
      return lastIsThere || last === undefined ? undefined : breakOfSeals(last, CUT);
    },
  };
};

/**
 * Takes every event in order. Each seal covers a place after the seal before it and at most
 * SEAL_SLACK_EVENTS back (ADR-0114): a copy would hide that later ones were taken out.
 */
export const sealsCheck = (against: SealsAgainst) => {
  const recent: { position: string; logHash: string | undefined; nth: number }[] = [];
  let read = 0;
  let seals = 0;
  let last: { seal: SealEvent['data']; key: string; nth: number; sealedNth: number } | undefined;
  /** The gap to the next seal counts from here, also from a misfit; undefined once named. */
  let gapFrom: number | undefined;
  const { publicKey: trusted } = against;
  const kept = keptHeadsCheck(against.kept ?? {});
  const keys = new Set<string>();
  let first: { form: Form; key: string } | undefined;

  const eventsAfter = (): number => (last === undefined ? read : read - last.sealedNth - 1);

  const gapReason = (): string | undefined => {
    if (last === undefined || gapFrom === undefined) return undefined;
    if (read - gapFrom - 1 <= unsealedEventsMax(last.seal)) return undefined;
    gapFrom = undefined;
    return unsealedReason(unsealedEventsMax(last.seal), last.seal.position);
  };

  const reasonOf = (form: Form, event: SealEvent): string | undefined => {
    const { data: seal } = event;
    const { before, after } = keysOf(event);
    const sealed = recent.find(({ position }) => position === seal.position);
    gapFrom = read;
    kept.meetSeal(seal);
    const fit = { log: against.log, publicKey: last?.key, logHash: sealed?.logHash };
    const reason = sealEventReason(event, fit);
    if (reason !== undefined || sealed === undefined) return reason;
    const isCopy = last !== undefined && sealed.nth < last.nth;
    if (isCopy) return 'it seals nothing after the seal before it';
    first ??= { form, key: before };
    keys.add(before).add(after);
    last = { seal, key: after, nth: read, sealedNth: sealed.nth };
    gapFrom = sealed.nth;
    seals += 1;
    return undefined;
  };

  const unknownKey = () => {
    if (first === undefined || trusted === undefined || keys.has(trusted)) return undefined;
    const reason = `${anotherKey(first.key, trusted)}, and no change of the key leads from the one to the other`;
    return breakAt(first.form, reason);
  };

  return {
    found: (): SealsFound => ({
      seals,
      eventsAfter: eventsAfter(),
      ...(last && { position: last.seal.position, keyId: keyIdOf(last.key) }),
      ...(trusted !== undefined && { trustedKeyId: keyIdOf(trusted) }),
    }),
    /** Of the seals, and the trusted one; undefined for none. */
    keys: (): string[] | undefined => {
      const known = trusted === undefined ? [...keys] : [trusted, ...keys];
      return known.length === 0 ? undefined : known;
    },
    reasonFor: (form: Form): string | undefined => {
      read += 1;
      const seal = sealIn(form);
      const reason = seal === undefined ? undefined : reasonOf(form, seal);
      const { position, logHash } = form;
      recent[(read - 1) % SEAL_SLACK_EVENTS] = { position, logHash, nth: read };
      // Always looked at: it notes that the kept head has come.
      const otherThanKept = kept.reasonFor(form);
      return reason ?? gapReason() ?? otherThanKept;
    },
    missing: () => kept.missing() ?? unknownKey(),
  };
};
