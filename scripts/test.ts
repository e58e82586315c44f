/**
 * `npm test [-- paths and Jest flags]`: every test, those of test/long only with `--long`. The last line on stdout is exactly `N passed, N failed, N skipped`. A skip that names a
 * variable of `REQUIRE_ENGINES` (a comma list) fails the run.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryFolder } from './memory-folder.ts';
import { type JestReport, summaryOf } from './test-summary.ts';

const ROOT = join(import.meta.dirname, '..');
const JEST = join(ROOT, 'node_modules/jest/bin/jest.js');
/**
 * More than there are cores, for tests wait for processes, disks and clocks; each takes up to 1 GB. A
 * long one has several processes of its own.
 */
const workers = (isLong: boolean): number => Math.min(availableParallelism() + (isLong ? 1 : 4), 8);

const install = (): void => {
  const { status } = spawnSync('npm', ['ci'], { cwd: ROOT, stdio: 'inherit' });
  if (status !== 0 || !existsSync(JEST)) {
    process.stderr.write('payments: the test packages could not be installed; run "npm ci"\n');
    process.exit(1);
  }
};

const jestArgs = (args: string[], reportFile: string): string[] => {
  const passed = args.filter((arg) => arg !== '--long');
  const isLong = args.includes('--long');
  const limit = passed.some((arg) => /^(--maxWorkers|-w|-i|--runInBand)/.test(arg));
  return [
    '--experimental-vm-modules',
    '--disable-warning=ExperimentalWarning',
    JEST,
    ...passed,
    '--json',
    `--outputFile=${reportFile}`,
    ...(limit ? [] : [`--maxWorkers=${workers(isLong)}`]),
    ...(isLong ? [] : ['--testPathIgnorePatterns=/node_modules/|/test/long/']),
  ];
};

/** Jest's own output goes to stderr as always; its JSON goes to the file alone. */
const runJest = async (args: string[]): Promise<number> => {
  const jest = spawn(process.execPath, args, {
    cwd: ROOT,
    stdio: ['inherit', 'ignore', 'inherit'],
    env: {
      ...process.env,
      TMPDIR: folder,
      TEST_LONG: isLong ? '1' : '',
      // Compiled once for Jest's workers and their threads.
      NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/compile'),
    },
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => jest.kill(signal));
  return new Promise((resolve) => jest.on('exit', (code) => resolve(code ?? 1)));
};

const readReport = (file: string): JestReport | undefined =>
  existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as JestReport) : undefined;

if (!existsSync(JEST)) install();
const isLong = process.argv.includes('--long');
const isChosen = process.env.TMPDIR !== undefined;
const folder = mkdtempSync(
  join((isLong || isChosen ? undefined : memoryFolder()) ?? tmpdir(), 'payments-test-'),
);
const reportFile = join(folder, 'report.json');
const code = await runJest(jestArgs(process.argv.slice(2), reportFile));
const required = process.env.REQUIRE_ENGINES?.split(',').filter((name) => name !== '');
const summary = summaryOf(readReport(reportFile), code, required);
process.stdout.write(`${summary.lines.join('\n')}\n`);
process.exitCode = summary.exitCode;
// A process that a failed test has left behind may still be writing.
rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
