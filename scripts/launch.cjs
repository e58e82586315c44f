'use strict';
/**
 * Starts a .ts main on a Node that can run it: `node scripts/launch.cjs <main.ts> [args]`. Among the
 * arguments, `--watch` and `--inspect` are Node's: `npm start -- --watch`.
 * Any Node from 14 on must be able to parse this file, for it may be the machine's own.
 */
const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const inspector = require('node:inspector');
const os = require('node:os');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

const root = path.join(__dirname, '..');
const inRoot = (...names) => path.join(root, ...names);

const fail = (line) => {
  process.stderr.write(`payments: ${line}\n`);
  process.exit(1);
};

/** True when the dotted version `have` is `need` or later. */
const reaches = (have, need) => {
  const parts = (have || '').split('.').map(Number);
  const index = need.findIndex((number, at) => (parts[at] || 0) !== number);
  return index === -1 || (parts[index] || 0) > need[index];
};

// Node 24 strips types; SQLite before 3.51.3 can corrupt a write-ahead log.
const canRun = (versions) =>
  reaches(versions.node, [24, 0, 0]) && reaches(versions.sqlite, [3, 51, 3]);

const install = (main) => {
  const args = /^(scripts|tools)\//.test(main) ? ['ci'] : ['ci', '--omit=dev'];
  // npm's output goes to stderr: stdout belongs to the command (`payments token` prints a token).
  const done = spawnSync('npm', args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (done.status !== 0) {
    fail('the packages could not be installed; run "npm ci" in the project folder and try again');
  }
};

/** The Node that came with the packages: the binary, not a shell script, so that signals reach it. */
const bundledNode = () =>
  [inRoot('node_modules', 'node', 'bin', 'node'), inRoot('node_modules', '.bin', 'node')].find(
    (file) => fs.existsSync(file) && fs.realpathSync(file) !== fs.realpathSync(process.execPath),
  );

const runHere = (main, args) => {
  const file = inRoot(main);
  process.argv = [process.argv[0], file, ...args];
  const { setFlagsFromString } = require('node:v8');
  // The heap of this thread has taken the flag. The engine would also put it over the limits of the threads
  // that the service starts (ADR-0112).
  setFlagsFromString('--max-semi-space-size=0');
  // Old garbage is collected at twice of what lives, and not at up to four times (ADR-0112).
  setFlagsFromString('--heap-growing-percent=100');
  // What the engine would put into the old generation at once is soon garbage there, and keeps alive what
  // it names until all of it is collected (ADR-0112).
  setFlagsFromString('--no-allocation-site-pretenuring');
  // In the project, because other users could write code into a shared temporary folder for the service to
  // run. Behind the flags, for the engine refuses what was compiled under others, and the name of the folder
  // that Node takes in here says which they are.
  const { enableCompileCache } = require('node:module');
  const compiled = inRoot('node_modules', '.cache', 'compile');
  if (enableCompileCache) enableCompileCache(compiled);
  // The threads of a service load modules of their own, and learn of the folder from here alone.
  process.env.NODE_COMPILE_CACHE = process.env.NODE_COMPILE_CACHE || compiled;
  if (process.channel) {
    // After kill -9 of the launcher no service must keep running and hold port and data folder.
    process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
    process.channel.unref();
  }
  return import(pathToFileURL(file).href);
};

const isService = (main) => main.endsWith('main.ts') && main !== 'cli/main.ts';
const STOPS = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/** Until a service has handlers of its own nothing is open, and a signal that stops it ends it in good order. */
const catchSignals = () => {
  for (const signal of STOPS) {
    process.on(signal, () => process.listenerCount(signal) === 1 && process.exit(0));
  }
  for (const signal of ['SIGUSR1', 'SIGUSR2']) process.on(signal, () => undefined);
};

/** Flags of Node that are meant for the service, wherever they stand among the arguments. */
const isForService = (flag) => /^--(watch|inspect|max-semi-space-size|v8-pool-size)/.test(flag);

const runThere = (node, flags, main, args) => {
  // Frees the debugger's port: a developer wants to debug the service, not this launcher.
  inspector.close();
  const stdio = ['inherit', 'inherit', 'inherit', 'ipc'];
  const child = spawn(node, [...flags, __filename, main, ...args], { stdio });
  // Under `node --watch` the service sends the names of the files that it has read; the parent of
  // this process watches them.
  child.on('message', (message) => process.send?.(message));
  let passedOn;
  for (const signal of STOPS) {
    process.on(signal, () => {
      passedOn = signal;
      child.kill(signal);
    });
  }
  child.on('error', () => fail(`${node} could not be started; run "npm ci" and try again`));
  child.on('exit', (code, signal) => {
    // It had not come as far as its handlers.
    if (signal && signal === passedOn && isService(main)) process.exit(0);
    process.exit(signal ? 128 + os.constants.signals[signal] : code);
  });
};

/**
 * Runs `main`, a path from the project's folder, in this process or on the bundled Node. `flags` of
 * Node always take a process of their own.
 */
const launch = (main, args, flags = []) => {
  if (isService(main)) catchSignals();
  if (!fs.existsSync(inRoot('node_modules'))) install(main);
  const runs = canRun(process.versions);
  if (runs && flags.length === 0) return runHere(main, args);
  const node = runs ? process.execPath : bundledNode();
  if (node) return runThere(node, [...process.execArgv.filter(isForService), ...flags], main, args);
  return fail(
    `Node 24.21 or later is needed and this is ${process.version}: run "npm ci" without ` +
      'ignore-scripts (it brings Node 24 along), or install Node 24',
  );
};

module.exports = { launch };
if (require.main === module) {
  const [main, ...args] = process.argv.slice(2);
  // `npm test -- --watch` is Jest's.
  const isForNode = (arg) => main.endsWith('main.ts') && isForService(arg);
  const isForMain = (arg) => !isForNode(arg);
  launch(main, args.filter(isForMain), args.filter(isForNode));
}
