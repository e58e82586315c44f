/**
 * The table "Tampering" of docs/reliability.md, measured: every tampering on a copy of a log, of several
 * thousand events in the long run. The cells stand on the page alone; this fails where one is not true.
 */
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { type EmbeddedService, openService } from '../../embedded/compose.ts';
import { openDataFolder } from '../../embedded/data-folder.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { loadConfig } from '../../shared/runtime/load-config.ts';
import { runCli } from '../support/cli.ts';
import { shareOf, timesOf } from '../support/long-run-share.ts';
import { APPROVED, PAYMENTS, payment, SECRET, token } from '../support/service-in-process.ts';
import { ROOT } from '../support/service-processes.ts';
import { silentLog } from '../support/silent-log.ts';
import { KEY_FILE, TAMPERINGS, type Tampering, type Target } from '../support/tampered-folders.ts';
import { folderOfTests } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const MERCHANT = 'm_test';
const keyOf = (folder: string) => ({ SEALING_KEY_FILE: join(folder, KEY_FILE) });

/** Opens the service as `npm start` does. A refused start leaves nothing open, as a process would. */
const open = async (dataDir: string): Promise<EmbeddedService> => {
  const read = loadConfig({ JWT_SECRET: SECRET, DATA_DIR: dataDir, ...keyOf(dataDir) });
  if (!read.ok) throw new Error(read.problems.join('; '));
  const folder = openDataFolder(dataDir);
  let opened: EventStore | undefined;
  const store = (own: EventStore): EventStore => {
    opened = own;
    return own;
  };
  try {
    return await openService(read.config, folder, silentLog, () => undefined, { store });
  } catch (error) {
    await opened?.close();
    folder.release();
    throw error;
  }
};

/** A data folder of a service that was stopped, and what was known of it before anybody touched it. */
type Original = {
  folder: string;
  target: Target;
  /** What GET of both payments answered. */
  bodies: string[];
  /** The manifest of an export of its first two thirds. */
  keptManifest: string;
  events: number;
};

type Printed = { code: number; text: string };

const run = async (args: string[], env: Record<string, string>): Promise<Printed> => {
  const { code, stdout, stderr } = await runCli(args, { JWT_SECRET: SECRET, ...env });
  return { code, text: stdout + stderr };
};

const sale = async (app: EmbeddedService['app'], bearer: string): Promise<string> => {
  const response = await app.inject({
    method: 'POST',
    url: PAYMENTS,
    headers: { authorization: `Bearer ${bearer}` },
    payload: JSON.stringify(payment({ number: APPROVED, captureNow: true })),
  });
  if (response.statusCode !== 200) throw new Error(response.body);
  return response.json().paymentId;
};

/** Makes the folder by using a service: sales, and an export kept when two thirds of them are made. */
const makeOriginal = async (folder: string, payments: number): Promise<Original> => {
  const data = join(folder, 'original', 'data');
  mkdirSync(join(folder, 'original', 'keys'), { recursive: true });
  mkdirSync(data);
  const service = await open(data);
  const url = await service.app.listen({ host: '127.0.0.1', port: 0 });
  const bearer = await token(MERCHANT);
  const ids: string[] = [];
  const keptFile = join(folder, 'kept.jsonl');
  while (ids.length < payments) {
    ids.push(...(await Promise.all(Array.from({ length: 20 }, () => sale(service.app, bearer)))));
    if (ids.length < (payments * 2) / 3 || existsSync(keptFile)) continue;
    const { code, text } = await run(['export', '--out', keptFile], { PAYMENTS_URL: url });
    if (code !== 0) throw new Error(text);
  }
  const [paymentId = '', lateId = ''] = [ids[Math.floor(payments / 2)], ids.at(-5)];
  const target = { paymentId, lateId };
  const bodies = await bodiesOf({ service, url }, target, MERCHANT);
  const { body: health } = await service.app.inject('/health/ready');
  const events = Number(JSON.parse(health).engines.eventStore.position);
  await service.stop();
  const keptManifest = `${keptFile}.manifest.json`;
  return { folder: data, target, bodies, keptManifest, events };
};

type Running = { service: EmbeddedService; url: string };

const bodyOf = async ({ service }: Running, paymentId: string, merchant: string) => {
  const headers = { authorization: `Bearer ${await token(merchant)}` };
  const { statusCode, body } = await service.app.inject({
    ...{ method: 'GET', url: `${PAYMENTS}/${paymentId}`, headers },
  });
  return statusCode === 200 ? body : String(statusCode);
};

const bodiesOf = (at: Running, { paymentId, lateId }: Target, merchant: string) =>
  Promise.all([paymentId, lateId].map((id) => bodyOf(at, id, merchant)));

/** What is written into a cell: by the exit code, and by the words of the answer where that says no more. */
const cell = ({ code, text }: Printed, fine: string, wrong = 'break'): string => {
  if (code === 0) return fine;
  if (code === 3) return wrong;
  return (
    /UNREADABLE|PAYMENT_NOT_FOUND|INTERNAL_ERROR|SERVICE_UNAVAILABLE/.exec(text)?.[0] ?? `fails`
  );
};

/** One row of the table: what each command says, by the name of its column. */
type TableRow = Pick<Tampering, 'name' | 'changes' | 'where'> & {
  cells: Record<string, string>;
};

/** A tampered folder, with the service that runs on it unless its start was refused. */
type Place = { original: Original; folder: string; running: Running | undefined };

/** Runs a command against the service, or with `--data` on the folder where the start was refused. */
const runAt = ({ running, folder }: Place, ...args: string[]): Promise<Printed> =>
  running === undefined
    ? run([...args, '--data', folder], keyOf(folder))
    : run(args, { PAYMENTS_URL: running.url });

const getCell = async ({ target, bodies }: Original, running: Running): Promise<string> => {
  const found = await bodiesOf(running, target, MERCHANT);
  const elsewhere = await bodiesOf(running, target, 'm_evil');
  if (elsewhere.some((body) => body.startsWith('{'))) return 'to another merchant';
  const other = found.find((body, n) => body !== bodies[n]);
  if (other === undefined) return 'as it was';
  return other.startsWith('{') ? 'forged' : other;
};

const rebuildCell = ({ code, text }: Printed): string => {
  if (code === 0) return 'switches';
  return /not switched|parked/.exec(text)?.[0] ?? 'fails';
};

type Measure = (place: Place) => Promise<string>;

/** What only a running service answers gives a dash where the start was refused. */
const ofService =
  (measure: (running: Running, place: Place) => Promise<string>): Measure =>
  async (place) =>
    place.running === undefined ? '–' : measure(place.running, place);

/** The columns after `start`, in their order; the rebuild comes last, for it changes the folder. */
const MEASURES: Record<string, Measure> = {
  verify: ofService(async (_, place) => cell(await runAt(place, 'verify', '--all'), 'intact')),
  'verify --data': async (place) =>
    cell(await runAt({ ...place, running: undefined }, 'verify'), 'intact'),
  'with a kept head': async (place) =>
    cell(
      await runAt(place, 'verify', '--all', '--manifest', place.original.keptManifest),
      'intact',
    ),
  'verify --read-models': ofService(async (_, place) =>
    cell(await runAt(place, 'verify', '--read-models'), 'the same', 'differ'),
  ),
  events: async (place) =>
    cell(await runAt(place, 'events', place.original.target.paymentId), 'shown'),
  explain: async (place) =>
    cell(await runAt(place, 'explain', place.original.target.paymentId, 'refund'), 'answers'),
  GET: ofService((running, { original }) => getCell(original, running)),
  reconcile: async (place) => cell(await runAt(place, 'reconcile'), 'agree', 'differ'),
  'verify --file': async (place) => {
    const out = join(place.folder, 'export.jsonl');
    const { code } = await runAt(place, 'export', '--out', out);
    if (!existsSync(out)) return 'no export';
    const said = cell(await run(['verify', '--file', out], {}), 'intact');
    // An export of a log that was written anew is as whole as that log: making it says so.
    return code === 3 && said === 'intact' ? 'break at export' : said;
  },
  rebuild: ofService(async (_, place) =>
    rebuildCell(await runAt(place, 'projections', 'rebuild', '--yes')),
  ),
};

/** Starts on the folder as `npm start` does; undefined where that is refused. */
const startOn = async (folder: string): Promise<Running | undefined> => {
  let service: EmbeddedService;
  try {
    service = await open(folder);
  } catch {
    return undefined;
  }
  const url = await service.app.listen({ host: '127.0.0.1', port: 0 });
  const caughtUp = async () =>
    JSON.parse((await service.app.inject('/health/ready')).body).engines.readModels.caughtUp;
  await until('the read models are filled', caughtUp);
  return { service, url };
};

const startCell = async (running: Running | undefined): Promise<string> => {
  if (running === undefined) return 'refused';
  const { body } = await running.service.app.inject('/health/ready');
  return body.includes('ahead of the log') ? 'to read only' : 'starts';
};

/** Makes a tampering on a copy of the folder, and asks every command. */
const measure = async (original: Original, tampering: Tampering): Promise<TableRow> => {
  const { name, changes, where, apply } = tampering;
  const copy = join(original.folder, '../..', name.replace(/\W+/g, '-'));
  cpSync(join(original.folder, '..'), copy, { recursive: true });
  const folder = join(copy, 'data');
  apply(folder, original.target);
  const running = await startOn(folder);
  const place = { original, folder, running };
  const cells: Record<string, string> = { start: await startCell(running) };
  for (const [column, ask] of Object.entries(MEASURES)) {
    // A stopped folder is looked at after the service has ended, which changed nothing of the log.
    if (column !== 'verify --data') cells[column] = await ask(place);
  }
  await running?.service.stop();
  cells['verify --data'] = (await MEASURES['verify --data']?.(place)) ?? '';
  return { name, changes, where, cells };
};

/** What the commands say of an untouched folder, and of one on which they cannot run. */
const UNCHANGED = ['intact', 'the same', 'shown', 'answers', 'as it was', 'agree', 'switches', '–'];

/** What the page has behind the name: each other word, and the commands that say it. */
const lineOf = ({ cells }: TableRow): string => {
  const looked = Object.keys(MEASURES).filter((one) => !UNCHANGED.includes(cells[one] ?? ''));
  const said = Map.groupBy(looked, (column) => cells[column]);
  const words = [...said].map(([word, columns]) => `${word}: ${columns.join(', ')}`);
  return `${cells.start} | ${words.join('; ')} |`;
};

/** The row of an untouched folder. */
const UNTOUCHED: Tampering = {
  name: 'nothing',
  changes: 'nothing',
  where: 'log',
  apply: () => undefined,
};
const ALL_ROWS = [UNTOUCHED, ...TAMPERINGS];

const HEADER = '| done to the folder | start | what the commands find |';

/** What the page says of each tampering, by its name: a row may have several. */
const rowsOnPage = (): Map<string, string> => {
  const lines = readFileSync(join(ROOT, 'docs/reliability.md'), 'utf8').split('\n');
  const at = lines.indexOf(HEADER);
  if (at === -1) throw new Error(`docs/reliability.md has no table that begins with ${HEADER}`);
  const rows = lines.slice(at + 2, lines.indexOf('', at)).flatMap((line) => {
    const [, names = '', said = ''] = /^\| (.*?) \| (.*)$/.exec(line) ?? [];
    return names.split('; ').map((name) => [name, said] as const);
  });
  return new Map(rows);
};

/** What says that nothing is wrong. */
const FINE = ['intact', 'shown', 'answers', 'agree', 'forged', 'to another merchant'];
/** The columns that look at the log, and at nothing that was made of it before. */
const OF_THE_LOG = [
  ...['verify', 'verify --data', 'with a kept head', 'events', 'explain', 'reconcile'],
  'verify --file',
];
/**
 * The columns of a row that say fine of money or a merchant that was changed. A command that compares
 * something else, as `reconcile` for a read model, does not: it says nothing of that.
 */
const wronglyFine = ({ changes, where, cells }: TableRow): string[] => {
  if (changes === 'nothing' || changes === 'with the key') return [];
  const looked = where === 'log' ? OF_THE_LOG : [];
  const said = ['GET', ...looked].filter((column) => FINE.includes(cells[column] ?? ''));
  const isNamed = Object.values(cells).some((one) => /refused|break|differ/.test(one));
  return isNamed ? said : [...said, 'nothing names it'];
};

/** It does not hang on the size of the log. */
const FIRST = ['every sum, rehashed, no read models'];
const rows = ALL_ROWS.toSorted((a, b) => FIRST.indexOf(b.name) - FIRST.indexOf(a.name));
const folder = folderOfTests();
let original: Original;
beforeAll(async () => {
  original = await makeOriginal(folder, timesOf(1_000, 60));
});

test('the page has the table, with a row for each tampering', () => {
  expect([...rowsOnPage().keys()].sort()).toEqual(ALL_ROWS.map(({ name }) => name).sort());
  expect(original.events).toBeGreaterThan(timesOf(2_000, 120));
});

test.each(shareOf(rows, 1).map((tampering) => [tampering.name, tampering] as const))(
  'L3: %s: every command says what the page says, and none says fine of it',
  async (name, tampering) => {
    const row = await measure(original, tampering);
    expect(lineOf(row)).toBe(rowsOnPage().get(name));
    expect(wronglyFine(row)).toEqual([]);
  },
);
