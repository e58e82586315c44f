/**
 * Runs a test file with Jest's own test runner, but has Node load the modules: those of the product
 * and of its packages once in a worker, those below test/ once for each test file, but for those that hold
 * nothing of a file, below test/support/once/.
 */
import { createRequire, registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(import.meta.url);
const { default: circus } = require('jest-circus/runner');

const TESTS = pathToFileURL(join(import.meta.dirname, '..')).href;
const ONCE = new URL('support/once/', `${TESTS}/`).href;
const GLOBALS = new URL('globals.mjs', import.meta.url).href;

/** The part of an address that tells the modules of one test file from those of another. */
const fileOf = (url) => (url?.startsWith(TESTS) ? new URL(url).search : '');

registerHooks({
  resolve: (specifier, context, next) => {
    const file = fileOf(context.parentURL);
    if (specifier === '@jest/globals') return { url: GLOBALS + file, shortCircuit: true };
    const found = next(specifier, context);
    const isOfFile = found.url.startsWith(TESTS) && !found.url.startsWith(ONCE);
    return isOfFile ? { ...found, url: found.url + file } : found;
  },
});

const ADDRESS = /file:\/+/g;
const FILE = /\?file=[\w./%-]+/g;
const RUNNER = /\n.*\/test\/jest\/runner\.mjs.*/g;

/** Errors name files as an editor opens them, and as Jest finds the line that it shows. */
const namePlainFiles = () => {
  const format = Error.prepareStackTrace;
  Error.prepareStackTrace = (error, frames) =>
    format(error, frames).replaceAll(ADDRESS, '/').replaceAll(FILE, '').replaceAll(RUNNER, '');
};

/** Each file has tests and hooks of its own: Jest keeps them in this module and in this global. */
const requireAnew = (file) => {
  delete globalThis[Symbol.for('EVENT_HANDLERS')];
  delete require.cache[file];
  return require(file);
};

const setTimeoutOfTests = (ms) => {
  globalThis[Symbol.for('TEST_TIMEOUT_SYMBOL')] = ms;
};

/** Named, not numbered: the next run finds the compiled modules again, whichever worker has the file. */
const importTests = (file) => {
  const { href } = pathToFileURL(file);
  return import(`${href}?file=${href.slice(TESTS.length + 1)}`);
};

/** Jest's runtime, but for the loading of modules. */
const runtimeOfNode = (runtime, { moduleMocker }) => {
  const jest = {
    fn: moduleMocker.fn.bind(moduleMocker),
    spyOn: moduleMocker.spyOn.bind(moduleMocker),
    setTimeout: setTimeoutOfTests,
  };
  const ours = {
    requireInternalModule: requireAnew,
    setGlobalsForRuntime: (globals) => {
      globalThis[Symbol.for('payments.jest')] = { ...globals, jest };
    },
    unstable_shouldLoadAsEsm: () => true,
    unstable_importModule: importTests,
  };
  return new Proxy(runtime, {
    get: (target, name) => {
      const value = target[name];
      return ours[name] ?? (typeof value === 'function' ? value.bind(target) : value);
    },
  });
};

/** Sources that change, or whose lines are counted, are Jest's to load: anew for each file. */
const loadsAnew = ({ watch, watchAll, collectCoverage }) => watch || watchAll || collectCoverage;

export default async (globalConfig, config, environment, runtime, ...rest) => {
  if (loadsAnew(globalConfig)) return circus(globalConfig, config, environment, runtime, ...rest);
  const { console } = globalThis;
  const { env } = process;
  // A command that is run in a test narrows the rights of every file that its process makes.
  const umask = process.umask();
  namePlainFiles();
  setTimeoutOfTests(undefined);
  globalThis.console = environment.global.console;
  process.env = { ...env };
  try {
    const loader = runtimeOfNode(runtime, environment);
    return await circus(globalConfig, config, environment, loader, ...rest);
  } finally {
    globalThis.console = console;
    process.env = env;
    process.umask(umask);
  }
};
