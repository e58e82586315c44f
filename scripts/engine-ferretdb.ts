/**
 * A server of MongoDB's protocol without Docker: FerretDB v1 over SQLite files, built once from its
 * published Go module at the version and checksums of engine-ferretdb/. It can replace MongoDB where
 * each document has one writer: it does not update a document atomically when two writers meet.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE, type Engine } from './engine.ts';
import { lackOfGo, runGo } from './engine-go.ts';
import { startServer } from './engine-server.ts';

const SOURCE = join(import.meta.dirname, 'engine-ferretdb');

/** The name holds a hash of the sources, so that a new version never replaces an older binary. */
const binaryFile = (): string => {
  const hash = createHash('sha256');
  for (const name of readdirSync(SOURCE).sort()) hash.update(readFileSync(join(SOURCE, name)));
  return join(CACHE, `ferretdb-${hash.digest('hex').slice(0, 16)}`);
};

const build = async (file: string, log: (line: string) => void): Promise<void> => {
  log('building from its Go module; this takes about two minutes, once');
  const unfinished = `${file}.${process.pid}`;
  await runGo(['build', '-o', unfinished, '.'], { cwd: SOURCE }, log);
  renameSync(unfinished, file);
};

const urlOf = (address: string): string => `mongodb://${address}/payments`;

const isReady = async (address: string): Promise<boolean> => {
  const { openMongoReadModels } = await import('../shared/read-models/mongodb/read-models.ts');
  const readModels = await openMongoReadModels({
    url: urlOf(address),
    secrets: ['none: only a ping'],
  });
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
  const argsOf = (port: number) => [data, `127.0.0.1:${port}`];
  const { address, pid } = await startServer(folder, file, argsOf, isReady);
  return { variables: { MONGODB_URL: urlOf(address) }, pid };
};

/** FerretDB, which gives a value for MONGODB_URL. */
export const ferretdb: Engine = {
  name: 'FerretDB',
  available: () => (existsSync(binaryFile()) ? undefined : lackOfGo()),
  start,
};
