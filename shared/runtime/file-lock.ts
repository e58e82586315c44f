/** The operating system drops the lock when the process ends. */
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { ensurePrivateFile } from './private-files.ts';

export type FileLock = { release(): void };

const SQLITE_BUSY = 5;

export const isLockHeld = (error: unknown): boolean => Object(error).errcode === SQLITE_BUSY;

const lockBy = (lock: DatabaseSync, sql: string): FileLock => {
  try {
    lock.exec(sql);
    return { release: () => lock.close() };
  } catch (error) {
    lock.close();
    throw error;
  }
};

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
export const isFileLocked = (file: string): boolean => {
  if (!existsSync(file)) return false;
  try {
    shareFileLock(file).release();
    return false;
  } catch {
    return true;
  }
};
