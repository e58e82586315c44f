/** The write-ahead log of the read models is never moved into another file; that of the event store is alike. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { ReadModels } from '../../../shared/read-models/port.ts';
import { openSqliteReadModels } from '../../../shared/read-models/sqlite/read-models.ts';
import { timesOf } from '../../support/long-run-share.ts';
import { READ_MODEL_SECRETS } from '../../support/read-models-here.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
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
  readModels = openSqliteReadModels({ file, secrets: READ_MODEL_SECRETS });
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
const writeUntilDue = async (name: string): Promise<void> => {
  for (let n = 0; n === 0 || walBytes() < DUE_BYTES; n += 1) await write(readModels, `${name}${n}`);
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
    await write(next, `new${generation}`);
    await next.serve();
    await next.end();
    await expectWhole(BATCH);
  }
});
