/**
 * The launcher on the machine's own Node, with a small main: what `npm start` and
 * `npx payments` promise about signals, exit codes and output.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, expect, test } from '@jest/globals';
import { shareOf, testOfLongRun } from '../support/long-run-share.ts';
import {
  cleanEnv,
  LAUNCHER,
  NODE,
  ROOT,
  spawnService,
  untilReady,
} from '../support/service-processes.ts';
import { until } from '../support/until.ts';

/** Of a heap, in megabytes. */
const LIMIT = "process.getBuiltinModule('node:v8').getHeapStatistics().heap_size_limit / 2 ** 20";

const MAIN = `
const word: string = process.argv[2] ?? 'nothing';
let signals = 0;
if (word !== 'loading') process.on('SIGTERM', () => {
  signals += 1;
  process.stdout.write('TERM ' + signals + '\\n');
  if (signals === 2) process.exit(7);
});
if (word === 'wait' || word === 'loading') setInterval(() => {}, 1000);
process.stdout.write(process.pid + ' ' + word + '\\n');
if (word === 'flags') {
  process.stdout.write('at ' + (await import('node:inspector')).url() + '\\n');
  process.stdout.write('flags ' + process.execArgv + '\\n');
  process.stdout.write('main ' + ${LIMIT} + '\\n');
  const { Worker } = await import('node:worker_threads');
  const resourceLimits = { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 64 };
  new Worker("console.log('thread', ${LIMIT})", { eval: true, resourceLimits });
}
if (word === 'part') process.stdout.write((await import('./part.ts')).part + '\\n');
`;

/** A project with this launcher, a main of its own, and `node_modules` as given. */
const projectWith = (link: (modules: string) => void): string => {
  const root = mkdtempSync(join(tmpdir(), 'payments-launch-'));
  cpSync(join(ROOT, 'scripts/launch.cjs'), join(root, 'scripts/launch.cjs'));
  writeFileSync(join(root, 'package.json'), '{"type":"module"}');
  writeFileSync(join(root, 'main.ts'), MAIN);
  mkdirSync(join(root, 'node_modules'));
  link(join(root, 'node_modules'));
  return root;
};
/** As `npm ci` leaves it. */
const linkNode = (modules: string): void => {
  mkdirSync(join(modules, '.bin'));
  symlinkSync(join(ROOT, 'node_modules/.bin/node'), join(modules, '.bin/node'));
};
const whole = projectWith((modules) => linkNode(modules));
const withoutNode = projectWith(() => {});
afterAll(() => {
  for (const root of [whole, withoutNode]) rmSync(root, { recursive: true });
});

/** A Node that reports an older version, as the machine's own may. */
const OLD_NODE = [
  '--import',
  `data:text/javascript,${encodeURIComponent(
    `Object.defineProperty(process.versions, 'node', { value: '20.20.2' });
   Object.defineProperty(process, 'execPath', { value: '/bin/sh' });`,
  )}`,
];
const NODES: [string, string[]][] = [
  ['Node 24', []],
  ['an older Node', OLD_NODE],
];

/** The processes that a test has started; a failed test may leave them running. */
const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGTERM');
});

const launch = (
  flags: string[],
  words: string | string[],
  root = whole,
  env: NodeJS.ProcessEnv = {},
) => {
  const args = [...flags, join(root, 'scripts/launch.cjs'), 'main.ts', ...[words].flat()];
  const child = spawn(realpathSync(NODE), args, {
    env: { ...cleanEnv(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  let output = '';
  const awaited: { text: string; resolve: () => void }[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => {
      output += part;
      for (const { text, resolve } of awaited) if (output.includes(text)) resolve();
    });
  }
  return {
    child,
    output: () => output,
    /** Resolves once the text has been written; the test's own time-out bounds it. */
    writes: (text: string) =>
      new Promise<void>((resolve) =>
        output.includes(text) ? resolve() : awaited.push({ text, resolve }),
      ),
    ended: new Promise<{ code: number | null; signal: string | null }>((resolve) =>
      child.on('close', (code, signal) => resolve({ code, signal })),
    ),
  };
};

test.each(NODES)(
  'started by %s, the main gets its arguments and every SIGTERM; its output and its exit code are all there is',
  async (_, flags) => {
    const run = launch(flags, 'wait');
    await run.writes('wait');
    run.child.kill('SIGTERM');
    await run.writes('TERM 1');
    run.child.kill('SIGTERM');
    expect(await run.ended).toEqual({ code: 7, signal: null });
    expect(run.output()).toMatch(/^\d+ wait\nTERM 1\nTERM 2\n$/);
  },
);

const ENDED = NODES.toReversed().flatMap(([node, flags]) =>
  (['SIGTERM', 'SIGINT', 'SIGHUP'] as const).map((signal) => ({ node, flags, signal })),
);
test.each(shareOf(ENDED, 1))(
  'started by $node, a main that has no handlers yet ends by $signal with exit code 0, and neither SIGUSR1 nor SIGUSR2 does anything to it',
  async ({ flags, signal }) => {
    const run = launch(flags, 'loading');
    await run.writes('loading');
    run.child.kill('SIGUSR1');
    run.child.kill('SIGUSR2');
    run.child.kill(signal);
    expect(await run.ended).toEqual({ code: 0, signal: null });
    expect(run.output()).toMatch(/^\d+ loading\n$/);
  },
);

test('kill -9 of what an older Node has started ends the main too', async () => {
  const run = launch(OLD_NODE, 'wait');
  await run.writes('wait');
  run.child.kill('SIGKILL');
  expect(await run.ended).toEqual({ code: null, signal: 'SIGKILL' });
});

/** The limit of a plain Node with this flag; the machine's memory is a part of it. */
const limitWith = (flag: string): number =>
  Number(spawnSync(NODE, [flag, '-p', LIMIT], { encoding: 'utf8' }).stdout);

type Placed = (given: string[], flags: string[], word: string) => [string[], string[]];
/** The two places of a flag: `npm start -- <flag>` and `node <flag> scripts/launch.cjs`. */
const FLAGGED: [string, Placed][] = [
  ['before the launcher', (given, flags, word) => [[...flags, ...given], [word]]],
  ['behind the main', (given, flags, word) => [flags, [word, ...given]]],
];
const BOTH = NODES.flatMap(([node, flags]) =>
  FLAGGED.map(([place, placed]) => ({ node, flags, place, placed })),
).toReversed();

test.each(shareOf(BOTH, 1))(
  'flags $place, started by $node: the sizes of memory reach the main, the debugger attaches to it alone',
  async ({ flags, placed }) => {
    const given = ['--inspect=127.0.0.1:0', '--v8-pool-size=1', '--max-semi-space-size=32'];
    const run = launch(...placed(given, flags, 'flags'));
    expect(await run.ended).toEqual({ code: 0, signal: null });
    const listening = [...run.output().matchAll(/listening on (ws:.+)/g)].map(([, url]) => url);
    expect(/^at (ws:.+)$/m.exec(run.output())?.[1]).toBe(listening.at(-1));
    // ADR-0112.
    expect(run.output()).toMatch(/^flags .*--v8-pool-size=1,--max-semi-space-size=32$/m);
    expect(run.output()).toContain(`\nmain ${limitWith('--max-semi-space-size=32')}\n`);
    // ADR-0112: a thread keeps to the limits that it was started with.
    expect(run.output()).toMatch(/^thread 70$/m);
  },
);

test.each(shareOf(BOTH, 1))(
  '--watch $place, started by $node: a changed file restarts the main, and a signal ends both processes',
  async ({ flags, placed }) => {
    const root = projectWith((modules) => linkNode(modules));
    const part = join(root, 'part.ts');
    writeFileSync(part, "export const part: string = 'written first';");
    const run = launch(...placed(['--watch'], flags, 'part'), root);
    await run.writes('written first');
    const again = run.writes('written anew').then(() => true);
    let pauseMs = 100;
    // Node begins to watch a file at some moment after it was read: a change before that is lost.
    await until('the main is started again', () => {
      writeFileSync(part, "export const part: string = 'written anew';");
      pauseMs *= 2;
      return Promise.race([again, delay(pauseMs, false, { ref: false })]);
    });
    run.child.kill('SIGTERM');
    await run.ended;
    rmSync(root, { recursive: true });
  },
);

const WATCHED: [string, string[]][] = [
  ['the launcher', [LAUNCHER, 'embedded/main.ts', '--watch']],
  ['node itself', ['--watch', 'embedded/main.ts']],
];
testOfLongRun.each(WATCHED)(
  'the service with its event store thread starts and stops under --watch of %s',
  async (_of, args) => {
    const service = await spawnService({ command: [realpathSync(NODE), ...args] });
    try {
      await untilReady(service);
    } finally {
      // A signal, because kill -9 would leave Node's own watcher behind.
      service.kill();
      await service.exited;
    }
    expect(service.stderr()).not.toContain('uncaught');
    expect(service.stdout()).toContain('stopped: all events are on disk');
    rmSync(service.dataDir, { recursive: true });
  },
);

test('a start takes what the one before it has compiled, also after a run without the launcher', async () => {
  const compiled = join(whole, 'node_modules/.cache/compile');
  await launch([], 'hello').ended;
  spawnSync(NODE, [join(whole, 'main.ts')], { env: { NODE_COMPILE_CACHE: compiled } });
  const again = launch([], 'hello', whole, { NODE_DEBUG_NATIVE: 'COMPILE_CACHE' });
  await again.ended;
  expect(again.output()).toMatch(/cache for ESM \S+\/main\.ts was accepted/);
  expect(again.output()).not.toContain('was rejected');
});

test('a main that a signal ends gives the exit code 128 + the number of the signal', async () => {
  const run = launch(OLD_NODE, 'wait');
  await run.writes('wait');
  process.kill(Number.parseInt(run.output(), 10), 'SIGKILL');
  expect(await run.ended).toEqual({ code: 137, signal: null });
});

test('without a Node that can run the main: one line that says what to do, exit code 1', async () => {
  const run = launch(OLD_NODE, 'hello', withoutNode);
  expect((await run.ended).code).toBe(1);
  expect(run.output()).toMatch(/^payments: Node 24\.21 or later is needed.*npm ci.*\n$/);
});
