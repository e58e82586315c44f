/**
 * A lock that one process holds at a time: SQLite's own lock on a file, which the system drops with
 * the process, so that `kill -9` leaves nothing behind to clean up.
 */
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { ensurePrivateFile } from './private-files.ts';

export type FileLock = { release(): void };

const SQLITE_BUSY = 5;

/** Whether taking a lock failed because another process holds it. */
export const isLockHeld = (error: unknown): boolean => Object(error).errcode === SQLITE_BUSY;

/** Takes the lock, or throws at once: see isLockHeld; else what the file system or SQLite throws. */
export const takeFileLock = (file: string): FileLock => {
  ensurePrivateFile(file);
  const lock = new DatabaseSync(file, { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return { release: () => lock.close() };
  } catch (error) {
    lock.close();
    throw error;
  }
};

/** Whether a process holds the lock. The look is short, and a start meanwhile hardly meets it. */
export const isFileLocked = (file: string): boolean => {
  if (!existsSync(file)) return false;
  try {
    const lock = new DatabaseSync(file, { readOnly: true, timeout: 0 });
    try {
      lock.prepare('SELECT count(*) FROM sqlite_schema').get();
      return false;
    } finally {
      lock.close();
    }
  } catch {
    return true;
  }
};
