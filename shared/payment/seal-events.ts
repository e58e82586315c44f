/**
 * The events of the stream of seals: signatures over the head of the log (ADR-0114),
 * and the changes of the key that makes them (ADR-0114). Names of types and fields are stored
 * forms. They are of no payment and change no read model.
 */
import { z } from 'zod';

const base64url = (characters: number) =>
  z.string().regex(new RegExp(`^[A-Za-z0-9_-]{${characters}}$`));

/** As its store writes it: a number, or two with a slash on EventStoreDB. */
const position = z.string().regex(/^[0-9]{1,19}(\/[0-9]{1,19})?$/);
const logHash = z.string().regex(/^[0-9a-f]{64}$/);
/** `SEAL_EVENTS_MAX` when it was made: the next seal is due after so many events. Earlier seals lack it. */
const eventsMax = z.int().min(1).optional();
const publicKey = base64url(43);
const keyId = z.string().regex(/^[0-9a-f]{16}$/);
const signature = base64url(86);

/** The schema of each seal's data at its current version; strict, for encoding. */
export const sealSchemas = {
  /** A key signs the log up to a position. */
  LogSealed: z.strictObject({
    /** The id of the log (log-id.ts). */
    log: z.uuid(),
    /** The last event that is sealed, and the log hash there, which covers everything up to it. */
    position,
    logHash,
    eventsMax,
    /** The public key, raw Ed25519, and the id that it is known by. */
    publicKey,
    keyId,
    signature,
  }),
  /** The log up to a position is sealed by two keys: the old one passes trust on to the new one. */
  SealingKeyRotated: z.strictObject({
    log: z.uuid(),
    position,
    logHash,
    eventsMax,
    oldPublicKey: publicKey,
    oldKeyId: keyId,
    newPublicKey: publicKey,
    newKeyId: keyId,
    /** By the old key, and by the new one, over the same. */
    signature,
    newSignature: signature,
  }),
} as const;

type SealEventType = keyof typeof sealSchemas;
/** The schema version that new seals are stored with (see upcast.ts). */
export const SEAL_VERSIONS: Record<SealEventType, number> = {
  LogSealed: 1,
  SealingKeyRotated: 1,
};

/** One seal, as it is stored. */
export type SealEvent = {
  [T in SealEventType]: { type: T; data: z.infer<(typeof sealSchemas)[T]> };
}[SealEventType];
