/** Seals of the log's head, changes of their key (ADR-0114). Names are stored forms; no read model changes. */
import { z } from 'zod';
import type { EventsOf } from './fields.ts';

export const SEALS_STREAM = 'log-seals';

/** As its store writes it: a number, or two with a slash on EventStoreDB. */
const position = z
  .string()
  .regex(/^[0-9]{1,19}(\/[0-9]{1,19})?$/)
  .describe('Of the last event that is sealed');
const logHash = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .describe('Of the log up to that position; no later log may have another');
/** `SEAL_EVENTS_MAX` when it was made; earlier seals lack it. */
const eventsMax = z.int().min(1).optional().describe('After how many events the next seal is due');
const publicKey = z
  .string()
  .regex(/^[A-Za-z0-9_-]{43}$/)
  .describe('Ed25519, raw, in base64url');
const keyId = z
  .string()
  .regex(/^[0-9a-f]{16}$/)
  .describe('The first 16 hex digits of the SHA-256 of the public key');
const signature = z.string().regex(/^[A-Za-z0-9_-]{86}$/);
const log = z.uuid().describe('The id of the log');

export const sealSchemas = {
  LogSealed: z.strictObject({
    log,
    position,
    logHash,
    eventsMax,
    publicKey,
    keyId,
    signature,
  }),
  /** Sealed by two keys: the old one passes trust on to the new one. */
  SealingKeyRotated: z.strictObject({
    log,
    position,
    logHash,
    eventsMax,
    oldPublicKey: publicKey,
    oldKeyId: keyId,
    newPublicKey: publicKey,
    newKeyId: keyId,
    signature: signature.describe('Of the old key, over all the rest'),
    newSignature: signature.describe('Of the new key, over the same'),
  }),
} as const;

export type SealEvent = EventsOf<typeof sealSchemas>;
