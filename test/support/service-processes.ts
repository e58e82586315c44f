/**
 * The service as real processes: `startService` starts the embedded one as an operator has it,
 * `startThreeProcesses` those of the compose file. Every wait here has a bound and fails with what the
 * process wrote. A process costs a second: service-in-process.ts opens the service without one.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { freePort } from './free-port.ts';
import { type Kind, startGateway } from './gateway.ts';
import { type Client, clientOf, isReady } from './service-client.ts';
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

/** A process of the service, ready or not. */
export type ServiceProcess = Awaited<ReturnType<typeof spawnService>>;

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

type StandInProcess = {
  url: string;
  process: ChildProcess;
  [Symbol.asyncDispose](): Promise<void>;
};

/** Its first line on stdout is its address. */
const startStandInMain = async (main: string, port = 0): Promise<StandInProcess> => {
  const child = spawn(NODE, [`test/support/${main}`], {
    cwd: ROOT,
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return {
    url: String(line).trim(),
    process: child,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
};

/** An EventStoreDB. */
export const standInEventStore = () => startStandInMain('eventstoredb-stand-in-main.ts');

/** A MongoDB, on a free port or a given one. */
export const standInMongo = (port = 0) => startStandInMain('mongodb-stand-in-main.ts', port);

type Processes = Record<Kind, ServiceProcess[]>;
export type ThreeProcesses = Awaited<ReturnType<typeof startThreeProcesses>>;

/** Why the three processes cannot be started here; undefined when they can. */
export const noThreeProcesses = (): string | undefined =>
  process.env.MONGODB_URL === undefined
    ? 'MONGODB_URL is not set; npm run engines -- up starts a server and prints it'
    : undefined;

const APIS = ['projector', 'command-api', 'query-api'] as const;

const MAINS: Record<Kind, string> = {
  'command-api': 'command-api/main.ts',
  'query-api': 'query-api/main.ts',
  projector: 'projector/main.ts',
  provider: 'providers/simulator/main.ts',
};

/** A database and topics of this run's own, so that runs on one server never meet. */
const ownNames = (): { database: string; topics: string } => {
  const run = `${process.pid}-${Date.now().toString(36)}`;
  return { database: `e2e-${run}`, topics: `e2e.${run}` };
};

const withDatabase = (url: string, database: string): string => {
  const own = new URL(url);
  own.pathname = `/${database}`;
  return own.href;
};

/**
 * Starts command API, query API and projector over an EventStoreDB, a MongoDB and, where there is one, a
 * Kafka, with the simulated provider and a gateway in front, and waits until all are ready. `EVENTSTOREDB_URL` and `KAFKA_BROKERS`
 * are used where they are set; without the first a stand-in server takes its place. The gateway
 * sends requests to every process that runs or, where it `asksReadiness`, to those that are ready.
 * `release` is the folder of what runs; the provider is always of this one.
 */
export const startThreeProcesses = async (
  settings: Record<string, string> = {},
  { asksReadiness = false, release = ROOT } = {},
) => {
  const { database, topics } = ownNames();
  const { MONGODB_URL: ownReadStore, ...ownSettings } = settings;
  const readStore = ownReadStore ?? process.env.MONGODB_URL;
  if (readStore === undefined) throw new Error('neither settings nor environment have MONGODB_URL');
  const standIn =
    process.env.EVENTSTOREDB_URL === undefined ? await standInEventStore() : undefined;
  /** What the processes are started with; another one joins them with the same. */
  const env: Record<string, string> = {
    EVENTSTOREDB_URL: process.env.EVENTSTOREDB_URL ?? standIn?.url ?? '',
    MONGODB_URL: withDatabase(readStore, database),
    ...(process.env.KAFKA_BROKERS !== undefined && {
      KAFKA_BROKERS: process.env.KAFKA_BROKERS,
      KAFKA_TOPIC_PREFIX: topics,
    }),
    JWT_SECRET: 'a shared secret of the tests, 32 bytes long at least',
    IDEMPOTENCY_SECRET: 'another secret of the tests, 32 bytes long at least',
    WEBHOOK_SECRET: 'a third secret of the tests, 32 bytes long at least',
    PERSONAL_DATA_KEK: 'a fourth secret of the tests, 32 bytes long at least',
    PROVIDER_TOKEN: 'a-provider-token-of-the-tests',
    RATE_LIMIT_PER_SECOND: '0',
    RATE_LIMIT_UNAUTHENTICATED_PER_SECOND: '0',
    ...ownSettings,
  };
  const processes: Processes = {
    provider: [],
    projector: [],
    'command-api': [],
    'query-api': [],
  };
  const all = new Set<ServiceProcess>();
  /** Starts one more process of a kind, of a release in another folder; the gateway knows of it once it is ready. */
  const add = async (kind: Kind, from = ROOT): Promise<ServiceProcess> => {
    const started = await spawnService({
      env,
      command: [NODE, join(from, 'scripts/launch.cjs'), MAINS[kind]],
    });
    all.add(started);
    await untilReady(started);
    processes[kind].push(started);
    if (kind === 'provider') env.PROVIDER_URL = started.url;
    await until('the gateway knows it', () => serves(started));
    return started;
  };
  /** Stops a process, to which the gateway sends nothing any more. */
  const retire = async (kind: Kind, process: ServiceProcess): Promise<void> => {
    processes[kind].splice(processes[kind].indexOf(process), 1);
    process.kill('SIGTERM');
    await process.exited;
  };
  const { url, serves, close } = await startGateway(processes, asksReadiness);
  const dispose = async (): Promise<void> => {
    await close();
    await Promise.all([...all].map((one) => one[Symbol.asyncDispose]()));
    await standIn?.[Symbol.asyncDispose]();
  };
  try {
    await add('provider');
    await Promise.all(APIS.map((kind) => add(kind, release)));
  } catch (error) {
    await dispose();
    throw error;
  }
  return { url, env, processes, add, retire, [Symbol.asyncDispose]: dispose };
};
