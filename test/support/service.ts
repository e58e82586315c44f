/**
 * The service as an operator has it: a process of its own, a real socket, a data folder. Every
 * wait here has a bound and fails with what the process wrote.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { makeToken } from '../../cli/settings.ts';
import { loadConfig } from '../../shared/runtime/load-config.ts';
import { freePort } from './free-port.ts';
import { expectDescribed } from './once/api-description.ts';
import { HANGS_MS, PATIENT } from './time-bounds.ts';
import { until } from './until.ts';

export const ROOT = join(import.meta.dirname, '../..');
/** The Node that came with the packages, whatever the machine's own is. */
export const NODE = join(ROOT, 'node_modules/.bin/node');

export type ServiceOptions = {
  /** Settings over the test's own: loopback, a free port, a temporary data folder. */
  env?: NodeJS.ProcessEnv | undefined;
  /** A folder to go on with; it is the caller's to remove. */
  dataDir?: string | undefined;
  /** Instead of `node scripts/launch.cjs embedded/main.ts`, for example `['npm', 'start']`. */
  command?: readonly string[] | undefined;
  /** Its stdout is open and never read, its stderr is closed. */
  unread?: boolean | undefined;
};

export type Exit = { code: number | null; signal: NodeJS.Signals | null };

type Failure = { failureCode: string; providerFailureCode?: string };
type Transaction = { id: string; type: string; amount: number; result: string; failure?: Failure };

/** The fields of the contract's bodies that tests look at; which are there depends on the answer. */
export type Body = {
  paymentId: string;
  status: string;
  amount: number;
  capturedAmount: number;
  refundedAmount: number;
  refundableAmount: number;
  transactions: Transaction[];
  failure: Failure;
  error: string;
  details: string[];
  [field: string]: unknown;
};

export type CommandResponse = {
  status: number;
  headers: Headers;
  /** The body as it came. */
  text: string;
  /** The body read as JSON; empty when it is none. */
  json: Body;
};

/** A process of the service, ready or not. */
export type ServiceProcess = Awaited<ReturnType<typeof spawnService>>;

export type Client = ReturnType<typeof clientOf>;

export type Service = ServiceProcess & Client;

const collect = (stream: NodeJS.ReadableStream | null): (() => string) => {
  let text = '';
  stream?.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  return () => text;
};

/** `close` comes once the output has ended, too; without a reader it never does. */
const exitOf = async (child: ChildProcess, when: 'close' | 'exit' = 'close'): Promise<Exit> => {
  const [code, signal] = await once(child, when);
  return { code, signal };
};

/** The launcher; the path of a main, and what else is the main's, follow. */
export const LAUNCHER = join(ROOT, 'scripts/launch.cjs');

/**
 * The environment without the settings of the shell that runs the tests, and without the folder of what Jest's
 * workers have compiled: the engine refuses that under the launcher's flags. A main is started
 * by the launcher, which has a folder of its own: without one, a start takes half as long again.
 */
export const cleanEnv = (): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME,
});

/** Starts a process of the service and does not wait: for starts that are to be refused. */
export const spawnService = async (options: ServiceOptions = {}) => {
  const isOwn = options.dataDir === undefined;
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'payments-e2e-'));
  const port = Number(options.env?.PORT ?? (await freePort()));
  const [file = NODE, ...args] = options.command ?? [NODE, LAUNCHER, 'embedded/main.ts'];
  const own = { DATA_DIR: dataDir, PORT: String(port) };
  const env = { ...cleanEnv(), ...PATIENT, ...own, ...options.env };
  const child = spawn(file, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const { unread = false } = options;
  const exited = exitOf(child, unread ? 'exit' : 'close');
  if (unread) child.stderr.destroy();
  const running = () => child.exitCode === null && child.signalCode === null;
  return {
    pid: child.pid ?? 0,
    url: `http://127.0.0.1:${port}`,
    port,
    dataDir,
    stdout: unread ? () => '' : collect(child.stdout),
    stderr: collect(child.stderr),
    /** Sends a signal to the process that was started. */
    kill: (signal: NodeJS.Signals = 'SIGTERM') => void child.kill(signal),
    /** How the process ended, once it and everything that held its output has. */
    exited,
    /** True while it has not ended. */
    running,
    /** Ends the process if need be and removes the data folder, unless it is the caller's. */
    [Symbol.asyncDispose]: async () => {
      if (running()) child.kill('SIGKILL');
      await exited;
      child.stdout.destroy();
      if (isOwn) rmSync(dataDir, { recursive: true, force: true });
    },
  };
};

/** A figure of a process's /metrics, whatever its labels; NaN where it has none of that name. */
export const metricOf = async ({ url }: { url: string }, name: string): Promise<number> => {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name}(?:{[^}]*})? (\\S+)$`, 'm').exec(text)?.[1] ?? 'NaN');
};

/** How many payments of a service are unresolved. */
export const unresolvedIn = (service: { url: string }): Promise<number> =>
  metricOf(service, 'payments_unresolved');

/** True when the service at the address says that it is ready. */
export const isReady = async (url: string): Promise<boolean> => {
  try {
    const response = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(2000) });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
};

const whatItWrote = (service: ServiceProcess): string =>
  `stdout: ${service.stdout().slice(-2000)}\nstderr: ${service.stderr().slice(-2000)}`;

/** Waits until the process says that it is ready. Throws when it ends first, or takes too long. */
export const untilReady = async (service: ServiceProcess): Promise<void> => {
  try {
    await until('it is ready', () => !service.running() || isReady(service.url));
    if (!service.running()) throw new Error('the service ended');
  } catch (error) {
    throw new Error(`${error}\n${whatItWrote(service)}`);
  }
};

/** Runs the command line to its end in a process of its own: `payments <args>`. */
export const runCliProcess = async (
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<Exit & { stdout: string; stderr: string }> => {
  const child = spawn(NODE, ['cli/payments.mjs', ...args], {
    cwd: ROOT,
    env: { ...cleanEnv(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: HANGS_MS,
  });
  const [stdout, stderr, exit] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    exitOf(child),
  ]);
  return { ...exit, stdout, stderr };
};

const asBody = (body: unknown): string | undefined =>
  typeof body === 'string' || body === undefined ? body : JSON.stringify(body);

/** Empty where the text is no JSON. */
export const parsed = (text: string): Body => {
  try {
    return JSON.parse(text);
  } catch {
    return {} as Body;
  }
};

/** Requests to a service at an address, by `own` unless a header has another token. */
export const requestsAt = (url: string, own: () => Promise<string>) => {
  const send = async (path: string, init: RequestInit): Promise<CommandResponse> => {
    const response = await fetch(url + path, { ...init, signal: AbortSignal.timeout(HANGS_MS) });
    const text = await response.text();
    const { status, headers } = response;
    const { pathname } = new URL(url + path);
    const about = { method: init.method ?? 'GET', path: pathname, status, text };
    expectDescribed({ ...about, headers: Object.fromEntries(headers) });
    return { status, headers, text, json: parsed(text) };
  };
  const authorized = async (headers: Record<string, string>) =>
    headers.authorization === undefined
      ? { ...headers, authorization: `Bearer ${await own()}` }
      : headers;
  return {
    send,
    /** POST as JSON; a text or undefined is sent as it is. */
    post: async (path: string, body?: unknown, headers: Record<string, string> = {}) =>
      send(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(await authorized(headers)) },
        body: asBody(body) ?? null,
      }),
    get: async (path: string, headers: Record<string, string> = {}) =>
      send(path, { headers: await authorized(headers) }),
  };
};

/** Signed as `payments token` signs it, with the settings of the service. */
const tokenOf = (
  dataDir: string,
  env: NodeJS.ProcessEnv | undefined,
  merchant: string,
  scope: string | undefined,
): Promise<string> => {
  const read = loadConfig({ ...env, DATA_DIR: dataDir });
  if (!read.ok) throw new Error(read.problems.join('; '));
  return makeToken(read.config, { merchant, scope, ttlSeconds: 3600 });
};

/** A client with tokens of a service that listens at `url` over a data folder, with these settings. */
export const clientOf = (
  { url, dataDir }: { url: string; dataDir: string },
  env: NodeJS.ProcessEnv | undefined,
) => {
  const tokens = new Map<string, Promise<string>>();
  const token = (merchant = 'm_demo', scope?: string): Promise<string> => {
    const name = `${merchant} ${scope}`;
    const made = tokens.get(name) ?? tokenOf(dataDir, env, merchant, scope);
    tokens.set(name, made);
    return made;
  };
  return {
    /** A token as the command line makes it; kept per merchant and scope. */
    token,
    ...requestsAt(url, token),
  };
};

/** Starts the service and waits until it is ready. `await using` ends it and cleans up. */
export const startService = async (options: ServiceOptions = {}): Promise<Service> => {
  const started = await spawnService(options);
  try {
    await untilReady(started);
  } catch (error) {
    await started[Symbol.asyncDispose]();
    throw error;
  }
  return { ...started, ...clientOf(started, options.env) };
};
