/**
 * Changes that a thief might make to a log or to an export of it, drawn by a seed. What makes them
 * is theirs alone: the store and its chains are the real ones.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { AuditDeps } from '../../audit/deps.ts';
import { type Export, exportOfLog, headersOf, withManifest } from '../../audit/export.ts';
import { createMerchantLookup } from '../../audit/merchants.ts';
import type { HeadFile } from '../../audit/seals/seals.ts';
import { type KeptHead, verifyLog } from '../../audit/verification.ts';
import { writeExport } from '../../cli/export.ts';
import { GENESIS_HASH, hashOf, linkLog, logIdOf } from '../../shared/event-store/chain.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { resultOf } from '../../shared/runtime/jobs.ts';
import { appendLives } from './many-payments.ts';
import { keptThread } from './once/kept-threads.ts';
import type { Random } from './random.ts';
import { temporaryFolder } from './temporary-folder.ts';

const PAYMENTS = 6;

export type LogUnderTest = {
  store: EventStore;
  file: string;
  folder: string;
  close(): Promise<void>;
};

/** A log of several payments in a file of its own. */
export const openFilledLog = async (): Promise<LogUnderTest> => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'events.sqlite');
  const store = await openSqliteEventStore({ file, newThread: keptThread });
  const ids = Array.from({ length: PAYMENTS }, (_, n) => `pay_${n}`);
  await appendLives(store, ids, (n) => `m_${n % 2}`);
  // Its rows are changed many times: what finds that is the chain, and a process each time is slow.
  const { checkFile: _, ...stored } = store.stored;
  return {
    store: { ...store, stored },
    file,
    folder: folder.path,
    close: async () => {
      await store.close();
      folder.remove();
    },
  };
};

/** Whose an event is matters to no check of the whole log. */
export const noReadModels = {
  getAny: async () => undefined,
  search: async () => ({ documents: [] }),
  idsAfter: async () => [],
  inspect: async () => ({ row: undefined, whole: true, parked: false }),
  parked: async () => [],
};

export const verifyWhole = (
  store: EventStore,
  known?: KeptHead,
  keptHeads?: () => HeadFile | undefined,
  sealingKey?: string,
) => verifyOf(store, noReadModels, undefined, known, keptHeads, sealingKey);

/** Verifies what is one merchant's, or everything, where `read models` say whose a payment is. */
export const verifyOf = async (
  store: EventStore,
  ownReadModels: Partial<AuditDeps['readModels']>,
  only: string | undefined,
  known?: KeptHead,
  keptHeads: () => HeadFile | undefined = () => undefined,
  sealingKey?: string,
) => {
  const { signal } = new AbortController();
  const readModels = { ...noReadModels, ...ownReadModels };
  const deps = { store, readModels, sealingKey, keptHeads };
  const result = await resultOf(verifyLog(deps, { only, known, signal }));
  if (result === undefined) throw new Error('the verification was broken off');
  return result;
};

/** An export of the whole log, or of what follows the position `from`. */
export const wholeExport = (store: EventStore, from?: string): Promise<Export> => {
  const merchants = createMerchantLookup(store, noReadModels);
  const requested = { from, fromTime: undefined, toTime: undefined, limit: undefined };
  return exportOfLog({ store, readModels: noReadModels, merchants }, requested, undefined);
};

/** Writes it the way the command line does. */
export const exportLog = async (
  { store, folder }: Pick<LogUnderTest, 'store' | 'folder'>,
  out = join(folder, 'log.jsonl'),
  from?: string,
) => {
  const whole = withManifest(await wholeExport(store, from), undefined);
  const body = (async function* () {
    for await (const text of whole.texts(new AbortController().signal)) yield Buffer.from(text);
  })();
  return { out, ...(await writeExport({ body, headers: new Headers(headersOf(whole)) }, out)) };
};

export type Row = {
  position: number;
  stream_id: number;
  revision: number;
  id: string;
  hash: string;
  log_hash: string;
  text: string;
};

/** The rows of the log in the hands of a writer of the file. */
export const openRows = (file: string) => {
  const db = new DatabaseSync(file, { timeout: 5000, enableForeignKeyConstraints: false });
  for (const table of ['events', 'streams']) {
    for (const change of ['update', 'delete'])
      db.exec(`DROP TRIGGER IF EXISTS ${table}_no_${change}`);
  }
  const rows = db.prepare('SELECT * FROM events ORDER BY position').all() as Row[];
  const streams = db.prepare('SELECT * FROM streams').all() as { id: number; name: string }[];
  const insert = db.prepare('INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)');
  const put = (row: Row): void => {
    const { position, stream_id, revision, id, hash, log_hash, text } = row;
    insert.run(position, stream_id, revision, id, hash, log_hash, text);
  };
  const write = (changed: Row[], names = streams): void => {
    db.exec('BEGIN; DELETE FROM events; DELETE FROM streams');
    for (const { id, name } of names) {
      db.prepare('INSERT INTO streams VALUES (?, ?)').run(id, name);
    }
    for (const row of changed) put(row);
    db.exec('COMMIT');
  };
  return { rows, streams, write, restore: () => write(rows), close: () => db.close() };
};

export type Rows = ReturnType<typeof openRows>;

const otherThan = (random: Random, text: string): string => {
  const at = random.between(0, text.length - 1);
  const shown = text.charAt(at);
  const other = String.fromCharCode(32 + ((shown.charCodeAt(0) - 32 + random.between(1, 90)) % 94));
  return text.slice(0, at) + (other === shown ? '~' : other) + text.slice(at + 1);
};

const dearer = (text: string): string =>
  text.replace(/"amount":(\d+)/, (_, amount) => `"amount":${Number(amount) + 1}`);

type RowChange = (rows: Row[], at: number, random: Random) => Row[];

const rowAt = (rows: Row[], at: number): Row => rows[at] as Row;
const withRow = (rows: Row[], at: number, change: Partial<Row>): Row[] =>
  rows.with(at, { ...rowAt(rows, at), ...change });

/** Gives a row's text once the log hashes of the rows before it are known. */
type Finish = (row: Row, logHashes: readonly string[]) => string;

/** Positions, links within each stream and links of the log, all computed anew, as a thief would. */
export const chainedAnew = (rows: Row[], finish: Finish = ({ text }) => text): Row[] => {
  const logHashes: string[] = [];
  const ends = new Map<number, Pick<Row, 'hash' | 'revision'>>();
  return rows.map((row, at) => {
    const { hash: previousHash, revision: last } = ends.get(row.stream_id) ?? START;
    const revision = last + 1;
    const text = JSON.stringify({ ...JSON.parse(finish(row, logHashes)), revision, previousHash });
    const hash = hashOf(text);
    const log_hash = linkLog(logHashes.at(-1) ?? GENESIS_HASH, hash);
    logHashes.push(log_hash);
    ends.set(row.stream_id, { hash, revision });
    return { ...row, position: at + 1, revision, text, hash, log_hash };
  });
};
const START = { hash: GENESIS_HASH, revision: -1 };

/** A row's text changed, and everything from there on written anew. */
export const rewritten = (rows: Row[], at: number, change = dearer): Row[] =>
  chainedAnew(rows.map((row, n) => (n === at ? { ...row, text: change(row.text) } : row)));

/** Each takes the row it begins with; the first row that it touches is never an earlier one. */
const ROW_CHANGES: Record<string, RowChange> = {
  'a character of the text': (rows, at, random) =>
    withRow(rows, at, { text: otherThan(random, rowAt(rows, at).text) }),
  'an amount, with its hash': (rows, at) => {
    const text = dearer(rowAt(rows, at).text);
    return withRow(rows, at, { text, hash: hashOf(text) });
  },
  'an amount, with its hash and its link in the log': (rows, at) => {
    const text = dearer(rowAt(rows, at).text);
    const hash = hashOf(text);
    const before = rows[at - 1]?.log_hash ?? GENESIS_HASH;
    return withRow(rows, at, { text, hash, log_hash: linkLog(before, hash) });
  },
  'a text that is no JSON': (rows, at) => withRow(rows, at, { text: 'nothing' }),
  'a hash': (rows, at, random) =>
    withRow(rows, at, { hash: otherThan(random, rowAt(rows, at).hash) }),
  'a link in the log': (rows, at, random) =>
    withRow(rows, at, { log_hash: otherThan(random, rowAt(rows, at).log_hash) }),
  'an id': (rows, at) => withRow(rows, at, { id: crypto.randomUUID() }),
  'a revision': (rows, at, random) =>
    withRow(rows, at, { revision: rowAt(rows, at).revision + random.between(100, 900) }),
  'a revision beyond every integer': (rows, at) =>
    withRow(rows, at, { revision: Number.MAX_SAFE_INTEGER }),
  'a row taken out': (rows, at) => rows.filter((_, n) => n !== at),
  'two rows swapped': (rows, at, random) => {
    const other = (at + random.between(1, rows.length - 1)) % rows.length;
    const [a, b] = [rowAt(rows, at), rowAt(rows, other)];
    const swapped = rows.with(at, { ...b, position: a.position });
    return swapped.with(other, { ...a, position: b.position });
  },
  'a row moved to the end': (rows, at) =>
    withRow(rows, at, { position: rows.length + 10 }).sort((a, b) => a.position - b.position),
  'a row in another stream': (rows, at) =>
    withRow(rows, at, { stream_id: rowAt(rows, at).stream_id + 100 }),
  'the tail cut off': (rows, at) => rows.slice(0, at),
  'everything from a row on written anew': (rows, at) => rewritten(rows, at),
};

export const ROW_CHANGE_NAMES = Object.keys(ROW_CHANGES);

/** Makes one change to the rows and gives what it was; `restore` takes it back. */
const changeRows = (rows: Rows, random: Random, n: number): { what: string } => {
  const name = ROW_CHANGE_NAMES[n % ROW_CHANGE_NAMES.length] as string;
  const at = random.between(0, rows.rows.length - 1);
  const changed = ROW_CHANGES[name]?.(rows.rows, at, random) ?? [];
  // A row moved into a stream without a name is as good as gone.
  const known = rows.streams.concat(
    rows.streams.map(({ id, name: own }) => ({ id: id + 100, name: `${own}x` })),
  );
  rows.write(changed, name === 'a row in another stream' ? known : rows.streams);
  return { what: `${name}, row ${at + 1} of ${rows.rows.length}` };
};

type FileChange = (lines: Buffer[], at: number, random: Random) => Buffer[];

const edited = (lines: Buffer[], at: number, edit: (text: string) => string): Buffer[] =>
  lines.with(at, Buffer.from(edit(String(lines[at]))));

/** Each changes nothing before the line it is given. */
const FILE_CHANGES: Record<string, FileChange> = {
  'a byte': (lines, at, random) => {
    const changed = Buffer.from(lines[at] as Buffer);
    const place = random.between(0, changed.length - 1);
    changed[place] = ((changed[place] ?? 0) + random.between(1, 255)) % 256;
    return lines.with(at, changed);
  },
  // No event's hash covers its position: only the chain over the lines does.
  'a position': (lines, at) =>
    edited(lines, at, (line) => line.replace('{"position":"', '{"position":"9')),
  'a line missing': (lines, at) => lines.filter((_, n) => n !== at),
  'a line twice': (lines, at) => lines.flatMap((line, n) => (n === at ? [line, line] : [line])),
  'a line added from elsewhere': (lines, at, random) => {
    const other = lines[(at + random.between(1, lines.length - 1)) % lines.length] as Buffer;
    return [...lines.slice(0, at), other, ...lines.slice(at)];
  },
  'two lines swapped': (lines, at, random) => {
    const other = (at + random.between(1, lines.length - 1)) % lines.length;
    return lines.with(at, lines[other] as Buffer).with(other, lines[at] as Buffer);
  },
  'the tail cut off after a line': (lines, at) => lines.slice(0, at),
  'the tail cut off within a line': (lines, at, random) => {
    const line = lines[at] as Buffer;
    return [...lines.slice(0, at), line.subarray(0, random.between(1, line.length - 1))];
  },
  'an empty line': (lines, at) => [...lines.slice(0, at), Buffer.from('\n'), ...lines.slice(at)],
  'an amount, with its hash': (lines, at) =>
    edited(lines, at, (line) => {
      const { event, hash } = JSON.parse(line);
      const own = JSON.stringify(event);
      const changed = dearer(own);
      return line.replace(own, changed).replace(hash, hashOf(changed));
    }),
};

export const FILE_CHANGE_NAMES = Object.keys(FILE_CHANGES);

/** Makes so many changes, one at a time, and gives those that were not noticed. */
export const unnoticedInExport = async (
  log: LogUnderTest,
  verify: (file: string) => Promise<{ ok: boolean; broken?: { line?: number } }>,
  random: Random,
  changes: number,
): Promise<string[]> => {
  const { out: file } = await exportLog(log);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const bytes = lines.map((line) => Buffer.from(`${line}\n`));
  const unnoticed: string[] = [];
  for (let n = 0; n < changes; n += 1) {
    const name = FILE_CHANGE_NAMES[n % FILE_CHANGE_NAMES.length] as string;
    const at = random.between(0, lines.length - 1);
    writeFileSync(file, Buffer.concat(FILE_CHANGES[name]?.(bytes, at, random) ?? []));
    // Of a line that stands twice, the second is the wrong one.
    const line = name === 'a line twice' ? at + 2 : at + 1;
    const { ok, broken } = await verify(file);
    // A swap begins at the earlier of its two lines; a missing last line shows in the one before.
    const place = broken?.line ?? 0;
    const isNear = place <= line && (name === 'two lines swapped' || place >= line - 1);
    if (ok || !isNear) unnoticed.push(`${name}, line ${at + 1}: ${JSON.stringify(broken)}`);
  }
  return unnoticed;
};

/** The same with the rows of the log, against the head that was known before where `hasKept`. */
export const unnoticedInRows = async (
  log: LogUnderTest,
  random: Random,
  changes: number,
  hasKept: boolean,
): Promise<string[]> => {
  const { head } = await verifyWhole(log.store);
  if (head === null) throw new Error('a log without a head');
  const known: KeptHead = { ...head, log: await logIdOf(log.store), signature: 'NONE' };
  const rows = openRows(log.file);
  const unnoticed: string[] = [];
  for (let n = 0; n < changes; n += 1) {
    const { what } = changeRows(rows, random, n);
    const { ok, broken } = await verifyWhole(log.store, hasKept ? known : undefined);
    if (ok || broken?.reason === undefined) unnoticed.push(what);
  }
  rows.restore();
  rows.close();
  return unnoticed;
};
