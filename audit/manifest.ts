/** The manifest of an export: kept elsewhere, it shows later that the log was cut or rewritten. */
import { type KeyObject, sign } from 'node:crypto';
import { z } from 'zod';
import { canonicalJson } from '../shared/event-store/codec.ts';
import { isSigned, publicKeyOf } from './seals/seals.ts';

const hash = z.string().regex(/^[0-9a-f]{64}$/);

export const manifestShape = z.strictObject({
  format: z.literal('payments-export'),
  version: z.literal(1),
  exportedAt: z.string(),
  /** The log's id; left out by earlier versions. */
  log: z.string().optional(),
  /** Left out in an export for all merchants. */
  merchantId: z.string().optional(),
  range: z.strictObject({
    paymentId: z.string().optional(),
    /** A position, or else a time. */
    from: z.string().optional(),
    /** Next to a position. */
    fromTime: z.string().optional(),
    to: z.string().optional(),
    limit: z.int().optional(),
  }),
  /** A `range` may begin in the middle of a stream. */
  completeness: z.enum(['log', 'streams', 'range']),
  guarantee: z.enum(['log', 'sealed', 'stream']),
  count: z.int().min(0),
  first: z.strictObject({ position: z.string() }).nullable(),
  head: z
    .strictObject({
      position: z.string(),
      stream: z.string(),
      revision: z.int(),
      /** Empty where the last event is not of this service. */
      hash: hash.or(z.literal('')),
      logHash: hash.optional(),
    })
    .nullable(),
  /** Streams that the store no longer held whole, and where the log could not be read on; left out for none. */
  removed: z
    .array(z.strictObject({ stream: z.string(), revision: z.int(), reason: z.string() }))
    .optional(),
  chain: hash,
  bytes: z.int().min(0),
  sha256: hash,
  /** By the sealing key, over all other fields; left out where the service had none (gaps §25). Both are in base64url. */
  signature: z.strictObject({ publicKey: z.string(), value: z.string() }).optional(),
});
export type Manifest = z.infer<typeof manifestShape>;

/** Wire format. Never change it: every signature made before would be wrong. */
const signedText = ({ signature: _, ...fields }: Manifest): Buffer =>
  Buffer.from(`payments export manifest 1\n${canonicalJson(fields)}\n`);

export const signatureOf = (
  privateKey: KeyObject,
  manifest: Manifest,
): NonNullable<Manifest['signature']> => ({
  publicKey: publicKeyOf(privateKey),
  value: sign(null, signedText(manifest), privateKey).toString('base64url'),
});

/** `publicKeys`: the trusted ones; undefined where none is known, and any key may have made it. */
export const hasGoodSignature = (
  manifest: Manifest,
  publicKeys: readonly string[] | undefined,
): boolean => {
  const { publicKey = '', value = '' } = manifest.signature ?? {};
  const isKnown = publicKeys === undefined || publicKeys.includes(publicKey);
  return isKnown && isSigned(signedText(manifest), publicKey, value);
};

export const NOT_GOOD = "the manifest's signature is not good";
