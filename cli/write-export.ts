/** Writes an export while it is received: the file, and its manifest beside it. */
import { createHash } from 'node:crypto';
import { lstatSync, renameSync, rmSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import {
  COMPLETENESS_HEADER,
  type Completeness,
  GUARANTEE_HEADER,
  LOG_HEADER,
  MERCHANT_HEADER,
  readBreakLine,
  readExportLine,
} from '../audit/export-lines.ts';
import {
  breakOfForm,
  judgeBreaks,
  type LogBreaks,
  meetBreaks,
} from '../shared/event-store/breaks.ts';
import { type Manifest, manifestShape } from '../shared/event-store/manifest.ts';
import { replacePrivateFile, syncPath } from '../shared/runtime/private-files.ts';
import { chainAfter, lineCheck, manifestFileOf } from './export-file.ts';
import { CommandFailed } from './output.ts';

type Incoming = { body: AsyncIterable<Uint8Array>; headers: Headers };

/** Undefined where the service cannot. */
type Sign = (manifest: Manifest) => Promise<Manifest['signature']>;

const writeAll = async ({ body, headers }: Incoming, handle: FileHandle) => {
  const sha256 = createHash('sha256');
  const decoder = new TextDecoder();
  const log = headers.get(LOG_HEADER) ?? undefined;
  const { seen, reasonFor } = lineCheck(headers.get(COMPLETENESS_HEADER) as Completeness, { log });
  const { met, note, pass } = meetBreaks();

  /** True for a line of an event. */
  const take = (line: string): boolean => {
    const named = readBreakLine(line);
    if (named !== undefined) {
      // The service names a break right after the event's line, and sees more than the line shows.
      const isKnown = named.position !== '' && met.kept.at(-1)?.position === named.position;
      if (isKnown) met.kept[met.kept.length - 1] = named;
      else note(named);
      return false;
    }
    const read = readExportLine(line);
    if (read === undefined) throw new CommandFailed('the response of the service is not an export');
    const reason = reasonFor(read);
    if (reason === undefined) pass(read);
    else note(breakOfForm(read, reason));
    return true;
  };

  let bytes = 0;
  let rest = '';
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    const kept = lines.filter(take).map((line) => `${line}\n`);
    const taken = Buffer.from(kept.join(''));
    sha256.update(taken);
    bytes += taken.length;
    await handle.writeFile(taken);
  }
  if (rest !== '')
    throw new CommandFailed('the export ended in the middle of a line; start it again');
  return { ...seen, bytes, sha256: sha256.digest('hex'), breaks: met };
};

type Written = Awaited<ReturnType<typeof writeAll>>;

const headOf = ({ last }: Written): Manifest['head'] => {
  if (last === undefined) return null;
  const { position, hash, logHash, stream, revision } = last;
  return { position, stream, revision, hash, ...(logHash === undefined ? {} : { logHash }) };
};

const manifestOf = (written: Written, range: Manifest['range'], headers: Headers): Manifest => {
  const { lines, first, last, bytes, sha256, breaks } = written;
  const log = headers.get(LOG_HEADER);
  const merchant = headers.get(MERCHANT_HEADER);
  const removed = breaks.kept
    .filter(({ position }) => position === '')
    .map(({ stream, revision, reason }) => ({ stream, revision, reason }));
  return manifestShape.parse({
    format: 'payments-export',
    version: 1,
    exportedAt: new Date().toISOString(),
    ...(log !== null && { log }),
    ...(merchant !== null && { merchantId: decodeURIComponent(merchant) }),
    range,
    completeness: headers.get(COMPLETENESS_HEADER),
    guarantee: headers.get(GUARANTEE_HEADER),
    count: lines,
    first: first === undefined ? null : { position: first.position },
    head: headOf(written),
    ...(removed.length > 0 && { removed }),
    chain: chainAfter(last),
    bytes,
    sha256,
  });
};

/** The draft beside the file, so that a part of an export never looks whole. */
const draftOf = (out: string): string => `${out}.part`;

const writeDraft = async (incoming: Incoming, out: string): Promise<Written> => {
  const part = draftOf(out);
  // A draft that a crash left behind would keep its own mode.
  rmSync(part, { force: true });
  const handle = await open(part, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw new CommandFailed(`${out} cannot be written (${error.code}); choose another --out`);
  });
  try {
    const written = await writeAll(incoming, handle);
    await handle.sync();
    return written;
  } catch (error) {
    rmSync(part, { force: true });
    if (error instanceof CommandFailed) throw error;
    throw new CommandFailed(`the export failed (${(error as Error).message}); start it again`);
  } finally {
    await handle.close();
  }
};

/** Gives the breaks too. Throws CommandFailed, and leaves no file, when the export is cut off. */
export const writeExport = async (
  incoming: Incoming,
  out: string,
  range: Manifest['range'],
  sign: Sign = async () => undefined,
): Promise<{ manifest: Manifest; breaks: LogBreaks }> => {
  const written = await writeDraft(incoming, out);
  const unsigned = manifestOf(written, range, incoming.headers);
  const signature = await sign(unsigned);
  const manifest = { ...unsigned, ...(signature && { signature }) };
  // Before the file: after a crash in between there is no export without its kept head.
  await replacePrivateFile(manifestFileOf(out), `${JSON.stringify(manifest, null, 2)}\n`);
  renameSync(draftOf(out), out);
  await syncPath(dirname(out));
  return { manifest, breaks: judgeBreaks(written.breaks) };
};

/** Undefined too where the folder cannot be read: opening the draft then fails, with the reason. */
const thereAt = (file: string): Stats | undefined => {
  try {
    return lstatSync(file);
  } catch {
    return undefined;
  }
};

/** Throws CommandFailed where one exists. Forced, it replaces plain files alone, no /dev/null. */
export const refuseExisting = (out: string, isForced: boolean): void => {
  for (const file of [out, manifestFileOf(out)]) {
    const there = thereAt(file);
    if (there === undefined) continue;
    if (!there.isFile())
      throw new CommandFailed(`${file} is no plain file to be replaced; choose another --out`);
    if (isForced) continue;
    throw new CommandFailed(
      `${file} exists already, and an export replaces nothing; choose another --out, or add --force`,
    );
  }
};
