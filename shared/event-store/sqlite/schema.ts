import type { DatabaseSync } from 'node:sqlite';
import { versionOf } from '../../runtime/sqlite.ts';

const appendOnly = (table: string): string =>
  ['UPDATE', 'DELETE']
    .map(
      (change) => `
        CREATE TRIGGER ${table}_no_${change.toLowerCase()} BEFORE ${change} ON ${table}
        BEGIN SELECT RAISE(ABORT, '${table} are append-only'); END;`,
    )
    .join('');

/** Each runs once, in its own transaction. Add to the list; never change an entry. */
const MIGRATIONS = [
  // Payment ids can be random: only the small index of names then grows at random places.
  `CREATE TABLE streams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
   CREATE TABLE events (
     position INTEGER PRIMARY KEY,
     stream_id INTEGER NOT NULL REFERENCES streams (id),
     revision INTEGER NOT NULL CHECK (revision >= 0),
     id TEXT NOT NULL UNIQUE,
     hash TEXT NOT NULL,
     log_hash TEXT NOT NULL,
     text TEXT NOT NULL,
     UNIQUE (stream_id, revision)
   ) STRICT;
   CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
   ${appendOnly('streams')} ${appendOnly('events')} ${appendOnly('meta')}`,
];

/** Throws for a file of a newer version: its additions would be lost or misread. */
export function createSchema(database: DatabaseSync): void {
  const version = versionOf(database);
  if (version > MIGRATIONS.length) {
    throw new Error(
      `written by a newer version of this service (schema ${version}, known is ${MIGRATIONS.length})`,
    );
  }
  for (let next = version; next < MIGRATIONS.length; next++) migrate(database, next);
}

export const SCHEMA_VERSION = MIGRATIONS.length;

function migrate(database: DatabaseSync, index: number): void {
  database.exec('BEGIN EXCLUSIVE');
  try {
    // Another process may have run it while this one waited.
    if (versionOf(database) === index) {
      database.exec(`${MIGRATIONS[index]}; PRAGMA user_version = ${index + 1}`);
    }
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}
