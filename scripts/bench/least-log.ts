/** The thread of least.ts that appends events: one transaction with one fsync for each message. */
import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';

/** One event. Messages hold several, one after the other. */
export type EventRow = [stream: string, revision: number, hash: string, text: string];

const COLUMNS = 4;

const database = new DatabaseSync(workerData);
database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
database.exec(`CREATE TABLE events (position INTEGER PRIMARY KEY, stream TEXT, revision INTEGER,
  hash TEXT, text TEXT, UNIQUE (stream, revision))`);
const insert = database.prepare(
  'INSERT INTO events (stream, revision, hash, text) VALUES (?, ?, ?, ?)',
);

parentPort?.on('message', (values: (string | number)[]) => {
  database.exec('BEGIN IMMEDIATE');
  for (let at = 0; at < values.length; at += COLUMNS) insert.run(...values.slice(at, at + COLUMNS));
  database.exec('COMMIT');
  parentPort?.postMessage('stored');
});
