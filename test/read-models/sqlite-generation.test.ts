/** The next generation of the read models in a SQLite file: its checksum, errors of the file, a file that is read elsewhere, and its write-ahead log. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as immediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import { rowOf, startChecksum } from '../../shared/read-models/document-row.ts';
import { ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import type {
  NextGeneration,
  ReadModels,
  ReadModelsChecksum,
} from '../../shared/read-models/port.ts';
import { openSqliteGeneration } from '../../shared/read-models/sqlite/read-models.ts';
import { timesOf } from '../support/long-run-share.ts';
import { readModelsAt } from '../support/read-models-here.ts';
import { NODE, ROOT } from '../support/service-processes.ts';
import { folderOfEachTest } from '../support/temporary-folder.ts';
import { change, readModelAt } from './opened.ts';

const checksumOf = (readModels: Iterable<Parameters<typeof rowOf>[0]>): ReadModelsChecksum => {
  const checksum = startChecksum();
  for (const readModel of readModels) checksum.add(rowOf(readModel));
  return checksum.result();
};

const folder = folderOfEachTest();
let file: string;
let readModels: ReadModels;

beforeEach(() => {
  file = join(folder.path, 'read models.db');
  readModels = readModelsAt(file);
});
afterEach(() => readModels.close());

describe('the checksum of read models in a SQLite file', () => {
  /** Writes a payment as another thread would, up to the next checkpoint. */
  const write = async (next: NextGeneration, paymentId: string, revision: number) =>
    next.handOver?.(async (file) => {
      const there = openSqliteGeneration(file);
      const from = await there.checkpoint();
      await there.apply([change(readModelAt(paymentId, revision))], from, `${from}+`);
      await there.close();
    });

  test('of a new generation is that of its file, after any writer', async () => {
    const next = await readModels.openGeneration();
    await write(next, 'pay_1', 0);
    expect(await next.checksum()).toEqual(checksumOf([readModelAt('pay_1', 0)]));
    await write(next, 'pay_1', 1);
    expect(await next.checksum()).toEqual(checksumOf([readModelAt('pay_1', 1)]));
    const at = await next.checkpoint();
    await next.apply([change(readModelAt('pay_1', 2))], at, at);
    expect(await next.checksum()).toEqual(checksumOf([readModelAt('pay_1', 2)]));
    await next.end();
  });

  test('of documents that are read when the file is closed is rejected', async () => {
    const all = Array.from({ length: 40 }, (_, n) => readModelAt(`pay_${n}`, 0));
    await readModels.apply(all.map(change), null, 'p1');
    expect(await readModels.checksum()).toEqual(checksumOf(all));
    const db = new DatabaseSync(file, { timeout: 5000 });
    // 40 MB take long to read, and a thread that goes on reading would keep the file open.
    db.exec('UPDATE payment SET body = hex(zeroblob(500000))');
    db.close();
    const rejected = expect(readModels.checksum()).rejects.toThrow(ReadModelsUnavailable);
    await immediate();
    await readModels.close();
    await rejected;
  });
});

test('V3: what a thread that fills a generation meets in the file is that of the read models here too', async () => {
  const next = await readModels.openGeneration();
  // As it comes out of a thread.
  const failing = async ({ message, ...fields }: Error) => {
    throw Object.assign(new Error(message), fields);
  };
  const full = next.handOver?.(() => failing(new ReadModelsUnavailable('the disk is full')));
  await expect(full).rejects.toBeInstanceOf(ReadModelsUnavailable);
  await expect(full).rejects.toThrow('the disk is full');
  const other = next.handOver?.(() => failing(new StoreUnavailable('the log is away')));
  await expect(other).rejects.toMatchObject({ code: 'EVENT_STORE_UNAVAILABLE' });
  await next.end();
});

/** Takes every file descriptor, then opens a generation; when some are free again, another one. */
const OUT_OF_DESCRIPTORS = `
  const { openSync, closeSync } = await import('node:fs');
  const { openSqliteReadModels } = await import(process.argv[1]);
  const newThread = () => undefined;
  const secrets = ['s'.repeat(32)];
  const readModels = openSqliteReadModels({ file: process.argv[2], secrets, newThread });
  const held = [];
  try { for (;;) held.push(openSync('/dev/null')); } catch {}
  const tried = () => readModels.openGeneration().then(() => 'opened', ({ name, message }) => name + ': ' + message);
  const first = await tried();
  held.forEach((one) => closeSync(one));
  console.log(JSON.stringify([first, await tried()]));
`;

test('V3: where no file descriptor is left, no generation is opened, the read models say so, and the next try may go well', () => {
  const module = join(ROOT, 'shared/read-models/sqlite/read-models.ts');
  const other = join(folder.path, 'other.db');
  const limited = 'ulimit -n 60; exec "$0" "$@"';
  const { stdout, stderr } = spawnSync(
    'sh',
    ['-c', limited, NODE, '--input-type=module', '-e', OUT_OF_DESCRIPTORS, module, other],
    { encoding: 'utf8' },
  );
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual([
    expect.stringMatching(/^ReadModelsUnavailable: .*EMFILE: too many open files/),
    'opened',
  ]);
});

/** Reads the file once, says so, and keeps it open until its input ends. */
const READER = `
  const { DatabaseSync } = require('node:sqlite');
  const [file, begin] = process.argv.slice(1);
  const db = new DatabaseSync(file, { timeout: 5000 });
  db.exec(begin);
  db.prepare('SELECT count(*) FROM payment').get();
  process.stdin.on('end', () => process.exit(0)).resume();
  console.log('open');
`;
const OLD = ['pay_0', 'pay_1'];
/** So many that the new file is larger than the old one. */
const NEW = Array.from({ length: 300 }, (_, n) => `pay_new_${n}`);

describe('a file that another process, such as a shell, has open', () => {
  let reader: ChildProcess | undefined;

  beforeEach(async () => {
    await readModels.apply(
      OLD.map((id) => change(readModelAt(id, 0))),
      null,
      'p1',
    );
  });
  afterEach(() => leave());

  const enter = async (begin = ''): Promise<void> => {
    reader = spawn(NODE, ['-e', READER, file, begin], { stdio: ['pipe', 'pipe', 'inherit'] });
    if (reader.stdout !== null) await once(reader.stdout, 'data');
  };
  const leave = async (): Promise<void> => {
    if (reader === undefined) return;
    const left = once(reader, 'exit');
    reader.stdin?.end();
    reader = undefined;
    await left;
  };
  const filled = async (): Promise<NextGeneration> => {
    const next = await readModels.openGeneration();
    await next.apply(
      NEW.map((id) => change(readModelAt(id, 1))),
      null,
      'p9',
    );
    return next;
  };
  const expectServed = async (ids: string[], checkpoint: string): Promise<void> => {
    expect(await readModels.checkpoint()).toBe(checkpoint);
    const { documents } = await readModels.search({}, 1000);
    expect(documents.map(({ paymentId }) => paymentId).sort()).toEqual([...ids].sort());
    expect(await readModels.checksum()).toMatchObject({ documents: ids.length });
  };
  /** Once no connection has it open. */
  const expectWholeFile = (): void => {
    using db = new DatabaseSync(file, { timeout: 5000 });
    expect(db.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  };

  test('is replaced, and its write-ahead log is not laid over the new one', async () => {
    await enter();
    const next = await filled();
    await next.serve();
    await next.end();
    await expectServed(NEW, 'p9');
    await readModels.apply([change(readModelAt('pay_later', 0))], 'p9', 'p10');
    await leave();
    await expectServed([...NEW, 'pay_later'], 'p10');
    await readModels.close();
    expectWholeFile();
  });

  test('is served on while it is read there, and replaced by the next rebuild', async () => {
    await enter('BEGIN');
    await readModels.apply([change(readModelAt('pay_0', 1))], 'p1', 'p2');
    const next = await filled();
    await expect(next.serve()).rejects.toThrow(ReadModelsUnavailable);
    await next.end();
    await expectServed(OLD, 'p2');
    await leave();
    const later = await filled();
    await later.serve();
    await later.end();
    await expectServed(NEW, 'p9');
    await readModels.close();
    expectWholeFile();
  });
});

/** A checkpoint is due at 2,000 pages of 4 kB, each with its header: a few batches. */
const DUE_PAGES = 2_000;
const DUE_BYTES = DUE_PAGES * (4_096 + 24);
const BATCH = 1_000;
const GENERATIONS = timesOf(4, 2);

const writeBatch = async (into: Pick<ReadModels, 'apply' | 'checkpoint'>, batch: string) => {
  const ids = Array.from({ length: BATCH }, (_, n) => `pay_${batch}_${n}`);
  const from = await into.checkpoint();
  await into.apply(
    ids.map((id) => change(readModelAt(id, 1))),
    from,
    `p_${batch}`,
  );
};
const walBytes = (): number => statSync(`${file}-wal`).size;
const writeUntilDue = async (name: string): Promise<void> => {
  for (let n = 0; n === 0 || walBytes() < DUE_BYTES; n += 1)
    await writeBatch(readModels, `${name}${n}`);
};

const expectWhole = async (documents: number): Promise<void> => {
  expect(await readModels.checksum()).toMatchObject({ documents });
  using db = new DatabaseSync(file, { timeout: 5000 });
  expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
};

test('no log is moved into another file where a rebuild replaces the file meanwhile', async () => {
  for (let generation = 0; generation < GENERATIONS; generation += 1) {
    await writeUntilDue(`old${generation}_`);
    const next = await readModels.openGeneration();
    await writeBatch(next, `new${generation}`);
    await next.serve();
    await next.end();
    await expectWhole(BATCH);
  }
});
