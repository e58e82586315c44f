/**
 * The events of the stream of seals: signatures over the head of the log (ADR-0114). Names of types
 * and fields are stored forms. They are of no payment and change no read model.
 */
import { z } from 'zod';

const base64url = (characters: number) =>
  z.string().regex(new RegExp(`^[A-Za-z0-9_-]{${characters}}$`));

/** The schema of each seal's data at its current version; strict, for encoding. */
export const sealSchemas = {
  /** A key signs the log up to a position. */
  LogSealed: z.strictObject({
    /** The id of the log (log-id.ts). */
    log: z.uuid(),
    /** The last event that is sealed, and the log hash there, which covers everything up to it. */
    position: z.string().regex(/^[0-9]{1,16}$/),
    logHash: z.string().regex(/^[0-9a-f]{64}$/),
    /** `SEAL_EVENTS_MAX` when it was made: the next seal is due after so many events. Earlier seals lack it. */
    eventsMax: z.int().min(1).optional(),
    /** The public key, raw Ed25519, and the id that it is known by. */
    publicKey: base64url(43),
    keyId: z.string().regex(/^[0-9a-f]{16}$/),
    signature: base64url(86),
  }),
} as const;

type SealEventType = keyof typeof sealSchemas;
/** The schema version that new seals are stored with (see upcast.ts). */
export const SEAL_VERSIONS: Record<SealEventType, number> = { LogSealed: 1 };

/** One seal, as it is stored. */
export type SealEvent = {
  [T in SealEventType]: { type: T; data: z.infer<(typeof sealSchemas)[T]> };
}[SealEventType];

/** The stream of the seals of a log. */
export const SEALS_STREAM = 'log-seals';
