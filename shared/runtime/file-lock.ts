/**
 * A lock that one process holds at a time: SQLite's own lock on a file. The operating system drops
 * it when the process ends, so that `kill -9` leaves nothing behind to clean up.
 */
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { ensurePrivateFile } from './private-files.ts';

/** A lock that this process holds until `release`. */
export type FileLock = { release(): void };

const SQLITE_BUSY = 5;

/** Whether taking a lock failed because another process holds it. */
export const isLockHeld = (error: unknown): boolean => Object(error).errcode === SQLITE_BUSY;

/**
 * Takes the lock without waiting. Throws an error that isLockHeld recognises when another process
 * holds it, else what the file system or SQLite throws.
 */
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

/**
 * Shares the lock, without writing to the file: nobody can take it until `release`, others can share it.
 * Throws where a process holds it.
 */
export const shareFileLock = (file: string): FileLock => {
  const lock = new DatabaseSync(file, { readOnly: true, timeout: 0 });
  try {
    lock.exec('BEGIN');
    lock.prepare('SELECT count(*) FROM sqlite_schema').get();
    return { release: () => lock.close() };
  } catch (error) {
    lock.close();
    throw error;
  }
};

/**
 * Whether a process holds the lock. The check shares the lock for an instant; a service that starts
 * in that instant finds it held.
 */
export const isFileLocked = (file: string): boolean => {
  if (!existsSync(file)) return false;
  try {
    shareFileLock(file).release();
    return false;
  } catch {
    return true;
  }
};
