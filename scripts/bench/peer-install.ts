/** Installs the peers in a temporary folder, where they never touch this package's own lock file. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from './server.ts';

const SOURCES = join(ROOT, 'scripts/peers');
const PACKAGES: Record<string, Record<string, string>> = JSON.parse(
  readFileSync(join(SOURCES, 'packages.json'), 'utf8'),
);

/** An installed peer: the folder of its compiled sources, and its versions as `name version`. */
export type Installed = { dist: string; versions: string[] };

const run = (file: string, args: string[], cwd: string): void => {
  const { status, stderr, stdout, error } = spawnSync(file, args, { cwd, encoding: 'utf8' });
  if (status === 0) return;
  const lines = `${stderr ?? ''}\n${stdout ?? ''}`.split('\n');
  const reason =
    lines.find((line) => /error|ERR/.test(line)) ?? error?.message ?? `ended ${status}`;
  throw new Error(`${file} ${args[0]}: ${reason.trim()}`);
};

/**
 * Installs a group of packages.json, unless the same versions are there from a run before, and compiles
 * the sources beside them. Throws Error, in one line, where the registry lacks a package or it cannot
 * be built.
 */
export const installPeer = (group: string): Installed => {
  const folder = join(tmpdir(), 'payments-bench-peers', group);
  const dependencies = PACKAGES[group] ?? {};
  // npm 12 runs no install script that is not allowed; sqlite3 fetches or builds its binary in one.
  const manifest = { private: true, type: 'module', dependencies, allowScripts: { sqlite3: true } };
  const wanted = JSON.stringify(manifest);
  const stamp = join(folder, 'installed.json');
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), wanted);
    run('npm', ['install', '--no-audit', '--no-fund', '--no-package-lock'], folder);
    writeFileSync(stamp, wanted);
  }
  const dist = join(folder, 'dist');
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  run(process.execPath, [tsc, '-p', SOURCES, '--outDir', dist], ROOT);
  const versions = Object.entries(dependencies).map(([name, version]) => `${name} ${version}`);
  return { dist, versions };
};
