/**
 * `npm test [-- paths and Jest flags]`: every test, those named `*.long.test.ts` only with `--long`, which draws by a
 * new seed and prints it first. Prints each skip and, last, exactly `N passed, N failed, N skipped`. A skip
 * that names a variable of `REQUIRE_ENGINES` (a comma list) fails the run.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { orElse } from '../shared/runtime/error-text.ts';

const ROOT = join(import.meta.dirname, '..');
const JEST = join(ROOT, 'node_modules/jest/bin/jest.js');
/** Twenty times what the tests need in memory. */
const FREE_BYTES_MIN = 2 ** 30;

type TestResult = { status: string; fullName: string; ancestorTitles: string[] };
type Report = {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  /** Files that could not be run: the other numbers leave out their tests. */
  numRuntimeErrorTestSuites: number;
  testResults: { assertionResults: TestResult[] }[];
};

const install = (): void => {
  const { status } = spawnSync('npm', ['ci'], { cwd: ROOT, stdio: 'inherit' });
  if (status !== 0 || !existsSync(JEST)) {
    process.stderr.write('payments: the test packages could not be installed; run "npm ci"\n');
    process.exit(1);
  }
};

/** A folder in memory, where no test waits for a disk. */
const memoryFolder = (): string | undefined =>
  orElse(undefined, () => {
    const { bavail, bsize } = statfsSync('/dev/shm');
    const mounts = readFileSync('/proc/mounts', 'utf8');
    // Tests run what they build.
    const isUsable = /^\S+ \/dev\/shm tmpfs (?!\S*\b(ro|noexec)\b)/m.test(mounts);
    return isUsable && bavail * bsize >= FREE_BYTES_MIN ? '/dev/shm' : undefined;
  });

/** More than there are cores, because tests wait for processes and clocks; each worker takes up to 1 GB. */
const workers = (isLong: boolean): number => Math.min(availableParallelism() + (isLong ? 1 : 4), 8);

const jestArgs = (args: string[], isLong: boolean): string[] => {
  const limit = args.some((arg) => /^(--maxWorkers|-w|-i|--runInBand)/.test(arg));
  return [
    ...args.filter((arg) => arg !== '--long'),
    ...(limit ? [] : [`--maxWorkers=${workers(isLong)}`]),
    ...(isLong ? [] : ['--testPathIgnorePatterns=/node_modules/|[.]long[.]test[.]ts$']),
  ];
};

/** The seed of a run that draws anew, or of the run that is repeated. */
const newSeed = (): string => {
  const { TEST_SEED = String(Date.now() % 2 ** 31) } = process.env;
  process.stdout.write(`TEST_SEED=${TEST_SEED}\n`);
  return TEST_SEED;
};

const runJest = (args: string[], folder: string, isLong: boolean): Promise<number> => {
  // A test file makes much garbage: V8's small young generation costs a twentieth of the run's CPU.
  const flags = [
    '--max-semi-space-size=32',
    '--experimental-vm-modules',
    '--disable-warning=ExperimentalWarning',
  ];
  const jest = spawn(process.execPath, [...flags, JEST, ...args], {
    cwd: ROOT,
    stdio: ['inherit', 'ignore', 'inherit'],
    env: {
      ...process.env,
      TMPDIR: folder,
      TEST_LONG: isLong ? '1' : '',
      ...(isLong && { TEST_SEED: newSeed() }),
      // Compiled once for Jest's workers and their threads.
      NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/compile'),
    },
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => jest.kill(signal));
  return new Promise((resolve) => jest.on('exit', (code) => resolve(code ?? 1)));
};

const skipsOf = ({ testResults }: Report): string[] => {
  const all = testResults.flatMap((file) => file.assertionResults);
  const groupOf = ({ ancestorTitles: [group], fullName }: TestResult) => group ?? fullName;
  const isSkipped = ({ status }: TestResult) => status === 'pending' || status === 'todo';
  const running = new Set(all.filter((test) => !isSkipped(test)).map(groupOf));
  const nameOf = (test: TestResult) => (running.has(groupOf(test)) ? test.fullName : groupOf(test));
  return [...Map.groupBy(all.filter(isSkipped), nameOf)].map(([name, tests]) =>
    tests.length === 1
      ? `skipped: ${tests[0]?.fullName}`
      : `skipped: ${name}: ${tests.length} tests`,
  );
};

const close = (report: Report, code: number): number => {
  const passed = report.numPassedTests;
  const failed = report.numFailedTests + report.numRuntimeErrorTestSuites;
  const skips = skipsOf(report);
  const required = (process.env.REQUIRE_ENGINES ?? '').split(',').filter((name) => name !== '');
  const missed = required.filter((name) => skips.some((line) => line.includes(name)));
  const lines = [
    ...skips,
    ...missed.map((name) => `not allowed: tests were skipped that ${name} was set for`),
    ...(passed + failed === 0 ? ['no test was executed'] : []),
    `${passed} passed, ${failed} failed, ${report.numPendingTests + report.numTodoTests} skipped`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
  return failed > 0 || passed === 0 || missed.length > 0 ? 1 : code;
};

if (!existsSync(JEST)) install();
const args = process.argv.slice(2);
const isLong = args.includes('--long');
const onDisk = isLong || process.env.TMPDIR !== undefined;
const parent = (onDisk ? undefined : memoryFolder()) ?? tmpdir();
const folder = mkdtempSync(join(parent, 'payments-test-'));
const file = join(folder, 'report.json');
const toFile = ['--json', `--outputFile=${file}`];
const code = await runJest([...jestArgs(args, isLong), ...toFile], folder, isLong);
if (existsSync(file)) process.exitCode = close(JSON.parse(readFileSync(file, 'utf8')), code);
else {
  process.stdout.write('the tests could not be run\n0 passed, 1 failed, 0 skipped\n');
  process.exitCode = 1;
}
// A process that a failed test has left behind may still be writing.
rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
