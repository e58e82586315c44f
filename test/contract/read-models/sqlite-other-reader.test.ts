/** A rebuild puts one file in the place of another, which another process, such as a shell, may have open. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ReadModelsUnavailable } from '../../../shared/read-models/errors.ts';
import type { NextGeneration, ReadModels } from '../../../shared/read-models/port.ts';
import { openSqliteReadModels } from '../../../shared/read-models/sqlite/read-models.ts';
import { READ_MODEL_SECRETS } from '../../support/read-models-here.ts';
import { NODE } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { change, readModelAt } from './opened.ts';

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

let folder: ReturnType<typeof temporaryFolder>;
let file: string;
let readModels: ReadModels;
let reader: ChildProcess | undefined;

beforeEach(async () => {
  folder = temporaryFolder();
  file = join(folder.path, 'read-models.db');
  readModels = openSqliteReadModels({ file, secrets: READ_MODEL_SECRETS });
  await readModels.apply(
    OLD.map((id) => change(readModelAt(id, 0))),
    null,
    'p1',
  );
});
afterEach(async () => {
  await leave();
  await readModels.close();
  folder.remove();
});

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

test('a file that another process has open is replaced, and its write-ahead log is not laid over the new one', async () => {
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

test('a file that another process reads is served on, and replaced by the next rebuild', async () => {
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
