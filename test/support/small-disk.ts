/** A disk of a few megabytes that can be made full and emptied again, where the machine lets us. */
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  rmdirSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CHUNK_BYTES = 65_536;
const PAGE_BYTES = 4096;

const run = (command: string, ...args: string[]): string | undefined => {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  return status === 0 ? undefined : (error?.message ?? stderr.trim());
};

/** Writes until there is no room for another piece of this size. */
const writeToTheEnd = (fd: number, bytes: number): void => {
  const piece = Buffer.alloc(bytes);
  try {
    while (writeSync(fd, piece) === bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
};

const mounted = (path: string, megabytes: number): string | undefined =>
  process.getuid?.() === 0
    ? run('mount', '-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path)
    : 'only root may mount';

/** Mounts one; throws where the machine does not let us. */
export const openSmallDisk = (megabytes: number) => {
  const path = mkdtempSync(join(tmpdir(), 'payments-disk-'));
  const refused = mounted(path, megabytes);
  if (refused !== undefined) {
    rmdirSync(path);
    throw new Error(refused);
  }
  const filler = join(path, 'filler');
  return {
    path,
    /** Takes all the room that is left, but for so many pages. */
    fill: (pagesLeft: number = 0) => {
      const fd = openSync(filler, 'a');
      writeToTheEnd(fd, CHUNK_BYTES);
      writeToTheEnd(fd, PAGE_BYTES);
      ftruncateSync(fd, fstatSync(fd).size - pagesLeft * PAGE_BYTES);
      closeSync(fd);
    },
    /** Gives it back. */
    clear: () => rmSync(filler, { force: true }),
    /** Takes the disk away; no process may use it any more. */
    remove: () => {
      const failed = run('umount', path);
      if (failed !== undefined) throw new Error(failed);
      rmdirSync(path);
    },
  };
};

/** Why there can be no small disk here; undefined where there can. */
export const noSmallDisk = (): string | undefined => {
  try {
    openSmallDisk(1).remove();
    return undefined;
  } catch (error) {
    return `no small disk: ${(error as Error).message}`;
  }
};
