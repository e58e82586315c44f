/** The write-ahead log of the read models is moved by a thread, and never into another file. */
import { renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createWalMoves } from '../../../shared/read-models/sqlite/wal-moves.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { until } from '../../support/until.ts';

let folder: ReturnType<typeof temporaryFolder>;
let file: string;
beforeEach(() => {
  folder = temporaryFolder();
  file = join(folder.path, 'read-models.sqlite');
});
afterEach(() => folder.remove());

/** One row of a page and more for each number, as a commit of the read models writes them. */
const open = (path: string) => {
  const db = new DatabaseSync(path);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0');
  db.exec('CREATE TABLE IF NOT EXISTS row (n INTEGER PRIMARY KEY, file TEXT, body TEXT)');
  const insert = db.prepare('INSERT OR REPLACE INTO row VALUES (?, ?, ?)');
  const walPages = db.prepare('PRAGMA wal_checkpoint(NOOP)');
  const write = (name: string, count: number): void => {
    db.exec('BEGIN');
    for (let n = 0; n < count; n += 1) insert.run(n, name, 'x'.repeat(4_000));
    db.exec('COMMIT');
  };
  return { db, walPages, write };
};

const left = (walPages: ReturnType<typeof open>['walPages']): number => {
  const { log, checkpointed } = walPages.get() as { log: number; checkpointed: number };
  return log - checkpointed;
};

test('a log of so many pages is moved to its end, and is then written from its start again', async () => {
  const { db, walPages, write } = open(file);
  const moves = createWalMoves(file, 200);
  const bytes: number[] = [];
  for (let commit = 0; commit < 20; commit += 1) {
    write('first', 300);
    moves.afterCommit({ walPages });
    await until('the log is moved', async () => left(walPages) === 0);
    await moves.rest();
    bytes.push(statSync(`${file}-wal`).size);
  }
  expect(Math.max(...bytes)).toBeLessThan(2 * (bytes[0] as number));
  await moves.close();
  db.close();
});

test('a shorter log is left as it is', async () => {
  const { db, walPages, write } = open(file);
  const moves = createWalMoves(file, 1_000);
  write('first', 100);
  moves.afterCommit({ walPages });
  expect(moves.rest()).toBeUndefined();
  await moves.close();
  expect(left(walPages)).toBeGreaterThan(100);
  db.close();
});

test('no log is moved into another file: neither into the one that is gone nor into the one that came', async () => {
  const moves = createWalMoves(file, 10);
  let at = open(file);
  for (let generation = 0; generation < 60; generation += 1) {
    at.write(`old ${generation}`, 600);
    moves.afterCommit(at);
    // So that the replacement meets the move at another place each time.
    for (let turn = 0; turn < generation % 10; turn += 1)
      await new Promise((resolve) => setImmediate(resolve));
    const next = open(`${file}.next`);
    next.write(`new ${generation}`, 40);
    next.db.close();
    moves.whileStill(() => {
      at.db.close();
      renameSync(`${file}.next`, file);
      at = open(file);
    });
    at.write(`written ${generation}`, 5);
    const rows = at.db.prepare('SELECT file, count(*) AS n FROM row GROUP BY file').all();
    expect(rows).toEqual([
      { file: `new ${generation}`, n: 35 },
      { file: `written ${generation}`, n: 5 },
    ]);
    expect(at.db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
  }
  await moves.close();
  at.db.close();
});

test('after the close nothing is moved, and no file is made', async () => {
  const { db, walPages, write } = open(file);
  const moves = createWalMoves(file, 10);
  write('first', 60);
  moves.afterCommit({ walPages });
  await moves.close();
  db.close();
  rmSync(file);
  moves.afterCommit({ walPages: { get: () => ({ log: 60, checkpointed: 0 }) } as never });
  await moves.rest();
  expect(() => statSync(file)).toThrow('ENOENT');
});
