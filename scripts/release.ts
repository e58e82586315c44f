/** `npm run release [-- folder]`: source archive without tests, bill of materials, checksums in `release/`. */
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import manifest from '../package.json' with { type: 'json' };

const ROOT = join(import.meta.dirname, '..');
const { name, version } = manifest;
const NOT_RELEASED = ['test', '.ci', 'jest.config.mjs', 'stryker.config.mjs'];

const run = (file: string, ...args: string[]): string =>
  execFileSync(file, args, { cwd: ROOT, encoding: 'utf8' });

const into = resolve(process.argv[2] ?? join(ROOT, 'release'));
mkdirSync(into, { recursive: true });
const commit = run('git', 'rev-parse', '--short', 'HEAD').trim();
const build = `${name}-${version}-${commit}`;
const archive = `${build}.tar.gz`;
const bill = `${build}.cdx.json`;
const paths = ['.', ...NOT_RELEASED.map((path) => `:(exclude)${path}`)];
const format = ['--format=tar.gz', `--prefix=${build}/`];
run('git', 'archive', ...format, `--output=${join(into, archive)}`, 'HEAD', '--', ...paths);
writeFileSync(join(into, bill), run(process.execPath, 'scripts/bill-of-materials.cjs'));
const sums = [archive, bill].map(
  (file) => `${hash('sha256', readFileSync(join(into, file)))}  ${file}\n`,
);
writeFileSync(join(into, 'SHA256SUMS'), sums.join(''));
process.stdout.write(`${join(into, archive)}, with ${bill} and SHA256SUMS\n`);
