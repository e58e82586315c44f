/** Mode 0600. A synced draft is renamed: after a crash the file is the old or the new one. */
import { randomUUID } from 'node:crypto';
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs';
import { link, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { orElse } from './error-text.ts';
import { orClose } from './sqlite.ts';

const PRIVATE = 0o600;

export const syncPath = async (path: string): Promise<void> => {
  await using handle = await open(path, 'r');
  await handle.sync();
};

const writeDraft = async (draft: string, content: string): Promise<void> => {
  // A draft left by a crash would keep its own mode.
  await rm(draft, { force: true });
  await using handle = await open(draft, 'wx', PRIVATE);
  await handle.writeFile(content);
  await handle.sync();
};

/** Calls for one file must not overlap. Throws the file system's errors, as all here. */
export const replacePrivateFile = async (file: string, content: string): Promise<void> => {
  const draft = `${file}.new`;
  await writeDraft(draft, content);
  await rename(draft, file);
  await syncPath(dirname(file));
};

/** A link never replaces a file, also when several processes try. */
export const addPrivateFile = async (file: string, content: string): Promise<void> => {
  const draft = `${file}.${randomUUID()}`;
  await writeDraft(draft, content);
  try {
    await link(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(draft);
  }
  await syncPath(dirname(file));
};

/** SQLite would make its files readable by others; those next to this one get its mode. */
export const ensurePrivateFile = (file: string): void => {
  closeSync(openSync(file, 'a', PRIVATE));
  chmodSync(file, PRIVATE);
};

/** `message` is one line for the operator. */
export class DataFolderRefused extends Error {
  override name = 'DataFolderRefused';
}

/** Written by each backup of the folder; its time is the backup's. */
export const LAST_BACKUP = 'backup.last';

export const lastBackupOf = (folder: string, noted = LAST_BACKUP): Date | undefined =>
  statSync(join(folder, noted), { throwIfNoEntry: false })?.mtime;

/** A running service holds a lock on this file. */
export const SERVICE_LOCK = 'service.lock';

const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** Mode 0700, with parents. mkdirSync's `recursive` never returns in /proc. */
export const makeDataDir = (path: string): void => {
  if (isFolder(path)) return;
  if (dirname(path) !== path) makeDataDir(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!isFolder(path)) throw error;
  }
};

const SQLITE_BUSY = 5;

export const isLockHeld = (error: unknown): boolean => Object(error).errcode === SQLITE_BUSY;

/** The operating system drops the lock when the process ends. */
const lockBy = (lock: DatabaseSync, sql: string) => {
  orClose(lock, () => lock.exec(sql));
  return { release: (): void => lock.close() };
};
export type FileLock = ReturnType<typeof lockBy>;

/** Does not wait. Throws an error that isLockHeld recognises, or the file system's. */
export const takeFileLock = (file: string): FileLock => {
  ensurePrivateFile(file);
  return lockBy(new DatabaseSync(file, { timeout: 0 }), 'BEGIN EXCLUSIVE');
};

export const shareFileLock = (file: string): FileLock => {
  const lock = new DatabaseSync(file, { readOnly: true, timeout: 0 });
  return lockBy(lock, 'BEGIN; SELECT count(*) FROM sqlite_schema');
};

/** A service that starts in the same instant finds the lock held. */
export const isFileLocked = (file: string): boolean =>
  existsSync(file) &&
  orElse(true, () => {
    shareFileLock(file).release();
    return false;
  });
