/**
 * `npm run test:mutation [-- files]`: mutation testing of the pure parts, as stryker.config.mjs
 * says, or of the named files among them. What was tested before and has not changed since, code
 * or tests, is taken from the last run (reports/mutation/). Ends with 1 below the score to keep.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const STRYKER = join(ROOT, 'node_modules/@stryker-mutator/core/bin/stryker.js');

const files = process.argv.slice(2);
const only = files.length === 0 ? [] : ['--mutate', files.join(',')];
const { status } = spawnSync(process.execPath, [STRYKER, 'run', ...only], {
  cwd: ROOT,
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
