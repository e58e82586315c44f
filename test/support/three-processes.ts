/**
 * The service as several processes on loopback: command APIs, query APIs and projectors over an
 * EventStoreDB, a MongoDB and, where there is one, a Kafka, with the simulated provider as a
 * process of its own and a gateway in front, as in the compose file.
 */
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { httpServer } from './faulty-server.ts';
import { isReady, NODE, ROOT, type ServiceProcess, spawnService, untilReady } from './service.ts';
import { standInEventStore } from './stand-in-process.ts';
import { until } from './until.ts';

export type Kind = 'command-api' | 'query-api' | 'projector' | 'provider';

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

/** Which kind of process serves a request; ops/Caddyfile says the same. */
const kindFor = (method: string, path: string): Kind => {
  if (/^\/audit\/v1\/(payments\/[^/?]+\/)?reconcile/.test(path)) return 'command-api';
  if (/^\/ops\/v1\/(unresolved|attention|payments|settings|reconcile|webhook-endpoints)/.test(path))
    return 'command-api';
  if (path.startsWith('/api/v1/webhook-endpoints')) return 'command-api';
  if (path.startsWith('/ops') || path.startsWith('/audit/v1/export')) return 'projector';
  const isRead = method === 'GET' || method === 'HEAD';
  return isRead && !path.startsWith('/health') ? 'query-api' : 'command-api';
};

const READINESS_MS = 250;
/** An idle connection ends before its process would close it, as in ops/Caddyfile. */
const IDLE_MS = 3_000;

/**
 * Round robin over the processes of a kind; an upstream that is gone is a 502 of no shape. `serves` says
 * which it sends requests to: those that run or, where it `asksReadiness`, that were ready a moment ago.
 */
const startGateway = async (upstreams: Processes, asksReadiness: boolean) => {
  let turn = 0;
  const ready = new Set<ServiceProcess>();
  const look = async (one: ServiceProcess): Promise<void> => {
    if (await isReady(one.url)) ready.add(one);
    else ready.delete(one);
  };
  const looking = setInterval(() => {
    if (asksReadiness) for (const one of Object.values(upstreams).flat()) void look(one);
  }, READINESS_MS);
  const serves = (one: ServiceProcess): boolean => (asksReadiness ? ready.has(one) : one.running());
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  const server = await httpServer((incoming, outgoing) => {
    const kind = kindFor(incoming.method ?? '', incoming.url ?? '');
    const candidates = upstreams[kind].filter(serves);
    turn += 1;
    const upstream = candidates[turn % candidates.length];
    if (upstream === undefined) {
      outgoing.writeHead(502).end();
      return;
    }
    const { method = 'GET', url = '/', rawHeaders: headers } = incoming;
    const forwarded = request(upstream.url + url, { method, headers, agent }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders);
      response.pipe(outgoing);
    });
    forwarded.on('error', () =>
      outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end(),
    );
    incoming.pipe(forwarded);
  });
  const close = async (): Promise<void> => {
    clearInterval(looking);
    await server.close();
  };
  return { url: server.url, serves, close };
};

/**
 * Starts one of each kind and waits until all are ready. `EVENTSTOREDB_URL` and `KAFKA_BROKERS`
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
