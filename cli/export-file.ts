/** Reads an export and its manifest, which kept elsewhere shows a cut or rewritten log later. */
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import {
  type Completeness,
  type ExportLine,
  expectedChain,
  LINES_START,
  readExportLine,
} from '../audit/export-lines.ts';
import { unreadableReason } from '../shared/event-store/breaks.ts';
import { GENESIS_HASH, hashReason, logReason, streamsCheck } from '../shared/event-store/chain.ts';
import { decode, isReadable, unreadableAt } from '../shared/event-store/codec.ts';
import { type Manifest, manifestShape } from '../shared/event-store/manifest.ts';
import { sumsOver } from '../shared/event-store/verify-log.ts';
import { type SealsAgainst, sealsCheck } from '../shared/event-store/verify-seals.ts';
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

type Piece = { bytes: Buffer; ended: boolean };
type OnBytes = (bytes: Buffer) => void;

/** Lines without their breaks; `ended` is false where the break is missing. */
async function* piecesOf(file: string, onBytes: OnBytes): AsyncGenerator<Piece> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    onBytes(chunk);
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let from = 0;
    for (let at = rest.indexOf(NEWLINE); at !== -1; at = rest.indexOf(NEWLINE, from)) {
      yield { bytes: rest.subarray(from, at), ended: true };
      from = at + 1;
    }
    rest = rest.subarray(from);
    if (rest.length > LINE_BYTES_MAX) break;
  }
  if (rest.length > 0) yield { bytes: rest, ended: false };
}

const isWhole = ({ bytes, ended }: Piece): boolean =>
  ended && Buffer.from(bytes.toString('utf8')).equals(bytes);

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
      yield isWhole(piece) ? readExportLine(piece.bytes.toString('utf8')) : undefined;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CommandFailed(`${file} cannot be read (${code ?? message})`);
  }
}

/** Throws CommandFailed where a key is named for a part of a log, whose seals seal more than is in it. */
export const requireWholeLog = (
  file: string,
  { completeness }: Pick<Manifest, 'completeness'>,
  key: string | undefined,
): void => {
  if (key === undefined || completeness === 'log') return;
  throw new CommandFailed(
    `${file} is no export of the whole log, and seals are of the whole log: leave out --key, or export without a range and for all merchants`,
  );
};

/** Throws CommandFailed where a key is named and there is no seal to check with it. */
export const requireSeals = (file: string, key: string | undefined, seals: number): void => {
  if (key !== undefined && seals === 0)
    throw new CommandFailed(
      `${file} has no seal, so ${key} proves nothing about it: its seals were taken out, or none was made yet`,
    );
};

/** Why a line's log hash does not follow, or does not fit the seals. For whole logs alone. */
export const wholeLogCheck = (completeness: Completeness, against: SealsAgainst) => {
  const seals = sealsCheck(against);
  let logHash = GENESIS_HASH;
  const reasonFor = (line: ExportLine): string | undefined => {
    if (completeness !== 'log') return undefined;
    const reason = logReason(line, logHash);
    const inSeals = seals.reasonFor(line);
    logHash = line.logHash ?? '';
    return reason ?? inSeals;
  };
  return { seals, reasonFor };
};

/** `reasonFor` gives why a line is broken, and goes on after it; `seen` are those that it was given. */
export const lineCheck = (completeness: Completeness, against: SealsAgainst) => {
  const inStream = streamsCheck(new Map(), completeness === 'range');
  const sums = sumsOver();
  const { seals, reasonFor: reasonInLog } = wholeLogCheck(completeness, against);
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
