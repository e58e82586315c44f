/** Writes an export while it is received: the file, and its manifest beside it. */
import { createHash } from 'node:crypto';
import { renameSync, rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import {
  COMPLETENESS_HEADER,
  type ExportLine,
  GUARANTEE_HEADER,
  LINES_START,
  LOG_HEADER,
  MERCHANT_HEADER,
  readExportLine,
} from '../audit/export-lines.ts';
import { replacePrivateFile } from '../shared/runtime/private-files.ts';
import { CommandFailed } from './command-failed.ts';
import { type Manifest, manifestFileOf, manifestShape } from './export-manifest.ts';

type Written = {
  count: number;
  bytes: number;
  sha256: string;
  first?: ExportLine;
  last?: ExportLine;
};

const writeAll = async (body: AsyncIterable<Uint8Array>, handle: FileHandle): Promise<Written> => {
  const sha256 = createHash('sha256');
  const decoder = new TextDecoder();
  const written: Written = { count: 0, bytes: 0, sha256: '' };
  let rest = '';
  for await (const chunk of body) {
    sha256.update(chunk);
    written.bytes += chunk.length;
    await handle.writeFile(chunk);
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) takeLine(written, line);
  }
  if (rest !== '')
    throw new CommandFailed('the export ended in the middle of a line; start it again');
  return { ...written, sha256: sha256.digest('hex') };
};

const takeLine = (written: Written, line: string): void => {
  const read = readExportLine(line);
  if (read === undefined) throw new CommandFailed('the response of the service is not an export');
  written.count += 1;
  written.first ??= read;
  written.last = read;
};

const headOf = ({ last }: Written): Manifest['head'] => {
  if (last === undefined) return null;
  const { position, hash, logHash, text } = last;
  const { stream, revision } = Object(JSON.parse(text));
  return { position, stream, revision, hash, ...(logHash === undefined ? {} : { logHash }) };
};

const scopeOf = (headers: Headers): Pick<Manifest, 'log' | 'merchantId'> => {
  const log = headers.get(LOG_HEADER);
  const merchant = headers.get(MERCHANT_HEADER);
  return {
    ...(log === null ? {} : { log }),
    ...(merchant === null ? {} : { merchantId: decodeURIComponent(merchant) }),
  };
};

const manifestOf = (written: Written, range: Manifest['range'], headers: Headers): Manifest =>
  manifestShape.parse({
    format: 'payments-export',
    version: 1,
    exportedAt: new Date().toISOString(),
    ...scopeOf(headers),
    range,
    completeness: headers.get(COMPLETENESS_HEADER),
    guarantee: headers.get(GUARANTEE_HEADER),
    count: written.count,
    first: written.first === undefined ? null : { position: written.first.position },
    head: headOf(written),
    chain: written.last?.chain ?? LINES_START,
    bytes: written.bytes,
    sha256: written.sha256,
  });

/** Writes to a draft beside the file first, so that a part of an export never looks whole. */
const writeLines = async (body: AsyncIterable<Uint8Array>, out: string): Promise<Written> => {
  const part = `${out}.part`;
  // A draft that a crash left behind would keep its own mode.
  rmSync(part, { force: true });
  const handle = await open(part, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw new CommandFailed(`${out} cannot be written (${error.code}); choose another --out`);
  });
  try {
    const written = await writeAll(body, handle);
    await handle.sync();
    renameSync(part, out);
    return written;
  } catch (error) {
    rmSync(part, { force: true });
    if (error instanceof CommandFailed) throw error;
    throw new CommandFailed(`the export failed (${(error as Error).message}); start it again`);
  } finally {
    await handle.close();
  }
};

/** The response that holds an export: its body and headers. */
type Incoming = { body: AsyncIterable<Uint8Array>; headers: Headers };

/** Writes file and manifest. Throws CommandFailed, and leaves no file, when the export is cut off. */
export const writeExport = async (
  { body, headers }: Incoming,
  out: string,
  range: Manifest['range'],
): Promise<Manifest> => {
  const manifest = manifestOf(await writeLines(body, out), range, headers);
  await replacePrivateFile(manifestFileOf(out), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
};
