/**
 * `npm run engines -- up|down`: real servers without Docker, for contributors and for CI.
 * `eval "$(npm run -s engines -- up)"` sets the variables of the engines that this machine can run,
 * and names the others on stderr with the reason. `down` ends the engines and removes their data.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { CACHE, type Engine } from './engine.ts';
import { ferretdb } from './engine-ferretdb.ts';
import { kafka } from './engine-kafka.ts';
import { localstripe } from './engine-localstripe.ts';
import { stripeMock } from './engine-stripe-mock.ts';

const ENGINES: readonly Engine[] = [kafka, ferretdb, stripeMock, localstripe];
const STATE = join(CACHE, 'running.json');
const END_MS_MAX = 10_000;

const running = z.object({
  folder: z.string(),
  engines: z.array(
    z.object({
      name: z.string(),
      variables: z.record(z.string(), z.string()),
      pid: z.int(),
      startedAt: z.string(),
    }),
  ),
});
type Running = z.infer<typeof running>;

const say = (line: string): void => void process.stderr.write(`engines: ${line}\n`);

/** Undefined where nothing runs, or where another version of this script wrote the file. */
const readState = (): Running | undefined =>
  existsSync(STATE) ? running.safeParse(JSON.parse(readFileSync(STATE, 'utf8'))).data : undefined;

/** When a process was started: a later process with the same id has another time. */
const startedAt = (pid: number): string =>
  spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).stdout?.trim() ?? '';

const isRunning = (known: Running['engines'][number]): boolean =>
  known.startedAt !== '' && startedAt(known.pid) === known.startedAt;

const startOne = async (
  engine: Engine,
  folder: string,
): Promise<Running['engines'][number] | undefined> => {
  const missing = engine.available();
  if (missing !== undefined) return void say(`${engine.name} skipped: ${missing}`);
  try {
    const { variables, pid } = await engine.start(join(folder, engine.name.toLowerCase()), (line) =>
      say(`${engine.name}: ${line}`),
    );
    return { name: engine.name, variables, pid, startedAt: startedAt(pid) };
  } catch (error) {
    return void say(`${engine.name} skipped: ${error instanceof Error ? error.message : error}`);
  }
};

const up = async (): Promise<void> => {
  const before = readState();
  const folder = before?.folder ?? mkdtempSync(join(tmpdir(), 'payments-engines-'));
  const alive = before?.engines.filter(isRunning) ?? [];
  const missing = ENGINES.filter(({ name }) => !alive.some((known) => known.name === name));
  const started = await Promise.all(missing.map((engine) => startOne(engine, folder)));
  const engines = [...alive, ...started.filter((known) => known !== undefined)];
  mkdirSync(CACHE, { recursive: true });
  writeFileSync(STATE, JSON.stringify({ folder, engines } satisfies Running));
  for (const { variables } of engines) {
    for (const [name, value] of Object.entries(variables))
      process.stdout.write(`export ${name}='${value}'\n`);
  }
};

const end = async (known: Running['engines'][number]): Promise<void> => {
  if (!isRunning(known)) return;
  process.kill(known.pid, 'SIGTERM');
  const deadline = performance.now() + END_MS_MAX;
  while (isRunning(known)) {
    if (performance.now() > deadline) process.kill(known.pid, 'SIGKILL');
    await delay(100);
  }
};

const down = async (): Promise<void> => {
  const state = readState();
  if (state === undefined) return say('none is running');
  await Promise.all(state.engines.map(end));
  rmSync(state.folder, { recursive: true, force: true });
  rmSync(STATE);
  say(`${state.engines.map(({ name }) => name).join(', ') || 'none'} ended, data removed`);
};

const verb = process.argv[2];
if (verb === 'up') await up();
else if (verb === 'down') await down();
else {
  say('usage: npm run engines -- up|down');
  process.exitCode = 2;
}
