/**
 * `npm run test:mutation [-- files]`: mutation testing of the pure parts, as stryker.config.mjs
 * says, or of the named files among them. Results of the last run (reports/mutation/) are used again
 * where neither code nor tests have changed. A new test alone does not try the changes to a module's
 * constants again: delete that folder first. Ends with 1 when the score is below the minimum.
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
