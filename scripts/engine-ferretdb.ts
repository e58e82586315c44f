/**
 * A server of MongoDB's protocol without Docker: FerretDB v1 over SQLite files, built once from its
 * published Go module at the version and checksums of engine-ferretdb/. It can replace MongoDB where
 * each document has one writer: it does not update a document atomically when two writers meet.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from './engine.ts';

const SOURCE = join(import.meta.dirname, 'engine-ferretdb');
const CACHE = join(homedir(), '.cache', 'payments-engines');
const DATABASE = 'payments';
const BUILD_MS_MAX = 15 * 60_000;
const START_MS_MAX = 20_000;

/** The name holds a hash of the sources, so that a new version never replaces an older binary. */
const binaryFile = (): string => {
  const hash = createHash('sha256');
  for (const name of readdirSync(SOURCE).sort()) hash.update(readFileSync(join(SOURCE, name)));
  return join(CACHE, `ferretdb-${hash.digest('hex').slice(0, 16)}`);
};

const hasGo = (): boolean => spawnSync('go', ['version'], { stdio: 'ignore' }).status === 0;

const build = async (file: string, log: (line: string) => void): Promise<void> => {
  log('building from its Go module; this takes about two minutes, once');
  mkdirSync(CACHE, { recursive: true, mode: 0o700 });
  const unfinished = `${file}.${process.pid}`;
  // Only module downloads are reported; when the build fails, so is its last line.
  const go = spawn('go', ['build', '-o', unfinished, '.'], {
    cwd: SOURCE,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: BUILD_MS_MAX,
  });
  let last = '';
  go.stderr.setEncoding('utf8').on('data', (text: string) => {
    for (const line of text.split('\n').filter(Boolean)) {
      last = line;
      if (line.startsWith('go: downloading')) log(line);
    }
  });
  const code = await new Promise((resolve) => go.on('close', resolve).on('error', resolve));
  if (code !== 0) throw new Error(`the build failed: ${last}`);
  renameSync(unfinished, file);
};

const freePort = async (): Promise<number> => {
  const server: Server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
};

/** A folder keeps its port, so that a server started again has the same address. */
const portOf = async (folder: string): Promise<number> => {
  const file = join(folder, 'port');
  if (existsSync(file)) return Number(readFileSync(file, 'utf8'));
  const port = await freePort();
  writeFileSync(file, String(port));
  return port;
};

const isReady = async (url: string): Promise<boolean> => {
  const { openMongoReadModels } = await import('../shared/read-models/mongodb/read-models.ts');
  const readModels = await openMongoReadModels({ url, secrets: ['none: only a ping'] });
  try {
    await readModels.ping();
    return true;
  } catch {
    return false;
  } finally {
    await readModels.close();
  }
};

const start = async (folder: string, log: (line: string) => void): ReturnType<Engine['start']> => {
  const file = binaryFile();
  if (!existsSync(file)) await build(file, log);
  const data = join(folder, 'data');
  mkdirSync(data, { recursive: true });
  const port = await portOf(folder);
  const output = openSync(join(folder, 'server.log'), 'a');
  const server = spawn(file, [data, `127.0.0.1:${port}`], {
    detached: true,
    stdio: ['ignore', output, output],
  });
  server.unref();
  const value = `mongodb://127.0.0.1:${port}/${DATABASE}`;
  const deadline = performance.now() + START_MS_MAX;
  while (server.pid !== undefined && server.exitCode === null && performance.now() < deadline) {
    if (await isReady(value)) return { variables: { MONGODB_URL: value }, pid: server.pid };
    await delay(50);
  }
  server.kill();
  throw new Error(`it is not ready on port ${port}; see ${join(folder, 'server.log')}`);
};

/** FerretDB, which gives a value for MONGODB_URL. */
export const ferretdb: Engine = {
  name: 'FerretDB',
  available: () =>
    existsSync(binaryFile()) || hasGo()
      ? undefined
      : 'it is built by Go, and there is no `go` on the PATH (https://go.dev/dl)',
  start,
};
