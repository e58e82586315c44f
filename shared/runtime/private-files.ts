/**
 * Files that only their owner can read (mode 0600). After a crash the file is the old one or the new
 * one, never half of one: the content goes to a draft beside it, is synced and then renamed.
 */
import { randomUUID } from 'node:crypto';
import { chmodSync, closeSync, openSync } from 'node:fs';
import { link, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

const PRIVATE = 0o600;

/** Waits until a file, or the names in a folder, are on the disk. Throws what the file system throws. */
export const syncPath = async (path: string): Promise<void> => {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
};

const writeDraft = async (draft: string, content: string): Promise<void> => {
  // A draft that a crash left behind would keep its own mode.
  await rm(draft, { force: true });
  const handle = await open(draft, 'wx', PRIVATE);
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
};

/**
 * Writes a file, and replaces the one that is there. Calls for one file must not overlap. Throws what
 * the file system throws.
 */
export const replacePrivateFile = async (file: string, content: string): Promise<void> => {
  const draft = `${file}.new`;
  await writeDraft(draft, content);
  await rename(draft, file);
  await syncPath(dirname(file));
};

/**
 * Writes a file unless there is one, also when several processes try at the same time: a link never
 * replaces a file. Throws what the file system throws.
 */
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

/**
 * Makes an empty file for SQLite where there is none: SQLite would make it readable by others. Its
 * files beside this one get the same mode. Throws what the file system throws.
 */
export const ensurePrivateFile = (file: string): void => {
  closeSync(openSync(file, 'a', PRIVATE));
  chmodSync(file, PRIVATE);
};
