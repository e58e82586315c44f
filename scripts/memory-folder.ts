/** Where the files of tests are kept in memory: as files they are the same, but nobody waits for a disk. */
import { readFileSync, statfsSync } from 'node:fs';

const FOLDER = '/dev/shm';
/** Twenty times what the tests have there at any moment (ADR-0250). */
const FREE_BYTES_MIN = 2 ** 30;

/** What the system says of its mounts, as in `/proc/mounts`, and how much is free below a path. */
export type System = { mounts(): string; freeBytes(path: string): number };

const system: System = {
  mounts: () => readFileSync('/proc/mounts', 'utf8'),
  freeBytes: (path) => {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  },
};

/** Undefined where there is none, it is too small, or what is built there cannot be run. */
export const memoryFolder = ({ mounts, freeBytes }: System = system): string | undefined => {
  try {
    const lines = mounts().split('\n');
    // The last one mounted hides those below it.
    const mount = lines.map((line) => line.split(' ')).findLast(([, path]) => path === FOLDER);
    const [, , kind, options = ''] = mount ?? [];
    const isUsable = kind === 'tmpfs' && !/(^|,)(noexec|ro)(,|$)/.test(options);
    return isUsable && freeBytes(FOLDER) >= FREE_BYTES_MIN ? FOLDER : undefined;
  } catch {
    return undefined;
  }
};
