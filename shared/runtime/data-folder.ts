/** Makes the data folder, in the same way for the service and the command line. */
import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** The data folder cannot be used; `message` is the one line that says why and what to do. */
export class DataFolderRefused extends Error {
  override name = 'DataFolderRefused';
}

/** The file in the data folder that a running service has locked. */
export const SERVICE_LOCK = 'service.lock';

const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * Makes a folder and its missing parents, with mode 0700. Throws what the file system throws.
 *
 * Not with mkdirSync's `recursive`: it never returns on a file system that gives ENOENT for a mkdir
 * in an existing folder, as /proc does.
 */
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
