/** Making the data folder, the same way for the service and the command line. */
import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** The data folder cannot be used; `message` is the one line that says why and what to do. */
export class DataFolderRefused extends Error {
  override name = 'DataFolderRefused';
}

/** The file that the service which runs on a data folder has locked. */
export const SERVICE_LOCK = 'service.lock';

const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * Makes a folder and those above it, with mode 0700. Throws what the file system throws.
 *
 * Step by step, because Node's own `recursive` never returns where a file system answers "no such
 * entry" to a mkdir in a folder that exists, as /proc does.
 */
export const makeDataDir = (path: string): void => {
  if (isFolder(path)) return;
  if (dirname(path) !== path) makeDataDir(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process was faster.
    if (!isFolder(path)) throw error;
  }
};
