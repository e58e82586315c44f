/**
 * The read models in one SQLite file of their own, read and written in the calling thread: a read
 * is a few microseconds, less than a message to another thread costs.
 *
 * The file holds nothing that the event log does not: it may be deleted while the service is
 * stopped. One that is damaged, or that another version of this code wrote, is thrown away and
 * filled again by the projector; it is never a reason not to start.
 */
import { renameSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as immediate } from 'node:timers/promises';
import { bodyOf, type PaymentReadModel, READ_MODEL_VERSION } from '../../payment/response.ts';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import { firstLineOf } from '../../runtime/error-text.ts';
import { ensurePrivateFile } from '../../runtime/private-files.ts';
import { type DocumentToSum, startChecksum } from '../checksum.ts';
import { CheckpointMoved, ReadModelsUnavailable, RebuildRunning } from '../errors.ts';
import type {
  NextGeneration,
  ParkedPayment,
  PaymentDocument,
  ReadModelChange,
  ReadModels,
  UnresolvedPayment,
} from '../port.ts';
import { DamagedDocument, intact, type SummedRow, sumOf } from '../row-checksum.ts';
import { createRevisionWaiters } from '../waiters.ts';
import { searchSqlite } from './search.ts';

/** Names the tables below; raise it with any change of them. */
const SCHEMA_VERSION = 4;
/** Stored as user_version: a file of another generation is filled anew. */
const GENERATION = SCHEMA_VERSION * 10_000 + READ_MODEL_VERSION;
/** How many written read models are kept unparsed for the next event (some 3 kB each). */
const RECENT_READ_MODELS_MAX = 4096;
/** How many documents a checksum reads before it lets other work take its turn. */
const PAGE = 250;
const CORRUPT = 11;
const NOT_A_DATABASE = 26;

// What never changes in a payment is written once, so that an update leaves its indexes alone; what
// is searched stands before the body, so that a scan stops short of it. An index of last4 would cost
// a new payment a third of its time, since its places are random; as the end of another one it is
// read along, in order.
const SCHEMA = `
  CREATE TABLE payment (
    payment_id TEXT NOT NULL PRIMARY KEY,
    merchant_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    amount INTEGER NOT NULL,
    last4 TEXT NOT NULL,
    merchant_reference TEXT,
    open_since TEXT,
    open TEXT,
    sum INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX payment_unresolved ON payment (open_since) WHERE open_since IS NOT NULL;
  CREATE INDEX payment_merchant ON payment (merchant_id, created_at, payment_id, last4, amount);
  CREATE INDEX payment_reference ON payment (merchant_reference)
    WHERE merchant_reference IS NOT NULL;
  CREATE TABLE parked (
    payment_id TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    reason TEXT NOT NULL,
    since TEXT NOT NULL
  ) STRICT;
  CREATE TABLE checkpoint (only INTEGER PRIMARY KEY CHECK (only = 1), position TEXT, hash TEXT) STRICT;
  INSERT INTO checkpoint VALUES (1, NULL, NULL);
  PRAGMA user_version = ${GENERATION};
`;

export type SqliteReadModelsOptions = {
  file: string;
  /** How long a statement waits for a lock that another process holds. */
  timeoutMs?: number;
  logger?: { warn(fields: object, message: string): void };
};

/** Why an existing file cannot be used as it is. */
class UnusableFile extends Error {}

const prepared = (db: DatabaseSync) => ({
  db,
  begin: db.prepare('BEGIN IMMEDIATE'),
  commit: db.prepare('COMMIT'),
  rollback: db.prepare('ROLLBACK'),
  document: db.prepare(
    'SELECT merchant_id AS merchantId, revision, open, sum, body FROM payment WHERE payment_id = ?',
  ),
  isParked: db.prepare('SELECT 1 FROM parked WHERE payment_id = ?'),
  revision: db.prepare('SELECT revision FROM payment WHERE payment_id = ?'),
  // seeded bug: newer-revision
  write: db.prepare(
    `INSERT INTO payment (payment_id, merchant_id, revision, status, created_at, amount, last4,
       merchant_reference, open_since, open, sum, body)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (payment_id) DO UPDATE SET revision = excluded.revision, status = excluded.status,
       open_since = excluded.open_since, open = excluded.open, sum = excluded.sum,
       body = excluded.body
     WHERE excluded.revision > payment.revision`,
  ),
  park: db.prepare(
    `INSERT INTO parked (payment_id, revision, reason, since) SELECT ?, ?, ?, ?
     WHERE NOT EXISTS (SELECT 1 FROM payment WHERE payment_id = ? AND revision >= ?)
     ON CONFLICT (payment_id) DO UPDATE SET revision = excluded.revision, reason = excluded.reason`,
  ),
  unpark: db.prepare('DELETE FROM parked WHERE payment_id = ? AND revision <= ?'),
  unresolved: db.prepare(
    `SELECT payment_id AS paymentId, merchant_id AS merchantId, open_since AS since FROM payment
     WHERE open_since IS NOT NULL ORDER BY open_since, rowid LIMIT ?`,
  ),
  parked: db.prepare(
    `SELECT payment_id AS paymentId, revision, reason, since FROM parked
     ORDER BY since, rowid LIMIT ?`,
  ),
  page: db.prepare(
    `SELECT rowid, payment_id AS paymentId, merchant_id AS merchantId, revision, open, body
     FROM payment WHERE rowid > ? ORDER BY rowid LIMIT ?`,
  ),
  checkpoint: db.prepare('SELECT position, hash FROM checkpoint'),
  move: db.prepare(
    `UPDATE checkpoint SET position = ?1, hash = iif(position IS ?1, hash, ?2)
     WHERE position IS ?3`,
  ),
});
type Connection = ReturnType<typeof prepared>;

/** Makes the tables of a new file; throws UnusableFile at another generation's. */
const resolve = (db: DatabaseSync): void => {
  const tables = db.prepare('SELECT count(*) AS n FROM sqlite_schema').get();
  if (tables?.n === 0) db.exec(`BEGIN IMMEDIATE; ${SCHEMA} COMMIT;`);
  const found = db.prepare('PRAGMA user_version').get()?.user_version;
  if (found !== GENERATION)
    throw new UnusableFile(`it has the form ${found}, this version writes ${GENERATION}`);
};

const connect = (file: string, timeoutMs: number): Connection => {
  ensurePrivateFile(file);
  const db = new DatabaseSync(file, { timeout: timeoutMs });
  try {
    // NORMAL: a power failure may take the last changes, their checkpoint with them; the events
    // are safe in the log, and the changes are made again.
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
    db.exec('PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON');
    // 64 MB of pages: a read of a payment that is not the latest costs half as much.
    // 4000 pages of log: pages that are written again and again are moved a quarter as often.
    db.exec('PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 4000');
    resolve(db);
    const connection = prepared(db);
    // A damage that the first reads meet is found here, where the file can still be replaced.
    connection.parked.get(1);
    connection.checkpoint.get();
    return connection;
  } catch (error) {
    db.close();
    throw error;
  }
};

/** SQLite's primary result code; undefined for an error that is not SQLite's. */
const sqliteCode = (error: unknown): number | undefined => {
  const { errcode } = error as { errcode?: number };
  return errcode === undefined ? undefined : errcode & 0xff;
};
const isDamage = (error: unknown): boolean =>
  error instanceof DamagedDocument || [CORRUPT, NOT_A_DATABASE].includes(sqliteCode(error) ?? 0);

const removeFile = (file: string): void => {
  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true });
};

const openOrReplace = ({ file, timeoutMs = 5000, logger }: SqliteReadModelsOptions): Connection => {
  try {
    return connect(file, timeoutMs);
  } catch (error) {
    // 1: the tables are not those that its version promises.
    if (!(error instanceof UnusableFile || isDamage(error) || sqliteCode(error) === 1)) throw error;
    logger?.warn(
      { file, reason: firstLineOf(error) },
      'read models thrown away: the file could not be used; they are filled again',
    );
    removeFile(file);
    return connect(file, timeoutMs);
  }
};

const readModelOf = ({ merchantId, revision, open, body }: SummedRow): PaymentReadModel => ({
  merchantId,
  revision,
  open: open === null ? [] : JSON.parse(open),
  response: JSON.parse(body),
});

/** A document without what the file says of it besides. */
type Served = Pick<PaymentDocument, 'merchantId' | 'revision' | 'body'>;
type Written = { readModel: PaymentReadModel; body: string };

/**
 * Opens the read models' file, or makes it (mode 0600); a file that cannot be used is replaced by
 * an empty one with a warning, also while running. Throws ReadModelsUnavailable when the file can
 * neither be opened nor made.
 */
export const openSqliteReadModels = (options: SqliteReadModelsOptions): ReadModels => {
  const waiters = createRevisionWaiters();
  /** Read models as last written, the latest written last; never one that was not committed. */
  const recent = createBoundedMap<PaymentReadModel>(RECENT_READ_MODELS_MAX);
  /** Documents as last written or read: a look-up here costs a tenth of one in the file. */
  const documents = createBoundedMap<Served>(RECENT_READ_MODELS_MAX);

  const unavailable = (error: unknown): unknown => {
    if (error instanceof DamagedDocument) return new ReadModelsUnavailable(error.message);
    const { code } = error as { code?: string };
    const expected = [
      'ERR_SQLITE_ERROR',
      'ERR_INVALID_STATE',
      'EACCES',
      'EROFS',
      'ENOENT',
      'EPERM',
    ];
    if (code === undefined || !expected.includes(code)) return error;
    return new ReadModelsUnavailable(
      `the file of the read models cannot be used: ${firstLineOf(error)}`,
    );
  };

  const reconnect = (): Connection => {
    try {
      return openOrReplace(options);
    } catch (error) {
      throw unavailable(error);
    }
  };
  let at = reconnect();
  // Spares every read and write a look into a table that is empty on all good days.
  let anyParked = at.parked.get(1) !== undefined;

  const forget = (): void => {
    recent.clear();
    documents.clear();
  };

  const replaceDamaged = (error: unknown): void => {
    options.logger?.warn(
      { file: options.file, reason: firstLineOf(error) },
      'read models are damaged',
    );
    at.db.close();
    forget();
    removeFile(options.file);
    at = reconnect();
    anyParked = false;
  };

  const resilient = <T>(run: () => T): T => {
    try {
      return run();
    } catch (error) {
      if (isDamage(error)) replaceDamaged(error);
      throw unavailable(error);
    }
  };

  const serve = (paymentId: string, document: Served): Served => {
    documents.set(paymentId, document);
    return document;
  };

  const remember = ({ readModel, body }: Written): void => {
    const { merchantId, revision, response } = readModel;
    recent.set(response.paymentId, readModel);
    serve(response.paymentId, { merchantId, revision, body });
  };

  const read = (paymentId: string): Served | undefined => {
    const row = at.document.get(paymentId) as SummedRow | undefined;
    if (row === undefined) return undefined;
    const { merchantId, revision, body } = intact(paymentId, row);
    return serve(paymentId, { merchantId, revision, body });
  };

  /** The document's text, or undefined when the file had it at this revision already. */
  const writeReadModel = (readModel: PaymentReadModel): string | undefined => {
    const body = bodyOf(readModel);
    const { merchantId, revision } = readModel;
    const { paymentId, status, createdAt, amount, merchantReference } = readModel.response;
    const first = readModel.open[0];
    const open = first === undefined ? null : JSON.stringify(readModel.open);
    const { changes } = at.write.run(
      paymentId,
      merchantId,
      revision,
      status,
      createdAt,
      amount,
      readModel.response.paymentMethod.card.last4,
      merchantReference ?? null,
      first?.since ?? null,
      open,
      sumOf(paymentId, { merchantId, revision, open, body }),
      body,
    );
    if (anyParked) at.unpark.run(paymentId, revision);
    return changes === 1 ? body : undefined;
  };

  const park = ({
    paymentId,
    revision,
    reason,
    time,
  }: ReadModelChange & { kind: 'park' }): void => {
    at.park.run(paymentId, revision, reason, time, paymentId, revision);
    anyParked = true;
  };

  /** One transaction; gives the read models that were written, not those that were skipped. */
  const write = (...[changes, from, to, hash]: Parameters<ReadModels['apply']>) => {
    const written: Written[] = [];
    at.begin.run();
    try {
      // seeded bug: checkpoint-compared
      if (at.move.run(to, hash ?? null, from).changes !== 1)
        throw new CheckpointMoved(`the read models' checkpoint is no longer ${from}`);
      for (const change of changes) {
        if (change.kind === 'park') park(change);
        else {
          const body = writeReadModel(change.readModel);
          if (body !== undefined) written.push({ readModel: change.readModel, body });
        }
      }
      at.commit.run();
      return written;
    } catch (error) {
      if (at.db.isTransaction) at.rollback.run();
      throw error;
    }
  };

  const documentOf = (paymentId: string): PaymentDocument | undefined => {
    const document = documents.get(paymentId) ?? read(paymentId);
    if (document === undefined) return undefined;
    const parked = anyParked && at.isParked.get(paymentId) !== undefined;
    return { paymentId, ...document, parked };
  };

  /** In pages, so that other work gets its turn between them. */
  const checksum = async () => {
    const sum = startChecksum();
    let last = Number.MIN_SAFE_INTEGER;
    for (;;) {
      const page = resilient(() => at.page.all(last, PAGE)) as (DocumentToSum & {
        rowid: number;
      })[];
      for (const document of page) sum.add(document);
      if (page.length < PAGE) return sum.result();
      last = page.at(-1)?.rowid ?? last;
      await immediate();
    }
  };

  const nextFile = `${options.file}.next`;
  let rebuilding = false;

  /** In one turn of the event loop: no reader finds the file missing. A crash leaves either one. */
  const replaceBy = (file: string): void => {
    at.db.close();
    try {
      renameSync(file, options.file);
    } finally {
      forget();
      at = reconnect();
      anyParked = at.parked.get(1) !== undefined;
    }
  };

  const openGeneration = async (): Promise<NextGeneration> => {
    if (rebuilding) throw new RebuildRunning('the read models are being rebuilt already');
    if (!at.db.isOpen) throw new ReadModelsUnavailable('the read models are closed');
    rebuilding = true;
    let next: ReadModels;
    try {
      removeFile(nextFile);
      next = openSqliteReadModels({ ...options, file: nextFile });
    } catch (error) {
      rebuilding = false;
      throw unavailable(error);
    }
    const { checkpoint, load, apply, parked } = next;
    let open = true;
    const end = async (): Promise<void> => {
      if (!open) return;
      open = false;
      await next.close();
      removeFile(nextFile);
      rebuilding = false;
    };
    return {
      checkpoint,
      load,
      apply,
      parked,
      checksum: next.checksum,
      serve: async () => {
        await next.close();
        resilient(() => replaceBy(nextFile));
      },
      end,
    };
  };

  const revisionOf = (paymentId: string): number =>
    recent.get(paymentId)?.revision ??
    (at.revision.get(paymentId)?.revision as number | undefined) ??
    -1;

  return {
    get: async (paymentId, merchantId) => {
      const document = resilient(() => documentOf(paymentId));
      // seeded bug: document-of-merchant
      return document?.merchantId === merchantId ? document : undefined;
    },
    getAny: async (paymentId) => resilient(() => documentOf(paymentId)),
    search: async (search, limit) => resilient(() => searchSqlite(at.db, search, limit)),
    waitForRevision: async (paymentId, revision, timeoutMs) => {
      try {
        if (resilient(() => revisionOf(paymentId)) >= revision) return true;
      } catch {
        return false;
      }
      return waiters.wait(paymentId, revision, timeoutMs);
    },
    unresolved: async (limit) =>
      resilient(() => at.unresolved.all(limit).map((row) => ({ ...row }) as UnresolvedPayment)),
    parked: async (limit) =>
      resilient(() => at.parked.all(limit).map((row) => ({ ...row }) as ParkedPayment)),
    // One process holds the data folder, and with it this file.
    lease: async () => true,
    release: async () => undefined,
    checkpoint: async () =>
      resilient(() => (at.checkpoint.get()?.position ?? null) as string | null),
    checkpointHash: async (position) =>
      resilient(() => {
        const stored = at.checkpoint.get();
        return stored?.position === position ? (stored.hash as string | null) : null;
      }),
    load: async (paymentId) => {
      const readModel = recent.get(paymentId);
      if (readModel !== undefined) return readModel;
      return resilient(() => {
        const row = at.document.get(paymentId) as SummedRow | undefined;
        return row === undefined ? undefined : readModelOf(intact(paymentId, row));
      });
    },
    apply: async (...batch) => {
      for (const written of resilient(() => write(...batch))) {
        remember(written);
        waiters.reached(written.readModel.response.paymentId, written.readModel.revision);
      }
    },
    checksum,
    openGeneration,
    close: async () => {
      waiters.close();
      forget();
      if (at.db.isOpen) at.db.close();
    },
  };
};
