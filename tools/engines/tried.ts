/**
 * `npm run engines -- tried`: the contract suites of each engine whose address is set. What they print is kept
 * in docs/engines-tried.json by the version that the engine says of itself, and is the table of
 * docs/reliability.md.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';

const ROOT = join(import.meta.dirname, '../..');
const KEPT = join(ROOT, 'docs/engines-tried.json');
const PAGE = join(ROOT, 'docs/reliability.md');

/** `suites` is the last line of a test run; `on` is its day (UTC). */
export type Tried = { engine: string; version: string; suites: string; on: string };

type Subject = {
  engine: string;
  /** Which address has to be set. */
  variable?: string;
  paths: string[];
  version(): Promise<string>;
};

const run = (...args: string[]): string =>
  spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 27 }).stdout;

/** FerretDB gives the version of the MongoDB whose protocol it speaks. */
const mongoVersion = async (): Promise<string> => {
  const client = new MongoClient(process.env.MONGODB_URL ?? '');
  try {
    const { version, ferretdbVersion } = await client.db().command({ buildInfo: 1 });
    return ferretdbVersion === undefined ? version : 'its protocol, by FerretDB';
  } finally {
    await client.close();
  }
};

const SUBJECTS: Subject[] = [
  {
    engine: 'SQLite',
    paths: ['sqlite[a-z-]*([.]contract)?[.]test'],
    version: async () => String(process.versions.sqlite),
  },
  {
    engine: 'EventStoreDB',
    variable: 'EVENTSTOREDB_URL',
    paths: ['test/event-store/eventstoredb'],
    version: async () =>
      JSON.parse(run('cli/payments.mjs', 'doctor', '--format', 'json')).eventStoreServer.version,
  },
  {
    engine: 'MongoDB',
    variable: 'MONGODB_URL',
    paths: ['mongodb[a-z-]*([.]contract)?[.]test'],
    version: mongoVersion,
  },
  {
    engine: 'Kafka',
    variable: 'KAFKA_BROKERS',
    paths: ['kafka[a-z-]*([.]contract)?[.]test'],
    version: async () => process.env.KAFKA_VERSION ?? 'unknown',
  },
];

const asks = async ({ engine, paths, version }: Subject): Promise<Tried> => ({
  engine,
  version: await version(),
  suites:
    run('scripts/test.ts', ...paths)
      .trimEnd()
      .split('\n')
      .at(-1) ?? '',
  on: new Date().toISOString().slice(0, 10),
});

const TABLE = /(\| engine \| version \| contract suites \| on \|\n\|-+\|-+\|-+\|-+\|\n)(\|.*\n)*/;

/** The page with the rows of what was tried. */
export const withTable = (page: string, tried: readonly Tried[]): string => {
  const rows = tried.map((one) => `| ${one.engine} | ${one.version} | ${one.suites} | ${one.on} |`);
  return page.replace(TABLE, (_, head) => `${head}${rows.join('\n')}\n`);
};

export const writeTried = async (): Promise<void> => {
  const kept: Tried[] = JSON.parse(readFileSync(KEPT, 'utf8'));
  const subjects = SUBJECTS.filter(({ variable = 'PATH' }) => process.env[variable] !== undefined);
  const now: Tried[] = [];
  for (const subject of subjects) now.push(await asks(subject));
  const isNow = (one: Tried) =>
    now.some(({ engine, version }) => engine === one.engine && version === one.version);
  const all = [...kept.filter((one) => !isNow(one)), ...now].sort((a, b) =>
    `${a.engine} ${a.version}`.localeCompare(`${b.engine} ${b.version}`),
  );
  writeFileSync(KEPT, `${JSON.stringify(all, null, 2)}\n`);
  writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8'), all));
};
