/** Reads the file of an export line by line, whatever its size. */
import { createReadStream } from 'node:fs';
import { type ExportLine, readExportLine } from '../audit/export-lines.ts';
import { CommandFailed } from './command-failed.ts';

const LINE_BYTES_MAX = 1024 * 1024;
const NEWLINE = 10;

type Piece = { bytes: Buffer; ended: boolean };
type OnBytes = (bytes: Buffer) => void;

/** The lines of a file as bytes without line breaks; `ended` is false where the break is missing. */
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

/** What is wrong with a line that is undefined. */
export const NOT_A_LINE = 'it is not a line of an export';
/** What is wrong with a file whose last line is not the last one that was exported. */
export const NOT_ITS_END = 'the file does not end as the manifest says';

/**
 * The lines of an export in their order, undefined for one that no export has; `onBytes` gets every byte
 * of the file. Throws CommandFailed where the file cannot be read.
 */
export async function* exportLines(
  file: string,
  onBytes: OnBytes = () => undefined,
): AsyncGenerator<ExportLine | undefined> {
  try {
    for await (const piece of piecesOf(file, onBytes)) {
      yield isWhole(piece) ? readExportLine(piece.bytes.toString('utf8')) : undefined;
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CommandFailed(`${file} cannot be read (${code ?? message})`);
  }
}
