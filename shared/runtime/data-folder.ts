import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** `message` is one line for the operator. */
export class DataFolderRefused extends Error {
  override name = 'DataFolderRefused';
}

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
