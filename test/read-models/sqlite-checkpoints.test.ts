/** The write-ahead log of the read models is moved off the event loop, and never into another file. */

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { timesOf } from '../support/long-run-share.ts';
import { readModelsAt } from '../support/read-models-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';
import { change, readModelAt } from './opened.ts';

/** A checkpoint is due at 2,000 pages of 4 kB, each with its header: a few batches. */
const DUE_PAGES = 2_000;
const DUE_BYTES = DUE_PAGES * (4_096 + 24);
const BATCH = 1_000;
const GENERATIONS = timesOf(4, 2);

let folder: ReturnType<typeof temporaryFolder>;
let file: string;
let readModels: ReadModels;
beforeEach(() => {
  folder = temporaryFolder();
  file = join(folder.path, 'read-models.sqlite');
  readModels = readModelsAt(file);
});
afterEach(async () => {
  await readModels.close();
  folder.remove();
});

const write = async (into: Pick<ReadModels, 'apply' | 'checkpoint'>, batch: string) => {
  const ids = Array.from({ length: BATCH }, (_, n) => `pay_${batch}_${n}`);
  const from = await into.checkpoint();
  await into.apply(
    ids.map((id) => change(readModelAt(id, 1))),
    from,
    `p_${batch}`,
  );
};
const walBytes = (): number => statSync(`${file}-wal`).size;
const notMoved = (): number => {
  using db = new DatabaseSync(file, { timeout: 5000 });
  const pages = db.prepare('PRAGMA wal_checkpoint(NOOP)').get();
  return Number(pages?.log) - Number(pages?.checkpointed);
};
const writeUntilDue = async (name: string): Promise<void> => {
  for (let n = 0; n === 0 || walBytes() < DUE_BYTES; n += 1) await write(readModels, `${name}${n}`);
};

test('a log that was moved to its end is written from its start again, while batch follows batch', async () => {
  await writeUntilDue('first');
  const bytes: number[] = [];
  for (let batch = 0; batch < timesOf(10, 4); batch += 1) {
    await write(readModels, `more${batch}`);
    bytes.push(walBytes());
  }
  expect(Math.max(...bytes)).toBeLessThan(2 * DUE_BYTES);
});

test('a log that a reader kept from being moved is moved once the reader has left', async () => {
  const reader = new DatabaseSync(file, { readOnly: true });
  reader.exec('BEGIN; SELECT count(*) FROM payment');
  await writeUntilDue('beside');
  await write(readModels, 'later');
  expect(walBytes()).toBeGreaterThan(DUE_BYTES);
  reader.close();
  await write(readModels, 'last');
  await until('the log is moved', () => notMoved() < DUE_PAGES);
});

const expectWhole = async (documents: number): Promise<void> => {
  expect(await readModels.checksum()).toMatchObject({ documents });
  using db = new DatabaseSync(file, { timeout: 5000 });
  expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
};

test('no log is moved into another file where a rebuild replaces the file meanwhile', async () => {
  for (let generation = 0; generation < GENERATIONS; generation += 1) {
    await writeUntilDue(`old${generation}_`);
    const next = await readModels.openGeneration();
    await write(next, `new${generation}`);
    await next.serve();
    await next.end();
    await expectWhole(BATCH);
  }
});

test('after the close no checkpoint goes on, and the file is whole without its log', async () => {
  await writeUntilDue('first');
  await readModels.close();
  expect(() => statSync(`${file}-wal`)).toThrow('ENOENT');
  readModels = readModelsAt(file);
  expect(notMoved()).toBe(0);
});
