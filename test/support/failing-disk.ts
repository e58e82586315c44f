/** A disk whose fsync can be made to fail, below one process, where the machine lets us. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SOURCE = join(import.meta.dirname, 'failing-disk.c');

export type FailingDisk = ReturnType<typeof openFailingDisk>;

let built: string | undefined;

/** The library that fails, built once; it goes with the folder of the run. */
const libraryOf = (): string => {
  if (built !== undefined) return built;
  if (process.platform !== 'linux') throw new Error('only Linux preloads a library by LD_PRELOAD');
  const folder = mkdtempSync(join(tmpdir(), 'payments-failing-disk-'));
  const library = join(folder, 'failing-disk.so');
  const args = ['-shared', '-fPIC', '-O1', '-o', library, SOURCE, '-ldl'];
  const { status, stderr, error } = spawnSync('cc', args, { encoding: 'utf8' });
  if (status !== 0) {
    rmSync(folder, { recursive: true });
    throw new Error(`cc: ${error?.message ?? stderr.trim()}`);
  }
  built = library;
  return library;
};

/** Throws where there is no compiler, or nothing can be preloaded. */
export const openFailingDisk = () => {
  const library = libraryOf();
  const folder = mkdtempSync(join(tmpdir(), 'payments-failing-disk-'));
  const switchFile = join(folder, 'fail');
  return {
    /** Settings for the process; `file` is how the path of what shall fail ends, `once` not again. */
    envOf: (file: string, once?: 'once') => ({
      LD_PRELOAD: library,
      FAIL_SYNC_OF: file,
      FAIL_SYNC_WHEN: switchFile,
      ...(once !== undefined && { FAIL_SYNC_ONCE: '1' }),
    }),
    /** From now on every fsync of that file fails. */
    fail: () => writeFileSync(switchFile, ''),
    mend: () => rmSync(switchFile, { force: true }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
};

/** Why there can be none here; undefined where there can. */
export const noFailingDisk = (): string | undefined => {
  try {
    openFailingDisk().remove();
    return undefined;
  } catch (error) {
    return `no failing disk: ${(error as Error).message.split('\n', 1)[0]}`;
  }
};
