/**
 * Deliberate bugs, one at a time: each is put into a copy of the project, the named tests are run
 * there, and they have to notice. `find` stands exactly once in its file.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NODE, ROOT } from './service.ts';

export type SeededBug = {
  /** What somebody did wrong. */
  name: string;
  file: string;
  find: string;
  put: string;
  /** The tests that are to notice it. */
  tests: string[];
};

const NOT_COPIED = new Set(['node_modules', '.git', '.types', 'data']);
const RUN_MS_MAX = 120_000;

/** A copy of the project that shares its packages; removed by the caller. */
export const copyOfProject = (): string => {
  const copy = mkdtempSync(join(tmpdir(), 'payments-bugs-'));
  cpSync(ROOT, copy, {
    recursive: true,
    filter: (path) => !NOT_COPIED.has(path.slice(ROOT.length + 1)),
  });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
};

/** Whether the bug's tests fail in the copy, which is as before afterwards. */
export const isNoticed = (copy: string, { name, file, find, put, tests }: SeededBug): boolean => {
  const path = join(copy, file);
  const right = readFileSync(path, 'utf8');
  if (right.split(find).length !== 2) throw new Error(`${name}: not once in ${file}: ${find}`);
  writeFileSync(
    path,
    right.replace(find, () => put),
  );
  const { status } = spawnSync(NODE, ['scripts/test.ts', ...tests, '--bail'], {
    cwd: copy,
    stdio: 'ignore',
    timeout: RUN_MS_MAX,
  });
  writeFileSync(path, right);
  return status !== 0;
};

/** Whether the tests pass in the untouched copy: else noticing a bug there says nothing. */
export const passes = (copy: string, tests: readonly string[]): boolean =>
  spawnSync(NODE, ['scripts/test.ts', ...tests], { cwd: copy, stdio: 'ignore', timeout: 600_000 })
    .status === 0;

export const removeCopy = (copy: string): void => rmSync(copy, { recursive: true, force: true });
