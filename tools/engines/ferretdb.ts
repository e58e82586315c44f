/**
 * A server of MongoDB's protocol without Docker: FerretDB v1 over SQLite files, built from its
 * published Go module at the version and checksums of ferretdb/. It can replace MongoDB where each
 * document has one writer: it does not update a document atomically when two writers meet.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildWithGo, CACHE, type Engine, lackOf, portsOf, startServer } from './engine.ts';

const SOURCE = join(import.meta.dirname, 'ferretdb');
/** The name holds a hash of the sources, so that a new version never meets an older build. */
const hash = createHash('sha256');
for (const name of readdirSync(SOURCE).sort()) hash.update(readFileSync(join(SOURCE, name)));
const BUILT = join(CACHE, `ferretdb@${hash.digest('hex').slice(0, 16)}`);

/** FerretDB, which gives a value for MONGODB_URL. */
export const ferretdb: Engine = {
  name: 'FerretDB',
  available: () => lackOf('go'),
  start: async (folder, log) => {
    await buildWithGo(BUILT, '.', log, SOURCE);
    const address = `127.0.0.1:${(await portsOf(folder, 1))[0]}`;
    const data = join(folder, 'data');
    mkdirSync(data, { recursive: true });
    const command = [join(BUILT, 'engine-ferretdb'), data, address];
    const pid = await startServer(folder, command, 'Listening on TCP');
    return { variables: { MONGODB_URL: `mongodb://${address}/payments` }, pid };
  },
};
