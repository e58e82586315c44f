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

export const SCHEMA_VERSION = 1;

// Payment ids can be random: only the small index of names then grows at random places.
const TABLES = `
  CREATE TABLE streams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
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
  PRAGMA user_version = ${SCHEMA_VERSION};`;

/** Throws for a file of a newer version: its additions would be lost or misread. */
export function createSchema(database: DatabaseSync): void {
  const version = versionOf(database);
  if (version > SCHEMA_VERSION)
    throw new Error(
      `written by a newer version of this service (schema ${version}, known is ${SCHEMA_VERSION})`,
    );
  const triggers = ['streams', 'events', 'meta'].map(appendOnly).join('');
  if (version === 0) database.exec(`BEGIN EXCLUSIVE; ${TABLES} ${triggers} COMMIT`);
}
