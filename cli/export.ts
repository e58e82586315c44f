/** `payments export`: events as they are stored, one a line, written while they are received, and a manifest next to them. */
import { createHash } from 'node:crypto';
import { lstatSync, renameSync, rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { breakOfForm, judgeBreaks, meetBreaks } from '../audit/breaks.ts';
import {
  COMPLETENESS_HEADER,
  type Completeness,
  LOG_HEADER,
  readBreakLine,
  readExportLine,
  readManifestLine,
} from '../audit/export-lines.ts';
import type { Manifest } from '../audit/manifest.ts';
import { isMoment } from '../shared/http/fields.ts';
import { orElse } from '../shared/runtime/error-text.ts';
import { replacePrivateFile, syncPath } from '../shared/runtime/private-files.ts';
import { auditClient, auditPath } from './audit.ts';
import { failOnBreaks, headText } from './breaks.ts';
import { orFail } from './client.ts';
import { lineCheck, manifestFileOf, wholeReason } from './export-file.ts';
import { dataOption, formatted, type Given, timeOrPosition, timeValue } from './options.ts';
import { CommandFailed, count, failOnMisfit, note, print, printJson } from './output.ts';

type Incoming = { body: AsyncIterable<Uint8Array>; headers: Headers };

/** Writes the lines of events alone; the last line of the response is the manifest. */
const writeAll = async ({ body, headers }: Incoming, handle: FileHandle) => {
  const sha256 = createHash('sha256');
  const decoder = new TextDecoder();
  const log = headers.get(LOG_HEADER) ?? undefined;
  const completeness = headers.get(COMPLETENESS_HEADER) as Completeness;
  const { seen, reasonFor } = lineCheck({ completeness }, { log });
  const { met, note, pass } = meetBreaks();
  let manifest: Manifest | undefined;

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
    if (read === undefined || manifest !== undefined) {
      const last = manifest === undefined ? readManifestLine(line) : undefined;
      if (last === undefined)
        throw new CommandFailed('the response of the service is not an export');
      manifest = last;
      return false;
    }
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
  if (manifest === undefined || rest !== '')
    throw new CommandFailed('the export was cut off before its manifest; start it again');
  const misfit = wholeReason({ ...seen, bytes, sha256: sha256.digest('hex') }, manifest);
  if (misfit !== undefined)
    throw new CommandFailed(`what arrived is not what was exported: ${misfit}; start it again`);
  return { manifest, breaks: met };
};

/** The draft, under another name, so that a part of an export never looks whole. */
const draftOf = (out: string): string => `${out}.part`;

const writeDraft = async (incoming: Incoming, out: string) => {
  const part = draftOf(out);
  // A draft that a crash left behind would keep its own mode.
  rmSync(part, { force: true });
  await using handle = await open(part, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
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
  }
};

/** Gives the breaks too. Throws CommandFailed, and leaves no file, when the export is cut off. */
export const writeExport = async (incoming: Incoming, out: string) => {
  const { manifest, breaks } = await writeDraft(incoming, out);
  // Before the file: after a crash in between there is no export without its kept head.
  await replacePrivateFile(manifestFileOf(out), `${JSON.stringify(manifest, null, 2)}\n`);
  renameSync(draftOf(out), out);
  await syncPath(dirname(out));
  return { manifest, breaks: judgeBreaks(breaks) };
};

/** Throws CommandFailed where one exists. Forced, it replaces plain files alone, no /dev/null. */
const refuseExisting = (out: string, isForced: boolean): void => {
  for (const file of [out, manifestFileOf(out)]) {
    // Where the folder cannot be read, opening the draft fails, with the reason.
    const there = orElse(undefined, () => lstatSync(file));
    if (there === undefined) continue;
    if (!there.isFile())
      throw new CommandFailed(`${file} is no plain file to be replaced; choose another --out`);
    if (isForced) continue;
    throw new CommandFailed(
      `${file} exists already, and an export replaces nothing; choose another --out, or add --force`,
    );
  }
};

type Options = Given<'from' | 'to' | 'merchant' | 'data', 'force'> & { out: string };

const routeOf = (payment: string | undefined, { from, to: toTime }: Options): string => {
  const since = from !== undefined && isMoment(from) ? { fromTime: from } : { from };
  return auditPath('/audit/v1/export', { payment, ...since, toTime });
};

const NOT_SIGNED =
  'the manifest is not signed, so a later change of it cannot be seen: what exported it has no sealing key';

const exportEvents = async (paymentId: string | undefined, options: Options, command: Command) => {
  const { from, to, out, data } = options;
  if (paymentId !== undefined && (from ?? to) !== undefined)
    command.error('error: --from and --to are for the whole log; leave out the payment');
  refuseExisting(out, options.force === true);
  const client = await auditClient(options.merchant, data);
  const { body, headers } = await orFail(await client.get(routeOf(paymentId, options)));
  const lines = body as unknown as AsyncIterable<Uint8Array>;
  const { manifest, breaks } = await writeExport({ body: lines, headers }, out);
  // An export without a signature proves less, and is better than none.
  if (manifest.signature === undefined && data === undefined) note(NOT_SIGNED);
  if (options.format === 'json') printJson(manifest);
  else {
    print(`${count(manifest.count, 'event')}, ${headText(manifest.head)}`);
    note(`Keep ${manifestFileOf(out)} elsewhere too. Next: payments verify --file ${out}`);
  }
  failOnBreaks(`the log that was exported to ${out}`, breaks);
  failOnMisfit(client);
};

export const exportCommand = (): Command =>
  formatted('export', 'payments export --out march.jsonl --from 2026-03-01T00:00:00Z')
    .description('Writes events as JSON lines, and a manifest to verify them with.')
    .argument('[paymentId]', 'one payment; left out: the whole log')
    .requiredOption('--out <file>', 'the file to write; its manifest is written next to it')
    .option(
      '--from <from>',
      'a time (inclusive), or a position (everything after it)',
      timeOrPosition,
    )
    .option('--to <time>', 'a time (exclusive)', timeValue)
    .option('--force', 'replace the file and its manifest where they are there already')
    .addOption(dataOption())
    .option('--merchant <id>', 'only this merchant')
    .action(exportEvents);
