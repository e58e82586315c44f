/**
 * The manifest beside an export: its range, count and head, and the hash of the file. A manifest that
 * is kept elsewhere shows later that the end of the log was cut off, or the whole log rewritten.
 */
import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { CommandFailed } from './command-failed.ts';

const hash = z.string().regex(/^[0-9a-f]{64}$/);

/** The JSON form of a manifest, version 1 (docs/audit.md). */
export const manifestShape = z.strictObject({
  format: z.literal('payments-export'),
  version: z.literal(1),
  exportedAt: z.string(),
  /** The id of the exported log; left out by earlier versions. */
  log: z.string().optional(),
  /** The one merchant whose events were exported; left out where they are everybody's. */
  merchantId: z.string().optional(),
  range: z.strictObject({
    paymentId: z.string().optional(),
    from: z.string().optional(),
    to: z.string().optional(),
  }),
  /** What the export holds completely; a `range` may begin in the middle of a stream. */
  completeness: z.enum(['log', 'streams', 'range']),
  guarantee: z.enum(['log', 'sealed', 'stream']),
  count: z.int().min(0),
  first: z.strictObject({ position: z.string() }).nullable(),
  head: z
    .strictObject({
      position: z.string(),
      stream: z.string(),
      revision: z.int(),
      /** Empty where the last event is none of this service. */
      hash: hash.or(z.literal('')),
      logHash: hash.optional(),
    })
    .nullable(),
  /** Streams that the store no longer held whole when they were exported; left out where there are none. */
  removed: z
    .array(z.strictObject({ stream: z.string(), revision: z.int(), reason: z.string() }))
    .optional(),
  /** The chain value of the last line. */
  chain: hash,
  bytes: z.int().min(0),
  sha256: hash,
});
/** A manifest that has been read and checked. */
export type Manifest = z.infer<typeof manifestShape>;

/** The path of the manifest of an export. */
export const manifestFileOf = (file: string): string => `${file}.manifest.json`;

/**
 * Reads a manifest. Throws CommandFailed with exit code 3, because nothing is proven without one; with
 * exit code 2 where the export was named in its place.
 */
export const readManifest = (file: string): Manifest => {
  try {
    return manifestShape.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    const own = manifestFileOf(file);
    if (existsSync(own)) throw new CommandFailed(`${file} is no manifest; name ${own}`, 2);
    const why = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'is missing' : 'is damaged';
    throw new CommandFailed(
      `${file} ${why}: without the manifest a cut end cannot be seen; restore it from your copy, or export again: payments export --out`,
      3,
    );
  }
};

/** Reads the manifest of an export. Throws CommandFailed as readManifest does, and where the export is missing. */
export const readManifestOf = (file: string, manifestFile = manifestFileOf(file)): Manifest => {
  if (!existsSync(file)) throw new CommandFailed(`${file} does not exist`);
  return readManifest(manifestFile);
};
