/** How an engine is built once, and how its server starts and outlives `npm run engines`. */
import { type ExecFileOptions, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePorts } from '../../scripts/free-ports.ts';

/** The folder of what is built or fetched once, and of the engines that run. */
export const CACHE = join(homedir(), '.cache', 'payments-engines');

const BUILD_MS_MAX = 15 * 60_000;
const READY_MS_MAX = 180_000;

type Log = (line: string) => void;
/** An engine that runs: its process, and the variables that say where it is, such as `KAFKA_BROKERS`. */
export type Started = { variables: Readonly<Record<string, string>>; pid: number };

/** A real server for tests and trials that needs no Docker. */
export type Engine = {
  name: string;
  /** Why this machine cannot run the engine; undefined when it can. */
  available(): string | undefined;
  /**
   * Starts the engine on loopback with its data in `folder`, as a process that outlives this one, and
   * resolves when it is ready. With a folder used before it has the same data and the same address.
   * Throws Error, one line, when it cannot be built or does not become ready.
   */
  start(folder: string, log: Log): Promise<Started>;
};

/** Why an engine that needs these commands cannot run here; undefined when it can. */
export const lackOf = (...commands: string[]): string | undefined => {
  const isMissing = (command: string) => spawnSync('which', [command]).status !== 0;
  const missing = commands.find(isMissing);
  return missing && `it needs \`${missing}\` on the PATH`;
};

/** Runs a command to its end. Throws Error with the last line of its output when it fails. */
export const run = async (command: string, args: readonly string[], options?: ExecFileOptions) => {
  const running = promisify(execFile)(command, args, { timeout: BUILD_MS_MAX, ...options });
  await running.catch(({ message, stdout, stderr }) => {
    const lines = `${message}\n${stdout}${stderr}`.trim().split('\n');
    throw new Error(`${command} failed: ${lines.at(-1)}`);
  });
};

/**
 * Has `make` fill a folder of the cache that is not there yet. The folder gets its name once it is
 * whole, so that an interrupted build is never taken for one.
 */
export const makeOnce = async (folder: string, make: (fresh: string) => Promise<void>) => {
  if (existsSync(folder)) return;
  const fresh = `${folder}.${process.pid}`;
  mkdirSync(fresh, { recursive: true, mode: 0o700 });
  await make(fresh);
  // Another run may have made it meanwhile.
  await rename(fresh, folder).catch(() => rm(fresh, { recursive: true }));
};

/** Builds the command of a Go package into a folder of the cache, once. */
export const buildWithGo = (folder: string, goPackage: string, log: Log, cwd?: string) =>
  makeOnce(folder, (fresh) => {
    log('building it from its Go module; this takes minutes, once');
    const env = { ...process.env, GOBIN: fresh };
    // One package at a time: a build of all at once takes more memory than small machines have.
    return run('go', ['install', '-p', '1', goPackage], { env, cwd });
  });

/** Free ports of loopback that the folder keeps: a server started again has the same address. */
export const portsOf = async (folder: string, count: number): Promise<number[]> => {
  const file = join(folder, 'ports.json');
  if (!existsSync(file)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, JSON.stringify(await freePorts(count)));
  }
  return JSON.parse(readFileSync(file, 'utf8'));
};

/**
 * Starts a server that outlives this process, its output in `folder`, and resolves with its process
 * id once it has written `readyWords`. Throws Error, one line, when it does not.
 */
export const startServer = async (
  folder: string,
  [command = '', ...args]: readonly string[],
  readyWords: string,
): Promise<number> => {
  const file = join(folder, 'server.log');
  const output = openSync(file, 'w');
  const server = spawn(command, args, { detached: true, stdio: ['ignore', output, output] });
  closeSync(output);
  await once(server, 'spawn');
  server.unref();
  const deadline = performance.now() + READY_MS_MAX;
  while (!readFileSync(file, 'utf8').includes(readyWords)) {
    const hasEnded = server.exitCode !== null || server.signalCode !== null;
    if (hasEnded || performance.now() > deadline) {
      server.kill('SIGKILL');
      throw new Error(`it does not become ready, see ${file}`);
    }
    await delay(50);
  }
  return server.pid ?? 0;
};
