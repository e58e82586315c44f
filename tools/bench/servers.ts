/** Servers run on the first CPU, load and commands on the second, so that neither slows the other. */
import { type ChildProcess, type Serializable, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePorts } from '../../scripts/free-ports.ts';
import type { Contestant, Workplace } from './contestants.ts';
import type { LoadOrder, LoadResult } from './load.ts';
import type { Usage } from './usage.ts';

const READY_MS_MAX = 300_000;
const STOP_MS_MAX = 60_000;
const HERE = import.meta.dirname;
const canPin = availableParallelism() > 1 && spawnSync('taskset', ['-V']).status === 0;

/** A command on one of the CPUs, as `spawn` takes it. */
export const onCpu = (cpu: 0 | 1, command: readonly string[]): [string, string[]] => {
  const [file = '', ...args] = canPin ? ['taskset', '-c', String(cpu), ...command] : command;
  return [file, args];
};

/** Sends messages to a child process, each for a reply. Throws where the child ends instead. */
const askerOf = <Message extends Serializable, Reply>(child: ChildProcess) => {
  const ended = new AbortController();
  child.once('exit', () => ended.abort());
  return async (message: Message): Promise<Reply> => {
    child.send(message);
    return (await once(child, 'message', { signal: ended.signal }))[0];
  };
};

/**
 * Starts a contestant on its data folder. Throws Error with the end of its output where it ends or is
 * not ready within five minutes.
 */
export const startServer = async (contestant: Contestant, place: Workplace) => {
  const { name, cwd, args, amounts } = contestant;
  const [port] = await freePorts(1);
  const env: NodeJS.ProcessEnv = { ...place.envOf(name), PORT: String(port) };
  const logFile = `${env.DATA_DIR}.log`;
  const out = openSync(logFile, 'a');
  const command = [process.execPath, '--import', join(HERE, 'usage.ts'), ...args];
  const startedAt = performance.now();
  const child = spawn(...onCpu(0, command), { cwd, env, stdio: ['ignore', out, out, 'ipc'] });
  const ended = once(child, 'exit');
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const stop = async (): Promise<void> => {
    const killing = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX);
    child.kill('SIGTERM');
    await ended;
    clearTimeout(killing);
  };
  const url = `http://127.0.0.1:${port}`;
  while (!(await fetch(`${url}/health/ready`).catch(() => undefined))?.ok) {
    if (hasEnded() || performance.now() - startedAt > READY_MS_MAX) {
      await stop();
      throw new Error(`${name} does not start: ${readFileSync(logFile, 'utf8').slice(-600)}`);
    }
    await wait(5);
  }
  const readyMs = performance.now() - startedAt;
  const usage = askerOf<'usage', Usage>(child);
  return { name, amounts, url, readyMs, usage: () => usage('usage'), stop };
};

/** A running server; `readyMs` is from its start to the first 200 of its health check. */
export type Server = Awaited<ReturnType<typeof startServer>>;

/** Starts the process that sends requests. It remembers ids, so a run has one. */
export const startLoad = () => {
  const command = [process.execPath, join(HERE, 'load.ts')];
  const child = spawn(...onCpu(1, command), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  return { send: askerOf<LoadOrder, LoadResult>(child), end: () => child.kill() };
};
