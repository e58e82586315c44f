/**
 * A SQLite file of a data folder that no service holds, for reading: not a byte of the folder is
 * changed. SQLite itself would write beside a file whose write-ahead log is not empty.
 */
import { constants, copyFileSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { note } from './output.ts';

const WAITING_PAGES = '-wal';

const hasWaitingPages = (file: string): boolean =>
  (statSync(file + WAITING_PAGES, { throwIfNoEntry: false })?.size ?? 0) > 0;

/** A copy in a folder that is removed when the process ends. */
const copyOf = (file: string): string => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-stopped-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  // Ended by a signal, a process says nothing more to 'exit'.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  const copy = join(folder, basename(file));
  for (const end of ['', WAITING_PAGES]) {
    copyFileSync(file + end, copy + end, constants.COPYFILE_FICLONE);
  }
  note(`${file}${WAITING_PAGES} holds pages that are not in the file: a copy in ${folder} is read`);
  return copy;
};

/** An address by which SQLite reads a file as it is, without what waits in its write-ahead log. */
export const unchangedAddress = (file: string): string =>
  `${pathToFileURL(file).href}?mode=ro&immutable=1`;

/**
 * The path to open such a file by: an address of SQLite that reads the file as it is, or the path of a
 * copy. Throws what the file system throws.
 */
export const readablePath = (file: string): string =>
  hasWaitingPages(file) ? copyOf(file) : unchangedAddress(file);
