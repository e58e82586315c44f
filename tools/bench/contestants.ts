/** The servers that are measured, and the temporary folder and the token that all of them share. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Kind } from './load.ts';

/** The project's folder. */
export const ROOT = join(import.meta.dirname, '../..');
const inBench = (file: string): string => join(import.meta.dirname, file);

/** A server by Node's arguments in a folder, and how many requests of each kind a round sends it. */
export type Contestant = {
  name: string;
  cwd: string;
  args: readonly string[];
  amounts: Record<Kind, number>;
};

/** The service of a checkout: the process of its `npm start`, without npm and its shell. */
export const serviceIn = (cwd: string, name: string): Contestant => {
  const { scripts } = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8'));
  const args = String(scripts.start)
    .replace(/^exec node /, '')
    .split(' ');
  return { name, cwd, args, amounts: { create: 2000, GET: 10_000 } };
};

/** This checkout's service. */
export const ours = serviceIn(ROOT, 'this service');
/** The floors are shares of it. It gets so many creates that opening connections is no part of their cost. */
export const bare: Contestant = {
  ...ours,
  name: 'bare Fastify',
  args: [inBench('bare.ts')],
  amounts: { create: 10_000, GET: 10_000 },
};
export const bareNode: Contestant = { ...bare, name: 'bare Node', args: [...bare.args, 'node'] };
/** A create of the service is to cost at most a quarter more. */
export const checksAndWrites: Contestant = {
  ...ours,
  name: 'checks and writes',
  args: ['--max-semi-space-size=32', inBench('checks-and-writes.ts')],
  amounts: { create: 5000, GET: 0 },
};

/** Installs Express and NestJS outside the project's lock file. None where npm fails, which it has printed. */
export const installPeers = (): Contestant[] => {
  const cwd = join(ROOT, 'node_modules/.cache/bench-peers');
  mkdirSync(cwd, { recursive: true });
  copyFileSync(inBench('peers/package.json'), join(cwd, 'package.json'));
  const npm = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--prefer-offline'];
  const tsc = [join(ROOT, 'node_modules/.bin/tsc'), '-p', inBench('peers')];
  try {
    execFileSync('npm', npm, { cwd, stdio: ['ignore', 2, 2] });
    execFileSync(process.execPath, [...tsc, '--outDir', join(cwd, 'dist')], {
      stdio: ['ignore', 2, 2],
    });
  } catch {
    process.stderr.write('bench: the peers could not be installed, so they are left out\n');
    return [];
  }
  // Each of their commits waits for the disk alone, so they are slow.
  const amounts = { create: 500, GET: 10_000 };
  const peer = (name: string, main: string) => ({ name, cwd, args: [`dist/${main}`], amounts });
  return [peer('Express', 'express.js'), peer('NestJS CQRS', 'nest.js')];
};

/** A token, and each contestant's environment, with a data folder that its next start finds again. */
export const openWorkplace = () => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-bench-'));
  const envOf = (name: string): NodeJS.ProcessEnv => {
    const DATA_DIR = join(folder, name.replaceAll(/\W+/g, '-'));
    mkdirSync(DATA_DIR, { mode: 0o700, recursive: true });
    const { PATH, HOME } = process.env;
    const JWT_SECRET = 'a secret of the bench, 32 bytes at least';
    // A verification or reconciliation would begin during a round, and belongs to no request.
    const schedules = { VERIFY_INTERVAL_MS: '0', RECONCILE_INTERVAL_MS: '0' };
    return { PATH, HOME, NODE_ENV: 'production', DATA_DIR, JWT_SECRET, ...schedules };
  };
  const cli = ['cli/payments.mjs', 'token', '--ttl', '24h'];
  const options = { cwd: ROOT, env: envOf('token'), encoding: 'utf8' } as const;
  const token = execFileSync(process.execPath, cli, options).trim();
  return { token, envOf, remove: () => rmSync(folder, { recursive: true }) };
};

/** The folder and the token of a run. */
export type Workplace = ReturnType<typeof openWorkplace>;
