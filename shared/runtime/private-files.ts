/**
 * Files that only their owner can read (mode 0600), written so that after any crash there is the old
 * one or the new one and never half of one: beside it first, synced, then given its name.
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
  // One that was left behind would keep its rights.
  await rm(draft, { force: true });
  const handle = await open(draft, 'wx', PRIVATE);
  try {
    await handle.writeFile(content);
    // seeded bug: synced-before-rename
    await handle.sync();
  } finally {
    await handle.close();
  }
};

/**
 * Writes a file, over the one that is there. Calls for one file must not overlap. Throws what the
 * file system throws.
 */
export const replacePrivateFile = async (file: string, content: string): Promise<void> => {
  const draft = `${file}.new`;
  await writeDraft(draft, content);
  await rename(draft, file);
  await syncPath(dirname(file));
};

/**
 * Writes a file unless there is one, whoever else tries at the same time: a link never replaces a
 * file. Throws what the file system throws.
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
 * Makes an empty file for SQLite where there is none: SQLite would make it readable by others, and
 * gives the files beside it the rights of this one. Throws what the file system throws.
 */
export const ensurePrivateFile = (file: string): void => {
  closeSync(openSync(file, 'a', PRIVATE));
  chmodSync(file, PRIVATE);
};
