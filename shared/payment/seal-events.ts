/** Seals of the log's head, changes of their key (ADR-0114). Names are stored forms; no read model changes. */
import { z } from 'zod';
import type { EventsOf } from './fields.ts';

export const SEALS_STREAM = 'log-seals';

/** As its store writes it: a number, or two with a slash on EventStoreDB. */
const position = z.string().regex(/^[0-9]{1,19}(\/[0-9]{1,19})?$/);
const logHash = z.string().regex(/^[0-9a-f]{64}$/);
/** `SEAL_EVENTS_MAX` when it was made; earlier seals lack it. */
const eventsMax = z.int().min(1).optional();
const publicKey = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
const keyId = z.string().regex(/^[0-9a-f]{16}$/);
const signature = z.string().regex(/^[A-Za-z0-9_-]{86}$/);

export const sealSchemas = {
  LogSealed: z.strictObject({
    log: z.uuid(),
    /** The last sealed event, and the log hash there, which covers everything up to it. */
    position,
    logHash,
    eventsMax,
    /** Raw Ed25519. */
    publicKey,
    keyId,
    signature,
  }),
  /** Sealed by two keys: the old one passes trust on to the new one. */
  SealingKeyRotated: z.strictObject({
    log: z.uuid(),
    position,
    logHash,
    eventsMax,
    oldPublicKey: publicKey,
    oldKeyId: keyId,
    newPublicKey: publicKey,
    newKeyId: keyId,
    signature,
    newSignature: signature,
  }),
} as const;

export type SealEvent = EventsOf<typeof sealSchemas>;
