'use strict';
/**
 * Starts a .ts main on a Node that can run it: `node scripts/launch.cjs <main.ts> [args]`. The arguments
 * `--watch` and `--inspect` are Node's. The machine's own Node reads this file, so Node 14 must parse it.
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

const reaches = (have, need) => {
  const parts = (have || '').split('.').map(Number);
  const index = need.findIndex((number, at) => (parts[at] || 0) !== number);
  return index === -1 || (parts[index] || 0) > need[index];
};

// Node 24 strips types; SQLite before 3.51.3 can corrupt a write-ahead log.
const canRun = (versions) =>
  reaches(versions.node, [24, 0, 0]) && reaches(versions.sqlite, [3, 51, 3]);

const install = (main) => {
  // npm leaves the lock file out of a package, and Node strips no types inside of node_modules.
  if (!fs.existsSync(inRoot('package-lock.json'))) {
    fail(
      'this does not run as an npm package: take the archive of a release, a clone or the image',
    );
  }
  const args = /^(scripts|tools)\//.test(main) ? ['ci'] : ['ci', '--omit=dev'];
  // npm's output goes to stderr, because stdout belongs to the command.
  const done = spawnSync('npm', args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (done.status !== 0) {
    fail('the packages could not be installed; run "npm ci" in the project folder and try again');
  }
};

/** The Node of the packages: its binary, because a shell script would keep signals from it. */
const bundledNode = () => {
  const file = inRoot('node_modules', '.bin', 'node');
  const isAnother = () => fs.realpathSync(file) !== fs.realpathSync(process.execPath);
  return fs.existsSync(file) && isAnother() ? fs.realpathSync(file) : undefined;
};

const runHere = (main, args) => {
  const file = inRoot(main);
  process.argv = [process.argv[0], file, ...args];
  const { setFlagsFromString } = require('node:v8');
  // This thread's heap has taken the flag, which would override the limits of the service's threads (ADR-0112).
  setFlagsFromString('--max-semi-space-size=0');
  // Collects old garbage at twice the live heap, not at up to four times (ADR-0112).
  setFlagsFromString('--heap-growing-percent=100');
  // Objects that the engine puts into the old generation at once are soon garbage there (ADR-0112).
  setFlagsFromString('--no-allocation-site-pretenuring');
  // In the project: others can write to a shared temp folder. After the flags: compiled code is bound to them.
  const { enableCompileCache } = require('node:module');
  const compiled = inRoot('node_modules', '.cache', 'compile');
  if (enableCompileCache) enableCompileCache(compiled);
  // The threads of a service learn of the folder from here.
  process.env.NODE_COMPILE_CACHE = process.env.NODE_COMPILE_CACHE || compiled;
  if (process.channel) {
    // After kill -9 of the launcher no service may go on and hold port and data folder.
    process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
    process.channel.unref();
  }
  return import(pathToFileURL(file).href);
};

const isService = (main) => main.endsWith('main.ts') && main !== 'cli/main.ts';
const STOPS = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/** Until a service has its own handlers nothing is open, so a signal ends it in good order. */
const catchSignals = () => {
  for (const signal of STOPS) {
    process.on(signal, () => process.listenerCount(signal) === 1 && process.exit(0));
  }
  for (const signal of ['SIGUSR1', 'SIGUSR2']) process.on(signal, () => undefined);
};

const isForService = (flag) => /^--(watch|inspect|max-semi-space-size|v8-pool-size)/.test(flag);

const runThere = (node, flags, main, args) => {
  // Frees the debugger's port for the service.
  inspector.close();
  const stdio = ['inherit', 'inherit', 'inherit', 'ipc'];
  const child = spawn(node, [...flags, __filename, main, ...args], { stdio });
  // Under `node --watch` the service names the files that it has read, which this process's parent watches.
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
    // The service had no handlers yet.
    if (signal && signal === passedOn && isService(main)) process.exit(0);
    process.exit(signal ? 128 + os.constants.signals[signal] : code);
  });
};

/** Runs `main`, a path from the project's folder, in this process; with `flags`, or on the bundled Node, in another. */
const launch = (main, args, flags = []) => {
  if (isService(main)) catchSignals();
  if (!fs.existsSync(inRoot('node_modules'))) install(main);
  const runs = canRun(process.versions);
  if (runs && flags.length === 0) return runHere(main, args);
  const node = runs ? process.execPath : bundledNode();
  if (node) return runThere(node, [...process.execArgv.filter(isForService), ...flags], main, args);
  return fail(
    `Node 24.21 or later is needed and this is ${process.version}: run "npm ci", which brings ` +
      'Node 24 along, or install Node 24',
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
