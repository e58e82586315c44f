/**
 * `npm run engines -- up|down|tried`: real servers without Docker, for contributors and for CI.
 * `eval "$(npm run -s engines -- up)"` sets the variables of the engines that this machine can run,
 * and names the others on stderr with the reason. `down` ends the engines and removes their data. `tried` is tried.ts.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CACHE, type Engine, type Started } from './engine.ts';
import { ferretdb } from './ferretdb.ts';
import { kafka } from './kafka.ts';
import { stripeMock } from './stripe-mock.ts';
import { writeTried } from './tried.ts';

const ENGINES: readonly Engine[] = [kafka, ferretdb, stripeMock];
const END_MS_MAX = 10_000;

const folderOf = ({ name }: Engine): string => join(CACHE, 'running', name.toLowerCase());
const runningFile = (engine: Engine): string => `${folderOf(engine)}.json`;
const say = (line: string): void => void process.stderr.write(`engines: ${line}\n`);

/** When a process was started: a later process with the same id has another time. */
const startedAt = (pid: number): string =>
  spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).stdout;

/** The engine that an earlier `up` started, as long as it runs. */
const runningOf = (engine: Engine): Started | undefined => {
  if (!existsSync(runningFile(engine))) return undefined;
  const running = JSON.parse(readFileSync(runningFile(engine), 'utf8'));
  return startedAt(running.pid) === running.startedAt ? running : undefined;
};

const startOne = async (engine: Engine): Promise<Started | undefined> => {
  const missing = engine.available();
  if (missing !== undefined) return void say(`${engine.name} skipped: ${missing}`);
  try {
    const started = await engine.start(folderOf(engine), (line) => say(`${engine.name}: ${line}`));
    const running = { ...started, startedAt: startedAt(started.pid) };
    writeFileSync(runningFile(engine), JSON.stringify(running));
    return started;
  } catch (error) {
    return void say(`${engine.name} skipped: ${error instanceof Error ? error.message : error}`);
  }
};

const up = async (): Promise<void> => {
  const all = await Promise.all(ENGINES.map(async (one) => runningOf(one) ?? startOne(one)));
  for (const [name, value] of all.flatMap((one) => Object.entries(one?.variables ?? {})))
    process.stdout.write(`export ${name}='${value}'\n`);
};

/** Ends an engine, and resolves with its name, unless it does not run. */
const end = async (engine: Engine): Promise<string[]> => {
  const running = runningOf(engine);
  if (running !== undefined) process.kill(running.pid, 'SIGTERM');
  const deadline = performance.now() + END_MS_MAX;
  while (running !== undefined && runningOf(engine) !== undefined) {
    if (performance.now() > deadline) process.kill(running.pid, 'SIGKILL');
    await delay(100);
  }
  rmSync(runningFile(engine), { force: true });
  rmSync(folderOf(engine), { recursive: true, force: true });
  return running === undefined ? [] : [engine.name];
};

const down = async (): Promise<void> => {
  const ended = (await Promise.all(ENGINES.map(end))).flat();
  say(ended.length === 0 ? 'none is running' : `${ended.join(', ')} ended, data removed`);
};

const verb = process.argv[2];
if (verb === 'up') await up();
else if (verb === 'down') await down();
else if (verb === 'tried') await writeTried();
else {
  say('usage: npm run engines -- up|down|tried');
  process.exitCode = 2;
}
