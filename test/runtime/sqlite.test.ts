/** The settings of each SQLite file: what is told to a merchant has to be on the disk. */
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { expect, test } from '@jest/globals';
import {
  openDeliveriesFile,
  openEventLog,
  openEventLogToRead,
  openLedgerFile,
  openReadModelsFile,
  openReadModelsToRead,
  withoutSync,
} from '../../shared/runtime/sqlite.ts';
import { folderOfEachTest } from '../support/temporary-folder.ts';

const [NORMAL, FULL] = [1, 2];

const folder = folderOfEachTest();

const setting = (db: DatabaseSync, name: string): unknown =>
  Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0];

test.each([
  ['event log', openEventLog, FULL, 0],
  ['read models', (file: string) => openReadModelsFile(file, 16_000), NORMAL, 16_000],
  ['deliveries', openDeliveriesFile, NORMAL, 1_000],
  ['durable ledger', (file: string) => openLedgerFile(file, 'FULL'), FULL, 1_000],
  ['ledger', (file: string) => openLedgerFile(file, 'NORMAL'), NORMAL, 1_000],
])(
  'the file of the %s is durable as it has to be, and distrusts its content',
  (_name, open, synchronous, moveAtPages) => {
    using db = open(join(folder.path, 'file.sqlite'));
    expect(setting(db, 'journal_mode')).toBe('wal');
    expect(setting(db, 'synchronous')).toBe(synchronous);
    expect(setting(db, 'wal_autocheckpoint')).toBe(moveAtPages);
    expect(setting(db, 'trusted_schema')).toBe(0);
    expect(setting(db, 'cell_size_check')).toBe(1);
  },
);

test('the event log holds its references and its triggers, also after a step without sync', () => {
  using db = openEventLog(join(folder.path, 'file.sqlite'));
  expect(setting(db, 'foreign_keys')).toBe(1);
  expect(setting(db, 'recursive_triggers')).toBe(1);
  expect(() =>
    withoutSync(db, () => {
      expect(setting(db, 'synchronous')).toBe(NORMAL);
      throw new Error('the disk is full');
    }),
  ).toThrow('the disk is full');
  expect(setting(db, 'synchronous')).toBe(FULL);
});

test('a reader of a live file cannot write it', () => {
  const file = join(folder.path, 'file.sqlite');
  using writer = openEventLog(file);
  writer.exec('CREATE TABLE one (n INTEGER)');
  for (const db of [openReadModelsToRead(file), openEventLogToRead(`file://${file}?mode=ro`)]) {
    expect(setting(db, 'trusted_schema')).toBe(0);
    expect(() => db.exec('INSERT INTO one VALUES (1)')).toThrow('readonly');
    db.close();
  }
});
