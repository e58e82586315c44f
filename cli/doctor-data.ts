/** What `payments doctor` says of the data folder. Nothing is made, written or locked for it. */
import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

export type DataFolderFinding = {
  path: string;
  state: 'writable' | 'not there yet' | 'not writable';
  /** A service runs on it. */
  held: boolean;
  freeBytes: number | null;
  files: { name: string; bytes: number }[];
  problem?: string;
};

const FREE_BYTES_MIN = 100e6;

const mayWrite = (path: string): boolean => {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
};

/** The folder itself, or the nearest one above it that is there. */
const nearest = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : nearest(dirname(path));

const freeIn = (path: string): number | null => {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return null;
  }
};

/** Whether somebody has the lock; asking takes no part in it that a start could meet for long. */
const isHeld = (path: string): boolean => {
  const file = join(path, 'service.lock');
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

const filesIn = (path: string): DataFolderFinding['files'] => {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => ({ name, bytes: statSync(join(path, name)).size }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
};

const problemOf = (path: string, writable: boolean, freeBytes: number | null) => {
  if (!writable)
    return `DATA_DIR: ${path} cannot be written to; give the service a folder of its own`;
  return freeBytes !== null && freeBytes < FREE_BYTES_MIN
    ? `DATA_DIR: less than 100 MB are free at ${path}; make room before appends are refused`
    : undefined;
};

export const lookAtDataFolder = (path: string): DataFolderFinding => {
  const there = existsSync(path);
  const at = nearest(path);
  const writable = mayWrite(at);
  const freeBytes = freeIn(at);
  const problem = problemOf(path, writable, freeBytes);
  return {
    path,
    state: writable ? (there ? 'writable' : 'not there yet') : 'not writable',
    held: isHeld(path),
    freeBytes,
    files: filesIn(path),
    ...(problem === undefined ? {} : { problem }),
  };
};
