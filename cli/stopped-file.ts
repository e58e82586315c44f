/** Reads a SQLite file of a stopped data folder, which stays as it is: SQLite itself would write beside a non-empty write-ahead log. */
import { constants, copyFileSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { note } from './output.ts';

const WAITING_PAGES = '-wal';

const hasWaitingPages = (file: string): boolean =>
  (statSync(file + WAITING_PAGES, { throwIfNoEntry: false })?.size ?? 0) > 0;

const copyOf = (file: string): string => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-stopped-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  // A signal ends a process without 'exit'.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  const copy = join(folder, basename(file));
  for (const end of ['', WAITING_PAGES])
    copyFileSync(file + end, copy + end, constants.COPYFILE_FICLONE);
  note(`${file}${WAITING_PAGES} holds pages that are not in the file: a copy in ${folder} is read`);
  return copy;
};

export const unchangedAddress = (file: string): string =>
  `${pathToFileURL(file).href}?mode=ro&immutable=1`;

/** Of the file as it is, or of a copy. Throws errors of the file system. */
export const readablePath = (file: string): string =>
  hasWaitingPages(file) ? copyOf(file) : unchangedAddress(file);
