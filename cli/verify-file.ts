/** Verifies an export line by line, and the whole file against its manifest, without a service. */
import { createHash } from 'node:crypto';
import { breakOfForm, judgeBreaks, type LogBreak, meetBreaks } from '../audit/breaks.ts';
import type { ExportLine } from '../audit/export-lines.ts';
import type { Manifest } from '../audit/manifest.ts';
import { SEALS_STREAM } from '../shared/payment/seal-events.ts';
import {
  exportLines,
  lineCheck,
  manifestFileOf,
  NOT_A_LINE,
  readManifestOf,
  signatureReason,
  wholeReason,
} from './export-file.ts';

/** `line` is counted from 1; a removed stream has none. */
type FileBreak = LogBreak & { line?: number };

const breakAtLine = (line: number, read: ExportLine | undefined, reason: string): FileBreak => {
  if (read === undefined) return { line, position: '', stream: '', revision: 0, reason };
  return { line, ...breakOfForm(read, reason) };
};

/** Goes on past every break, up to a line that is not of an export. */
const scan = async (file: string, manifest: Manifest, publicKey: string | undefined) => {
  const { seen, seals, reasonFor } = lineCheck(manifest, { log: manifest.log, publicKey });
  const { met: breaks, note, pass } = meetBreaks<FileBreak>();
  const sha256 = createHash('sha256');
  let [events, bytes, firstSealLine] = [0, 0, 0];
  const lines = exportLines(file, (chunk) => {
    sha256.update(chunk);
    bytes += chunk.length;
  });
  for await (const read of lines) {
    if (read === undefined) {
      note(breakAtLine(seen.lines + 1, read, NOT_A_LINE));
      break;
    }
    const reason = reasonFor(read);
    if (firstSealLine === 0 && read.stream === SEALS_STREAM) firstSealLine = seen.lines;
    if (reason !== undefined) note(breakAtLine(seen.lines, read, reason));
    else {
      events += 1;
      pass(read);
    }
  }
  return {
    ...seen,
    events,
    bytes,
    sha256: sha256.digest('hex'),
    breaks,
    firstSealLine,
    keys: seals.keys(),
    sealed: seals.found(),
    /** The first seal, where the trusted key made none of them. */
    untrusted: seals.missing(),
  };
};

type Scan = Awaited<ReturnType<typeof scan>>;

const breakOfWhole = (seen: Scan, manifest: Manifest): FileBreak | undefined => {
  const notGood = signatureReason(manifest, seen.keys);
  if (notGood !== undefined) return { position: '', stream: '', revision: 0, reason: notGood };
  const reason = wholeReason(seen, manifest);
  if (reason !== undefined) return breakAtLine(seen.lines, seen.last, reason);
  return seen.untrusted && { line: seen.firstSealLine, ...seen.untrusted };
};

/** `publicKey`: the seals must lead to or from it. `events` were intact. Throws CommandFailed for an unreadable file. */
export const verifyFile = async (
  file: string,
  manifestFile: string = manifestFileOf(file),
  publicKey?: string,
) => {
  const manifest = readManifestOf(file, manifestFile);
  const { head, completeness, removed = [], signature } = manifest;
  const seen = await scan(file, manifest, publicKey);
  const { events, sealed } = seen;
  const inLines = judgeBreaks(seen.breaks);
  const ofWhole = inLines.count > 0 ? undefined : breakOfWhole(seen, manifest);
  const ofRemoved = removed.map((one) => ({ position: '', ...one }));
  const breaks = judgeBreaks(seen.breaks, [...(ofWhole ? [ofWhole] : []), ...ofRemoved]);
  const [broken]: readonly FileBreak[] = breaks.named;
  return {
    ok: broken === undefined,
    events,
    head,
    completeness,
    /** False means that an edit of the manifest would go unnoticed. */
    signed: signature !== undefined,
    breaks,
    ...(completeness === 'log' ? { sealed } : {}),
    ...(broken === undefined ? {} : { broken }),
  };
};
