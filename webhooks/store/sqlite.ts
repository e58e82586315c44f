/** The state of deliveries in a SQLite file of the data folder, made at its first use. */
import { existsSync } from 'node:fs';
import { ensurePrivateFile } from '../../shared/runtime/private-files.ts';
import { inTransaction, openDeliveriesFile } from '../../shared/runtime/sqlite.ts';
import { ATTEMPTS_MAX, type DeliveryStore } from './port.ts';

const TABLES = `
  CREATE TABLE IF NOT EXISTS delivery (
    endpoint_id TEXT PRIMARY KEY, version INTEGER NOT NULL, row TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS attempt (
    endpoint_id TEXT NOT NULL, number INTEGER NOT NULL, event_id TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (endpoint_id, number)
  ) WITHOUT ROWID;
`;

const connect = (file: string) => {
  // To open and close a file ends the locks that another connection of this process has on it.
  if (!existsSync(file)) ensurePrivateFile(file);
  const db = openDeliveriesFile(file);
  db.exec(TABLES);
  return {
    db,
    load: db.prepare('SELECT version, row AS text FROM delivery WHERE endpoint_id = ?'),
    insert: db.prepare(
      'INSERT INTO delivery (endpoint_id, version, row) VALUES (?, 1, ?) ON CONFLICT DO NOTHING',
    ),
    update: db.prepare(
      'UPDATE delivery SET version = version + 1, row = ? WHERE endpoint_id = ? AND version = ?',
    ),
    add: db.prepare(
      `INSERT INTO attempt (endpoint_id, number, event_id, body)
       SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3 FROM attempt WHERE endpoint_id = ?1`,
    ),
    trim: db.prepare(
      `DELETE FROM attempt WHERE endpoint_id = ?1
       AND number <= (SELECT max(number) FROM attempt WHERE endpoint_id = ?1) - ?2`,
    ),
    attempts: db.prepare(
      `SELECT number, body FROM attempt
       WHERE endpoint_id = ?1 AND number < ?4 AND (?3 = '' OR event_id = ?3)
       ORDER BY number DESC LIMIT ?2`,
    ),
    remove: db.prepare('DELETE FROM delivery WHERE endpoint_id = ?'),
    removeAttempts: db.prepare('DELETE FROM attempt WHERE endpoint_id = ?'),
  };
};

/** The file has mode 0600; one process at a time writes to it. */
export const sqliteDeliveries = (file: string): DeliveryStore => {
  let opened: ReturnType<typeof connect> | undefined;
  const connection = () => {
    opened ??= connect(file);
    return opened;
  };

  return {
    load: async (endpointId) => {
      const found = connection().load.get(endpointId);
      return found && { version: Number(found.version), text: String(found.text) };
    },
    save: async (endpointId, text, expectedVersion, attempts) =>
      inTransaction(connection().db, () => {
        const { insert, update, add, trim } = connection();
        const { changes } =
          expectedVersion === 0
            ? insert.run(endpointId, text)
            : update.run(text, endpointId, expectedVersion);
        if (changes !== 1) return false;
        for (const attempt of attempts)
          add.run(endpointId, attempt.eventId, JSON.stringify(attempt));
        if (attempts.length > 0) trim.run(endpointId, ATTEMPTS_MAX);
        return true;
      }),
    attempts: async (endpointId, { limit, eventId = '', before = Number.MAX_SAFE_INTEGER }) =>
      connection()
        .attempts.all(endpointId, limit, eventId, before)
        .map(({ number, body }) => ({
          number: Number(number),
          attempt: JSON.parse(String(body)),
        })),
    remove: async (endpointId) =>
      inTransaction(connection().db, () => {
        connection().remove.run(endpointId);
        connection().removeAttempts.run(endpointId);
      }),
    close: async () => opened?.db.close(),
  };
};
