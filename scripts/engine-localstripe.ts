/**
 * localstripe, a stateful imitation of Stripe's API by others. Installed once from PyPI into a venv of
 * its own, each package at one version and with its checksums. GPL-3.0: it runs as a process beside
 * the tests, and nothing of it is in this repository or in what is shipped.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE, type Engine } from './engine.ts';
import { startServer } from './engine-server.ts';

const SOURCE = join(import.meta.dirname, 'engine-localstripe');
const REQUIREMENTS = join(SOURCE, 'requirements.txt');
/** Its packages are listed for Python from this version on. */
const PYTHON_MIN = '3.11';
const INSTALL_MS_MAX = 5 * 60_000;

/** The name holds a hash of the list, so that a new version never meets an older venv. */
const venv = (): string => {
  const hash = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex');
  return join(CACHE, `localstripe-${hash.slice(0, 16)}`);
};

const lackOfPython = (): string | undefined => {
  const [major, minor] = PYTHON_MIN.split('.');
  const asks = `import sys, venv, ensurepip; sys.exit(sys.version_info < (${major}, ${minor}))`;
  return spawnSync('python3', ['-c', asks], { stdio: 'ignore' }).status === 0
    ? undefined
    : `it needs Python ${PYTHON_MIN} or later with venv on the PATH (python3)`;
};

const run = async (command: string, args: readonly string[]): Promise<void> => {
  const child = spawn(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: INSTALL_MS_MAX,
  });
  let last = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    last = text.split('\n').findLast(Boolean) ?? last;
  });
  const code = await new Promise((resolve) => child.on('close', resolve).on('error', resolve));
  if (code !== 0) throw new Error(`the installation failed: ${last}`);
};

/** Made in another folder and renamed, so that an interrupted installation never looks whole. */
const install = async (folder: string, log: (line: string) => void): Promise<void> => {
  log('installing from PyPI, once');
  mkdirSync(CACHE, { recursive: true, mode: 0o700 });
  const fresh = `${folder}.${process.pid}`;
  rmSync(fresh, { recursive: true, force: true });
  await run('python3', ['-m', 'venv', fresh]);
  const options = ['--quiet', '--disable-pip-version-check', '--no-deps', '--require-hashes'];
  const python = join(fresh, 'bin', 'python');
  await run(python, ['-m', 'pip', 'install', ...options, '-r', REQUIREMENTS]);
  renameSync(fresh, folder);
};

/** localstripe, which gives a value for LOCALSTRIPE_URL. */
export const localstripe: Engine = {
  name: 'localstripe',
  available: () => (existsSync(venv()) ? undefined : lackOfPython()),
  start: async (folder, log) => {
    if (!existsSync(venv())) await install(venv(), log);
    const python = join(venv(), 'bin', 'python');
    const serve = join(SOURCE, 'serve.py');
    const argsOf = (port: number) => [serve, String(port)];
    const { address, pid } = await startServer(folder, python, argsOf);
    return { variables: { LOCALSTRIPE_URL: `http://${address}` }, pid };
  },
};
