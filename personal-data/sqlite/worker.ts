/** The thread that makes keys and writes keys.sqlite, so that no request waits for its disk. */
import { workerData } from 'node:worker_threads';
import { serveCalls } from '../../shared/runtime/jobs.ts';
import { inTransaction, openKeysFile } from '../../shared/runtime/sqlite.ts';
import { type KeyRow, masterKeysOf, newRow, REWRAP_ROWS, rewrapRows } from '../master-key.ts';

const TABLES = `
  CREATE TABLE IF NOT EXISTS personal_key (
    id TEXT PRIMARY KEY, kek TEXT NOT NULL, wrapped BLOB, made_at TEXT NOT NULL, erased_at TEXT,
    CHECK ((wrapped IS NULL) = (erased_at IS NOT NULL))
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS checkpoint (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
`;

/** `secrets`: those of the current master key and the one before. */
export type KeysFile = { file: string; secrets: [string, string | undefined] };

const open = async ({ file, secrets }: KeysFile) => {
  const db = openKeysFile(file);
  db.exec(TABLES);
  const masterKeys = masterKeysOf(...secrets);
  const add = db.prepare('INSERT INTO personal_key VALUES (?, ?, ?, ?, NULL)');
  const erase = db.prepare(
    `INSERT INTO personal_key VALUES (?1, '', NULL, ?2, ?2) ON CONFLICT (id) DO UPDATE
     SET wrapped = NULL, erased_at = ?2 WHERE erased_at IS NULL`,
  );
  const pageAfter = db.prepare(
    `SELECT id, kek, wrapped FROM personal_key WHERE id > ? ORDER BY id LIMIT ${REWRAP_ROWS}`,
  );
  // One that was erased meanwhile stays erased.
  const change = db.prepare(
    'UPDATE personal_key SET kek = ?, wrapped = ? WHERE id = ? AND wrapped IS NOT NULL',
  );
  const saveCheckpoint = db.prepare('INSERT OR REPLACE INTO checkpoint VALUES (1, ?)');
  const moveAll = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)');
  const leaveNothingBehind = (): void => {
    if (moveAll.get()?.busy !== 0)
      throw new Error(`${file}-wal is in use, and may still hold erased keys`);
  };
  return {
    make: (count: number) => {
      const made = Array.from({ length: count }, () => newRow(masterKeys));
      const now = new Date().toISOString();
      inTransaction(db, () => {
        for (const { id, kek, wrapped } of made) add.run(id, kek, wrapped, now);
      });
      return {
        ids: made.map(({ id }) => id),
        bytes: Buffer.concat(made.map(({ bytes }) => bytes)),
      };
    },
    erase: (ids: readonly string[]): void => {
      const now = new Date().toISOString();
      inTransaction(db, () => {
        for (const id of ids) erase.run(id, now);
      });
      leaveNothingBehind();
    },
    rewrap: (after: string) => {
      const page = pageAfter.all(after) as KeyRow[];
      const { rows, done } = rewrapRows(masterKeys, page);
      inTransaction(db, () => {
        for (const { id, kek, wrapped } of rows) change.run(kek, wrapped, id);
      });
      if (done.last === undefined) leaveNothingBehind();
      return done;
    },
    saveCheckpoint: (text: string): void => void saveCheckpoint.run(text),
    isOpen: () => true,
    close: () => db.close(),
  };
};
export type KeysWriter = Awaited<ReturnType<typeof open>>;

await serveCalls(open(workerData), (error) => error as Error);
