/** Servers, those under load each on the first CPU, with what they used; commands on the second one. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../free-ports.ts';
import type { Usage } from './probe.ts';

/** The project's folder. */
export const ROOT = join(import.meta.dirname, '../..');
const PROBE = join(import.meta.dirname, 'probe.ts');
const READY_MS_MAX = 900_000;

/** Whether server and load have a CPU each, else they slow each other down. */
export const isPinned = availableParallelism() > 1 && spawnSync('taskset', ['-V']).status === 0;

/** Where a command runs: on the first CPU, on the second, or on both, as the service of a user has them. */
export type Cpus = 0 | 1 | 'both';

const LISTS = { 0: '0', 1: '1', both: '0,1' } as const;

/** A command on its CPUs, as `spawn` takes it. */
export const onCpu = (cpus: Cpus, command: readonly string[]): [string, string[]] => {
  const [file = '', ...args] = isPinned ? ['taskset', '-c', LISTS[cpus], ...command] : command;
  return [file, args];
};

/** A running server. */
export type Server = {
  url: string;
  /** From its start to the first 200 of the path that was waited for. */
  readyMs: number;
  /** What it used since the call before. */
  usage(): Promise<Usage>;
  stop(): Promise<void>;
};

/** How a server is started: `args` are Node's, `readyPath` responds 200 once it is ready. */
export type ServerOrder = {
  args: readonly string[];
  readyPath: string;
  env: NodeJS.ProcessEnv;
  /** Gets its output. */
  logFile: string;
  /** 0, unless it belongs to the load's side, or nothing is driven beside it. */
  cpus?: Cpus;
};

const ended = (child: ChildProcess): boolean =>
  child.exitCode !== null || child.signalCode !== null;

/** The log is gone with the run's folder. */
const lastError = (logFile: string): string => {
  const lines = readFileSync(logFile, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  return (lines.findLast((line) => line.includes('Error')) ?? lines.at(-1) ?? 'no output').trim();
};

const untilOk = async (url: string, child: ChildProcess, logFile: string): Promise<void> => {
  const deadline = performance.now() + READY_MS_MAX;
  const isOk = () =>
    fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isOk())) {
    if (ended(child)) throw new Error(`the server of ${url} ended: ${lastError(logFile)}`);
    if (performance.now() > deadline)
      throw new Error(`${url} did not respond 200 within ${READY_MS_MAX} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

/** Ends a process and waits for it. */
export const stopProcess = async (child: ChildProcess): Promise<void> => {
  if (ended(child)) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
};

const started = async (
  [file, args]: [string, string[]],
  { readyPath, env, logFile }: ServerOrder,
): Promise<Server> => {
  // Two benches can run at once, though neither should.
  const [port] = await freePorts(1);
  const out = openSync(logFile, 'a');
  const startedAt = performance.now();
  const child = spawn(file, args, {
    cwd: ROOT,
    env: { ...env, PORT: String(port) },
    stdio: ['ignore', out, out, 'ipc'],
  });
  const url = `http://127.0.0.1:${port}`;
  try {
    await untilOk(`${url}${readyPath}`, child, logFile);
  } catch (error) {
    await stopProcess(child);
    throw error;
  }
  return {
    url,
    readyMs: performance.now() - startedAt,
    async usage() {
      const sent = once(child, 'message');
      child.send('usage');
      return (await sent)[0] as Usage;
    },
    stop: () => stopProcess(child),
  };
};

/** Starts a server with the probe in it. Throws Error when it ends or is not ready in time. */
export const startServer = (order: ServerOrder): Promise<Server> =>
  started(onCpu(order.cpus ?? 0, [process.execPath, '--import', PROBE, ...order.args]), order);

/** How long `npm start` takes until the service is ready, as an operator sees it. */
export const readyMsOfNpmStart = async (order: Omit<ServerOrder, 'args'>): Promise<number> => {
  const server = await started(onCpu(0, ['npm', 'start']), { ...order, args: [] });
  await server.stop();
  return server.readyMs;
};
