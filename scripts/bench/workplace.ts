/** The temporary folder of a run, and what every server and load of it has in common. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LoadOrder } from './load.ts';
import { ROOT, type Server, startServer } from './server.ts';

/** A run's folder, and the environment of its servers. */
export type Workplace = {
  folder: string;
  /** The data folder of the service. */
  dataDir: string;
  env: NodeJS.ProcessEnv;
  seconds: number;
  /** The headers of a request: a token of an hour, HS256. */
  headers: Record<string, string>;
  logFile(name: string): string;
  remove(): void;
};

const SECRET = 'a secret of the bench, 32 bytes at least';

const printedToken = (env: NodeJS.ProcessEnv): string => {
  const args = ['cli/payments.mjs', 'token', '--ttl', '24h'];
  const { stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: ROOT,
    env,
    encoding: 'utf8',
  });
  if (stdout === '') throw new Error(`no token: ${stderr}`);
  return stdout.trim();
};

/** Makes the folder. Logs of the servers go to files in it, and metrics are on, as in production. */
export const openWorkplace = (seconds: number): Workplace => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-bench-'));
  const dataDir = join(folder, 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  const env: NodeJS.ProcessEnv = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    NODE_ENV: 'production',
    DATA_DIR: dataDir,
    JWT_SECRET: SECRET,
    // A log that is filled without the service has no seals, and after a seal more must follow.
    SEAL_EVENTS_MAX: '1000000000',
    // Either of them could begin during a round, and neither belongs to a request.
    VERIFY_INTERVAL_MS: '0',
    RECONCILE_INTERVAL_MS: '0',
  };
  return {
    folder,
    dataDir,
    env,
    seconds,
    headers: { authorization: `Bearer ${printedToken(env)}` },
    logFile: (name) => join(folder, `${name}.log`),
    remove: () => rmSync(folder, { recursive: true }),
  };
};

const BODY = readFileSync(join(ROOT, 'examples/payment.json'), 'utf8');
const PAYMENTS = '/api/v1/payments';

/** A POST of the contract's full request. */
export const postOrder = (
  { seconds, headers }: Workplace,
  url: string,
  path = PAYMENTS,
): LoadOrder => {
  const json = { ...headers, 'content-type': 'application/json' };
  return { url, seconds, method: 'POST', paths: [path], headers: json, body: BODY };
};

/** A GET of the bare server. */
export const bareGetOrder = ({ seconds, headers }: Workplace, url: string): LoadOrder => {
  return { url, seconds, method: 'GET', paths: ['/'], headers };
};

/** So many that most requests of a round are for a payment that the round did not read before. */
const PATHS_MAX = 100_000;

/** GETs of payments by id, in random order; of very many a random part, another one at each call. */
export const getOrder = (
  { seconds, headers }: Workplace,
  url: string,
  ids: readonly string[],
): LoadOrder => {
  const mixed = [...ids];
  const count = Math.min(mixed.length, PATHS_MAX);
  for (let at = 0; at < count; at += 1) {
    const other = at + Math.floor(Math.random() * (mixed.length - at));
    [mixed[at], mixed[other]] = [mixed[other] as string, mixed[at] as string];
  }
  const paths = mixed.slice(0, count).map((id) => `${PAYMENTS}/${id}`);
  return { url, seconds, method: 'GET', paths, headers };
};

const YOUNG_GENERATION = ['--max-semi-space-size=32', '--v8-pool-size=1'];

/** Node's arguments in front of a main, as `npm start` has them. */
export const LAUNCHED = [...YOUNG_GENERATION, 'scripts/launch.cjs'];

/** What `npm start` runs, without npm and its shell, so that the probe can be loaded. */
export const serviceOrder = ({ env, logFile }: Workplace, name = 'service') => ({
  args: [...LAUNCHED, 'embedded/main.ts'],
  readyPath: '/health/ready',
  env,
  logFile: logFile(name),
});

/** The bare server, whose GET sends as many bytes as the response to a GET of a payment has. */
export const startBare = (workplace: Workplace, bytes: number): Promise<Server> =>
  startServer({
    args: ['scripts/bench/bare.ts'],
    readyPath: '/',
    env: { ...workplace.env, BYTES: String(bytes) },
    logFile: workplace.logFile('bare'),
  });

/** The server that makes the writes of a create, and nothing else, with the service's flags of Node. */
export const startLeast = ({ env, logFile }: Workplace): Promise<Server> =>
  startServer({
    args: [...YOUNG_GENERATION, 'scripts/bench/least.ts'],
    readyPath: '/',
    env,
    logFile: logFile('least'),
  });

/** The bytes of the response to a GET. Throws for a status other than 200. */
export const bytesOf = async (workplace: Workplace, url: string, id: string): Promise<number> => {
  const response = await fetch(`${url}${PAYMENTS}/${id}`, { headers: workplace.headers });
  if (response.status !== 200) throw new Error(`GET of ${id}: status ${response.status}`);
  return (await response.arrayBuffer()).byteLength;
};
