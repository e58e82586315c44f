/**
 * Verifies an export with nothing but the file and its manifest: no server, no access to the store.
 * Every line is checked by its own hash, against the line before it, in its stream and, where the
 * export is complete, in the log; then the whole file is checked against the manifest.
 */
import { createHash } from 'node:crypto';
import type { ExportLine } from '../audit/export-lines.ts';
import type { LogBreak } from '../shared/event-store/verify-log.ts';
import { type SealsFound, sealsCheck } from '../shared/event-store/verify-seals.ts';
import { SEALS_STREAM } from '../shared/payment/seals-stream.ts';
import { exportLines, NOT_A_LINE, NOT_ITS_END } from './export-file.ts';
import { type Manifest, manifestFileOf, readManifestOf } from './export-manifest.ts';
import { requireWholeLog } from './export-seals.ts';
import { lineCheck } from './line-check.ts';

type FileBreak = {
  /** Counted from 1. */
  line: number;
  position?: string;
  stream?: string;
  revision?: number;
  reason: string;
};

/** The result for an export: `events` were intact; `broken` is the first line that is not. */
export type FileVerification = {
  ok: boolean;
  events: number;
  head: Manifest['head'];
  completeness: Manifest['completeness'];
  broken?: FileBreak;
  /** What its seals come to, where the export is of the whole log. */
  sealed?: SealsFound;
};

type Seen = { events: number; bytes: number; sha256: string; chain: string };

/** Checks what the lines alone cannot show: their number, the last one, and the bytes of the file. */
const wholeReason = (seen: Seen, manifest: Manifest): string | undefined => {
  if (seen.events < manifest.count) {
    return `the file ends after this line, with ${seen.events} of ${manifest.count} events`;
  }
  if (seen.events > manifest.count)
    return `the file holds more than the ${manifest.count} exported events`;
  // seeded bug: manifest-chain
  if (seen.chain !== manifest.chain) return NOT_ITS_END;
  if (seen.bytes !== manifest.bytes || seen.sha256 !== manifest.sha256) {
    return 'the bytes of the file are not those that were exported';
  }
  return undefined;
};

const placeOf = (line: number, read: ExportLine | undefined): Omit<FileBreak, 'reason'> => {
  if (read === undefined) return { line };
  const { position, stream, revision } = read;
  return { line, position, stream, revision };
};

/** Checks that the head in the manifest is the last line. */
const headReason = (last: ExportLine | undefined, { head }: Manifest): string | undefined => {
  const same =
    last?.position === head?.position &&
    last?.hash === head?.hash &&
    last?.logHash === head?.logHash;
  return same ? undefined : 'it is not the head that the manifest names';
};

type Scan = Seen & {
  last: ExportLine | undefined;
  sealed: SealsFound;
  /** The first seal, where the trusted key made none of them. */
  untrusted: LogBreak | undefined;
  firstSealLine: number;
  broken?: FileBreak;
};

/** Reads the file and checks its lines, up to the first broken one. */
const scan = async (
  file: string,
  manifest: Manifest,
  publicKey: string | undefined,
): Promise<Scan> => {
  const check = lineCheck(manifest.completeness);
  const seals = sealsCheck({ log: manifest.log, publicKey });
  const sha256 = createHash('sha256');
  let bytes = 0;
  let events = 0;
  let firstSealLine = 0;
  let last: ExportLine | undefined;
  const scanned = (): Scan => ({
    events,
    bytes,
    sha256: sha256.digest('hex'),
    chain: check.chain(),
    last,
    sealed: seals.found(),
    untrusted: seals.missing(),
    firstSealLine,
  });
  const lines = exportLines(file, (chunk) => {
    sha256.update(chunk);
    bytes += chunk.length;
  });
  const reasonOf = (line: ExportLine): string | undefined =>
    check.reasonFor(line) ??
    // A part of a log holds some of its seals, and not what they seal.
    (manifest.completeness === 'log' ? seals.reasonFor(line) : undefined);
  for await (const read of lines) {
    const reason = read === undefined ? NOT_A_LINE : reasonOf(read);
    if (reason !== undefined) {
      return { ...scanned(), broken: { ...placeOf(events + 1, read), reason } };
    }
    events += 1;
    last = read;
    if (firstSealLine === 0 && read?.stream === SEALS_STREAM) firstSealLine = events;
  }
  return scanned();
};

/** Why the file as a whole, or its last line, is not what was exported. */
const endReason = (seen: Scan, manifest: Manifest): string | undefined =>
  // seeded bug: manifest-head
  wholeReason(seen, manifest) ?? headReason(seen.last, manifest);

const breakOfWhole = (seen: Scan, manifest: Manifest): FileBreak | undefined => {
  const reason = endReason(seen, manifest);
  if (reason !== undefined) return { ...placeOf(seen.events, seen.last), reason };
  return seen.untrusted && { line: seen.firstSealLine, ...seen.untrusted };
};

/**
 * Verifies an export; with `publicKey` its seals must lead to or from that key. Throws CommandFailed when
 * the file or its manifest cannot be read, or where a key is named for a part of a log.
 */
export const verifyFile = async (
  file: string,
  manifestFile: string = manifestFileOf(file),
  publicKey?: string,
): Promise<FileVerification> => {
  const manifest = readManifestOf(file, manifestFile);
  const { head, completeness } = manifest;
  requireWholeLog(file, manifest, publicKey);
  const seen = await scan(file, manifest, publicKey);
  const { events, sealed } = seen;
  const broken = seen.broken ?? breakOfWhole(seen, manifest);
  return {
    ok: broken === undefined,
    events,
    head,
    completeness,
    ...(completeness === 'log' ? { sealed } : {}),
    ...(broken === undefined ? {} : { broken }),
  };
};
