/** Verifies an export against its manifest, without a service; kept elsewhere, it shows a cut or rewritten log later. */
import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import {
  breakOfForm,
  judgeBreaks,
  type LogBreak,
  meetBreaks,
  unreadableReason,
} from '../audit/breaks.ts';
import {
  type ExportLine,
  expectedChain,
  LINES_START,
  readExportLine,
} from '../audit/export-lines.ts';
import { hasGoodSignature, type Manifest, manifestShape, NOT_GOOD } from '../audit/manifest.ts';
import { keyIdOf, type SealsAgainst, sealsCheck } from '../audit/seals/seals.ts';
import { sumsOver } from '../audit/walk-log.ts';
import { GENESIS_HASH, hashReason, logReason, streamsCheck } from '../shared/event-store/chain.ts';
import { decode, isReadable, unreadableAt } from '../shared/event-store/codec.ts';
import { isMoment } from '../shared/http/fields.ts';
import { SEALS_STREAM } from '../shared/payment/seal-events.ts';
import { CommandFailed } from './output.ts';
import { requireReadable } from './settings.ts';

export const manifestFileOf = (file: string): string => `${file}.manifest.json`;

/** Throws CommandFailed: exit code 3, because nothing is proven without a manifest; 2 where the export was named. */
export const readManifest = (file: string): Manifest => {
  requireReadable(file);
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

/** Throws CommandFailed as readManifest, and where the export is missing. */
export const readManifestOf = (file: string, manifestFile = manifestFileOf(file)): Manifest => {
  requireReadable(file);
  if (!existsSync(file)) throw new CommandFailed(`${file} does not exist`);
  return readManifest(manifestFile);
};

const LINE_BYTES_MAX = 1024 * 1024;
const NEWLINE = 10;

type OnBytes = (bytes: Buffer) => void;

/** Lines without their breaks; undefined where the break is missing. */
async function* piecesOf(file: string, onBytes: OnBytes): AsyncGenerator<Buffer | undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    onBytes(chunk);
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let from = 0;
    for (let at = rest.indexOf(NEWLINE); at !== -1; at = rest.indexOf(NEWLINE, from)) {
      yield rest.subarray(from, at);
      from = at + 1;
    }
    rest = rest.subarray(from);
    if (rest.length > LINE_BYTES_MAX) break;
  }
  if (rest.length > 0) yield undefined;
}

export const NOT_A_LINE = 'it is not a line of an export';
export const NOT_ITS_CHAIN = 'it was changed, or a line before it is missing, added or swapped';
export const NOT_ITS_END = 'the file does not end as the manifest says';

/** The chain over the lines up to this one; undefined: before the first. */
export const chainAfter = (last: ExportLine | undefined): string => last?.chain ?? LINES_START;

/** The lines of an export; undefined: not one. Throws CommandFailed where it cannot be read. */
export async function* exportLines(
  file: string,
  onBytes: OnBytes = () => undefined,
): AsyncGenerator<ExportLine | undefined> {
  try {
    for await (const piece of piecesOf(file, onBytes))
      yield piece && isUtf8(piece) ? readExportLine(piece.toString('utf8')) : undefined;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CommandFailed(`${file} cannot be read (${code ?? message})`);
  }
}

/** Throws CommandFailed where a key is named, and neither a seal nor a signature is there to check with it. */
export const requireProof = (file: string, key: string | undefined, isProof: boolean): void => {
  if (key !== undefined && !isProof)
    throw new CommandFailed(
      `${file} has no seal and no signed manifest, so ${key} proves nothing about it: they were taken out, or none was made yet`,
    );
};

/** Why the manifest is not the service's, by the trusted key and those of the seals, where one is known. */
export const signatureReason = (manifest: Manifest, publicKeys: readonly string[] | undefined) => {
  const { publicKey } = manifest.signature ?? {};
  if (publicKey === undefined || hasGoodSignature(manifest, publicKeys)) return undefined;
  return `${NOT_GOOD}: it names the key ${keyIdOf(publicKey)}`;
};

const HEAD_FIELDS = ['position', 'stream', 'revision', 'hash', 'logHash'] as const;

type Seen = ReturnType<typeof lineCheck>['seen'] & { bytes: number; sha256: string };

export const wholeReason = (seen: Seen, manifest: Manifest): string | undefined => {
  if (seen.lines < manifest.count)
    return `the file ends after this line, with ${seen.lines} of ${manifest.count} events`;
  if (seen.lines > manifest.count)
    return `the file holds more than the ${manifest.count} exported events`;
  if (chainAfter(seen.last) !== manifest.chain) return NOT_ITS_END;
  if (seen.bytes !== manifest.bytes || seen.sha256 !== manifest.sha256)
    return 'the bytes of the file are not those that were exported';
  const { head } = manifest;
  if (!HEAD_FIELDS.every((field) => seen.last?.[field] === head?.[field]))
    return 'it is not the head that the manifest names';
  if (seen.first?.position !== manifest.first?.position)
    return 'the first line is not the one that the manifest names';
  const { merchantId, range, completeness } = manifest;
  const expected = merchantId === undefined ? 'log' : 'streams';
  if (Object.keys(range).length > 0 || completeness === expected) return undefined;
  // Else an edited manifest would spare a whole log the check of its seals.
  return `the manifest names no range, and says that it is complete as ${completeness}`;
};

type Scope = Pick<Manifest, 'completeness'> & Partial<Pick<Manifest, 'merchantId' | 'range'>>;

/** Of all merchants between positions. Times leave gaps: those of several writers are in no order. */
const isDense = ({ completeness, merchantId, range }: Scope): boolean => {
  if (completeness !== 'range' || merchantId !== undefined || range === undefined) return false;
  return (range.fromTime ?? range.to) === undefined && !isMoment(range.from ?? '');
};

/** Why a line's log hash does not follow that of the event before it, or a whole log not fit its seals. */
export const logCheck = (scope: Scope, against: SealsAgainst) => {
  const seals = sealsCheck(against);
  const isWhole = scope.completeness === 'log';
  const hasEach = isWhole || isDense(scope);
  let [position, logHash]: [string, string | undefined] = ['0', isWhole ? GENESIS_HASH : undefined];
  return {
    seals,
    reasonFor: (line: ExportLine): string | undefined => {
      // SQLite numbers its events. EventStoreDB keeps no log hashes, and a range from a position on has none.
      const isNext = hasEach || Number(line.position) === Number(position) + 1;
      const reason = isNext && logHash !== undefined ? logReason(line, logHash) : undefined;
      ({ position, logHash = isWhole ? '' : undefined } = line);
      const inSeals = isWhole ? seals.reasonFor(line) : undefined;
      return reason ?? inSeals;
    },
  };
};

/** `reasonFor` gives why a line is broken, and goes on after it; `seen` are those that it was given. */
export const lineCheck = (scope: Scope, against: SealsAgainst) => {
  const inStream = streamsCheck(new Map(), scope.completeness === 'range');
  const sums = sumsOver();
  const { seals, reasonFor: reasonInLog } = logCheck(scope, against);
  const seen: { lines: number; first?: ExportLine; last?: ExportLine } = { lines: 0 };

  const reasonInChain = (line: ExportLine): string | undefined => {
    const isNext = line.chain === expectedChain(line, chainAfter(seen.last));
    seen.lines += 1;
    seen.first ??= line;
    seen.last = line;
    return isNext ? undefined : NOT_ITS_CHAIN;
  };

  return {
    seen,
    seals,
    reasonFor: (line: ExportLine): string | undefined => {
      // Each check carries its own end on, so none is left out.
      const reasons = [reasonInChain(line), inStream(line), reasonInLog(line)];
      const changed = hashReason(line) ?? reasons.find((reason) => reason !== undefined);
      const event = changed === undefined ? decode(line) : unreadableAt(line, changed);
      const wrongSum = sums(event);
      if (changed !== undefined || isReadable(event)) return changed ?? wrongSum;
      return unreadableReason(event.unreadable);
    },
  };
};

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
export const verifyFile = async (file: string, manifestFile?: string, publicKey?: string) => {
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
