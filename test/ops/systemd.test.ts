/** The systemd units: their mains and settings are the service's, systemd takes them, and they are hardened. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import manifest from '../../package.json' with { type: 'json' };
import { ROOT } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const FOLDER = join(ROOT, 'ops/systemd');
const names = readdirSync(FOLDER);
const textOf = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');
const services = names.filter((name) => name.endsWith('.service'));
const processes = services.filter((name) => name !== 'payments-backup.service');

const { path: folder, remove } = temporaryFolder();
afterAll(remove);

/** The units as installed, but with the code where it lies here. */
const installed = names.map((name) => {
  const file = join(folder, name);
  writeFileSync(file, textOf(name).replaceAll('/opt/payments', ROOT));
  return file;
});

const valueIn = (text: string, key: string): string | undefined =>
  new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1];

describe.each(processes)('%s', (name) => {
  const text = textOf(name);

  test('starts a main of the service with the flags of npm start, in the code of the page', () => {
    const [, flags = ''] = /node (--.*) scripts/.exec(manifest.scripts.start) ?? [];
    const [, main = ''] = new RegExp(`node ${flags} scripts/launch\\.cjs (\\S+)$`).exec(
      valueIn(text, 'ExecStart') ?? '',
    ) ?? [''];
    const mains = main.includes('%i')
      ? ['command-api', 'query-api', 'projector'].map((one) => main.replace('%i', one))
      : [main];
    expect(mains.filter((one) => !existsSync(join(ROOT, one)))).toEqual([]);
  });

  test('gives a stop its 10 s, starts again after a failure, and keeps cards out of core files and swap', () => {
    expect(Number(valueIn(text, 'TimeoutStopSec'))).toBeGreaterThan(10);
    expect(valueIn(text, 'Restart')).toBe('on-failure');
    expect([valueIn(text, 'LimitCORE'), valueIn(text, 'MemorySwapMax')]).toEqual(['0', '0']);
  });
});

test('payments-backup keeps the copies that KEEP says, the newest, and removes nothing else', () => {
  const copies = temporaryFolder();
  const made = [
    'payments-20261101T000000Z',
    'payments-20261101T010000Z',
    'payments-20261102T000000Z',
  ];
  for (const name of [...made, 'log-2026-11-01.jsonl']) mkdirSync(join(copies.path, name));
  const text = textOf('payments-backup.service');
  // npx, typed by root under umask 077, closes the file of the command line to others.
  expect(valueIn(text, 'ExecStart')).toContain('scripts/launch.cjs cli/main.ts backup /backups/');
  const [, line = ''] = /^\/bin\/sh -c '(.*)'$/.exec(valueIn(text, 'ExecStartPre') ?? '') ?? [];
  const prune = (KEEP: string) =>
    spawnSync('/bin/sh', ['-c', line.replace('/backups', copies.path)], {
      env: { ...process.env, KEEP },
    });
  expect(prune('6').status).toBe(0);
  expect(readdirSync(copies.path)).toHaveLength(4);
  // The next copy is the second one.
  expect(prune('2').status).toBe(0);
  expect(readdirSync(copies.path).sort()).toEqual(['log-2026-11-01.jsonl', made[2]]);
  copies.remove();
});

const ANALYZE = 'systemd-analyze';
const MISSING = spawnSync(ANALYZE, ['--version']).error === undefined ? '' : ANALYZE;
const analysed = MISSING === '' ? test : test.skip;
const why = MISSING === '' ? '' : ` (skipped: no ${MISSING} is installed)`;

analysed(`systemd finds nothing wrong with any of them${why}`, () => {
  const instances = installed.map((file) => file.replace('payments@.', 'payments@projector.'));
  const { status, stderr } = spawnSync(ANALYZE, ['verify', '--man=no', ...instances], {
    encoding: 'utf8',
  });
  expect(stderr.split('\n').filter((line) => line.includes('payments'))).toEqual([]);
  expect(status).toBe(0);
});

/** Of 10, as 2 in tenths; a unit without any of it has 96. */
const EXPOSURE_MAX = '20';

analysed.each(services)(`%s is hardened${why}`, (name) => {
  const { status, stdout } = spawnSync(
    ANALYZE,
    ['security', '--offline=yes', `--threshold=${EXPOSURE_MAX}`, join(folder, name)],
    { encoding: 'utf8' },
  );
  expect(stdout).toContain('Overall exposure level');
  expect(status).toBe(0);
});
