/** The ledger: a row for each operation carried out or fenced, never changed, without card data. */
import { randomBytes } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as immediate } from 'node:timers/promises';
import type { FailureCode } from '../../shared/payment/fields.ts';
import {
  ensurePrivateFile,
  makeDataDir,
  takeFileLock,
} from '../../shared/runtime/private-files.ts';
import {
  type Durability,
  inTransaction,
  lastBefore,
  openLedgerFile,
  orClose,
  versionOf,
} from '../../shared/runtime/sqlite.ts';
import { AUTHORIZATION_MS_MAX, type LedgerEntry } from '../port.ts';
import type { AskingShopper, KnownAuthorization, SimulatedOutcome } from './rules.ts';
import { type CardBehaviour, KEPT_BEHAVIOURS } from './test-cards.ts';

export type SimulatedEntry = Omit<LedgerEntry, 'cursor'> & {
  /** From 1, in the order in which operations were carried out. */
  sequence: number;
  failureCode?: FailureCode;
  /** Not in a list. */
  authorizationExpiresAt?: string;
};

type Ordered = Pick<SimulatedEntry, 'operationId' | 'kind' | 'paymentId' | 'amount' | 'currency'>;
/** An operation that waits for its shopper; the secret is in the address of the page (gaps §21). */
export type ShopperAuthentication = Ordered & Record<'secret' | 'returnUrl' | 'expiresAt', string>;

export type WaitingOperation = { outcome: 'ACTION_REQUIRED' } & ShopperAuthentication;

export type Recorded = { outcome: 'RECORDED'; entry: SimulatedEntry } | { outcome: 'FENCED' };

export const LEDGER_VERSION = 2;
const SCHEMA = `
  CREATE TABLE operations (
    operation_id TEXT PRIMARY KEY,
    sequence INTEGER, -- null for a fence
    outcome TEXT NOT NULL CHECK (outcome IN ('APPROVED', 'DECLINED', 'FENCED')),
    kind TEXT, payment_id TEXT, authorization_id TEXT, amount INTEGER, currency TEXT,
    failure_code TEXT, provider_failure_code TEXT, behaviour TEXT, expires_at TEXT,
    CHECK ((sequence IS NULL) = (outcome = 'FENCED'))
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX operations_by_sequence ON operations (sequence) WHERE sequence IS NOT NULL;
  CREATE INDEX operations_by_authorization ON operations (authorization_id)
    WHERE authorization_id IS NOT NULL;
  PRAGMA user_version = ${LEDGER_VERSION};
`;
/** Authorizations of version 1 do not tell when they end. */
const FROM_VERSION_1 = `ALTER TABLE operations ADD COLUMN expires_at TEXT;
  PRAGMA user_version = ${LEDGER_VERSION};`;

/** Added later, and so made at each start where it is not there. */
const AUTHENTICATIONS = `CREATE TABLE IF NOT EXISTS authentications (
    operation_id TEXT PRIMARY KEY, secret TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
    payment_id TEXT NOT NULL, amount INTEGER NOT NULL, currency TEXT NOT NULL,
    return_url TEXT NOT NULL, expires_at TEXT NOT NULL
  ) STRICT, WITHOUT ROWID`;
/** When an operation was carried out, in UTC; an earlier version reads and writes a ledger with it too. */
const HAS_TIMES = "SELECT 1 FROM pragma_table_info('operations') WHERE name = 'made_at'";
const TIMES = 'ALTER TABLE operations ADD COLUMN made_at TEXT';

const COLUMNS = `sequence, operation_id AS operationId, kind, payment_id AS paymentId, outcome,
  amount, currency, failure_code AS failureCode, provider_failure_code AS providerFailureCode`;
const FIND = `SELECT ${COLUMNS}, expires_at AS authorizationExpiresAt FROM operations WHERE operation_id = ?`;
const LIST = `SELECT ${COLUMNS} FROM operations WHERE sequence > ? ORDER BY sequence LIMIT ?`;
const END = `SELECT * FROM (SELECT ${COLUMNS} FROM operations WHERE sequence > ?
  AND (kind IN ('AUTHORIZE', 'SALE') OR authorization_id IS NOT NULL)
  ORDER BY sequence DESC LIMIT ?) ORDER BY sequence`;
const TIME = 'SELECT made_at AS time FROM operations WHERE sequence = ?';
const LAST = 'SELECT coalesce(max(sequence), 0) AS last FROM operations WHERE sequence IS NOT NULL';
const FENCE = `INSERT INTO operations (operation_id, outcome) VALUES (?, 'FENCED')
  ON CONFLICT (operation_id) DO NOTHING`;
const INSERT = `INSERT INTO operations (operation_id, sequence, outcome, kind, payment_id,
  authorization_id, amount, currency, failure_code, provider_failure_code, behaviour, expires_at, made_at)
  VALUES (?, (${LAST}) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (operation_id) DO NOTHING RETURNING sequence`;
const approved = (kind: string, what: string): string => `(SELECT ${what} FROM operations
  WHERE authorization_id = ?1 AND outcome = 'APPROVED' AND kind = '${kind}')`;
const AUTHORIZATION = `SELECT kind, outcome, payment_id AS paymentId, amount, currency, behaviour,
  ${approved('CAPTURE', 'sum(amount)')} AS captured, ${approved('VOID', 'sum(amount)')} AS voided,
  ${approved('REFUND', 'sum(amount)')} AS refunded,
  coalesce(${approved('CAPTURE', 'max(made_at)')}, made_at) AS takenAt
  FROM operations WHERE operation_id = ?1`;

const AWAIT = `INSERT INTO authentications VALUES (:operationId, :secret, :kind, :paymentId, :amount,
  :currency, :returnUrl, :expiresAt) ON CONFLICT (operation_id) DO NOTHING`;
const AUTHENTICATION = `SELECT operation_id AS operationId, secret, kind, payment_id AS paymentId,
  amount, currency, return_url AS returnUrl, expires_at AS expiresAt FROM authentications`;

const SECRET_BYTES = 24;

/** With null for what is absent; a fence has an id and an outcome alone. */
type CarriedOut = Pick<SimulatedEntry, 'sequence' | 'outcome'> & Record<string, unknown>;
type SimulatedPage = {
  entries: SimulatedEntry[];
  next: number | null;
  since?: string | undefined;
};
type Row = CarriedOut | { outcome: 'FENCED' };
type Recordable = Ordered & { authorizationId?: string };

const entryOf = (row: CarriedOut): SimulatedEntry => {
  const given = Object.entries(row).filter(([, value]) => value !== null);
  return {
    ...Object.fromEntries(given),
    providerReference: `sim_${row.sequence}`,
  } as SimulatedEntry;
};

const recordedOf = (row: Row): Recorded =>
  row.outcome === 'FENCED' ? { outcome: 'FENCED' } : { outcome: 'RECORDED', entry: entryOf(row) };

const openDatabase = (file: string, durability: Durability): DatabaseSync => {
  ensurePrivateFile(file);
  const db = openLedgerFile(file, durability);
  return orClose(db, () => {
    const version = versionOf(db);
    if (version === 0) db.exec(`BEGIN IMMEDIATE; ${SCHEMA} COMMIT`);
    else if (version === 1) db.exec(`BEGIN IMMEDIATE; ${FROM_VERSION_1} COMMIT`);
    else if (version !== LEDGER_VERSION) throw new Error(`ledger of schema version ${version}`);
    db.exec(AUTHENTICATIONS);
    if (db.prepare(HAS_TIMES).get() === undefined) db.exec(TIMES);
    return db;
  });
};

const listIn = (db: DatabaseSync) => {
  const list = db.prepare(LIST);
  return (after: number, limit: number): SimulatedPage => {
    const rows = list.all(after, limit + 1) as CarriedOut[];
    const entries = rows.slice(0, limit).map(entryOf);
    return { entries, next: rows.length > limit ? (entries.at(-1)?.sequence ?? null) : null };
  };
};

/** Reads a stopped simulator's ledger, by a SQLite address or a path. Throws what SQLite throws. */
export const readLedger = (file: string) => {
  const db = new DatabaseSync(file, { readOnly: true });
  return { list: listIn(db), close: () => db.close() };
};

/** Steps of one turn share a transaction: each sees those before it, none is answered before the commit. */
const groupsIn = (db: DatabaseSync) => {
  let steps: (() => Recorded)[] = [];
  let group: Promise<Recorded[]> | undefined;
  const runAll = (): Recorded[] => {
    const all = steps;
    [steps, group] = [[], undefined];
    return inTransaction(db, () => all.map((step) => step()));
  };
  return async (step: () => Recorded): Promise<Recorded> => {
    const at = steps.push(step) - 1;
    group ??= immediate().then(runAll);
    return (await group)[at] as Recorded;
  };
};

const ledgerIn = (db: DatabaseSync) => {
  const addAuthentication = db.prepare(AWAIT);
  const byOperation = db.prepare(`${AUTHENTICATION} WHERE operation_id = ?`);
  const bySecret = db.prepare(`${AUTHENTICATION} WHERE secret = ?`);
  const find = db.prepare(FIND);
  const end = db.prepare(END);
  const list = listIn(db);
  const time = db.prepare(TIME);
  const insert = db.prepare(INSERT);
  const fence = db.prepare(FENCE);
  const authorization = db.prepare(AUTHORIZATION);
  const last = db.prepare(LAST);
  const inGroup = groupsIn(db);

  const read = (operationId: string): Recorded | undefined => {
    const row = find.get(operationId) as Row | undefined;
    return row && recordedOf(row);
  };
  const waiting = (operationId: string): WaitingOperation | undefined => {
    const row = byOperation.get(operationId) as ShopperAuthentication | undefined;
    return row && { outcome: 'ACTION_REQUIRED', ...row };
  };
  const there = <T>(operationId: string, stored: T | undefined): T => {
    if (stored !== undefined) return stored;
    throw new Error(`operation ${operationId} is not in the ledger after its insert`);
  };

  return {
    /** Unless it waits already. */
    await: (operation: AskingShopper, expiresAt: string): WaitingOperation => {
      const { operationId, kind, paymentId, amount, currency } = operation;
      const { returnUrl } = operation.authentication;
      const order = { operationId, kind, paymentId, amount, currency, returnUrl, expiresAt };
      const secret = randomBytes(SECRET_BYTES).toString('base64url');
      addAuthentication.run({ ...order, secret });
      return there(operationId, waiting(operationId));
    },
    authentication: (secret: string) => bySecret.get(secret) as ShopperAuthentication | undefined,
    /** Unless the id is recorded or fenced by then. */
    record: (operation: Recordable, decide: () => SimulatedOutcome, behaviour?: CardBehaviour) =>
      inGroup(() => {
        const { operationId, kind, paymentId, amount, currency } = operation;
        const decided = decide();
        const { outcome, failureCode = null, providerFailureCode = null } = decided;
        const nowMs = Date.now();
        const isAuthorized = kind === 'AUTHORIZE' && outcome === 'APPROVED';
        const kept = behaviour !== undefined && KEPT_BEHAVIOURS.has(behaviour) ? behaviour : null;
        const ends = isAuthorized ? new Date(nowMs + AUTHORIZATION_MS_MAX).toISOString() : null;
        const ids = [operationId, outcome, kind, paymentId, operation.authorizationId ?? null];
        const values = [amount, currency, failureCode, providerFailureCode, kept, ends];
        const made = insert.get(...ids, ...values, new Date(nowMs).toISOString());
        if (made === undefined) return there(operationId, read(operationId));
        const sequence = Number(made.sequence);
        const row = { sequence, operationId, kind, paymentId, amount, currency, ...decided };
        return recordedOf({ ...row, authorizationExpiresAt: ends });
      }),
    /** Unless the id is recorded. */
    fence: (operationId: string): Recorded => {
      fence.run(operationId);
      return there(operationId, read(operationId));
    },
    find: (operationId: string): Recorded | WaitingOperation | undefined =>
      read(operationId) ?? waiting(operationId),
    /** `since` of any offset; the page says it where the ledger knows the time of its entries. */
    list: (after: number, limit: number, since?: string): SimulatedPage => {
      if (since === undefined) return list(after, limit);
      const timeOf = (sequence: number) => time.get(sequence)?.time;
      const before = lastBefore(new Date(since).toISOString(), Number(last.get()?.last), timeOf);
      if (before !== undefined && timeOf(before) == null) return list(after, limit);
      return { ...list(Math.max(after, before ?? 0), limit), since };
    },
    /** Leaves out operations made elsewhere, which no log has until they are noticed. */
    end: (after: number, limit: number): SimulatedEntry[] =>
      (end.all(after, limit) as CarriedOut[]).map(entryOf),
    authorization: (operationId: string) =>
      authorization.get(operationId) as KnownAuthorization | undefined,
  };
};

/**
 * `NORMAL` may lose the last rows at a power failure, none at `kill -9`. The stand-alone simulator uses `FULL`,
 * for restore and crash tests. Makes file (0600) and folder (0700). Throws what the file system or SQLite
 * throws; isLockHeld tells a held ledger.
 */
export const openLedger = (file: string, durability: Durability) => {
  makeDataDir(dirname(resolve(file)));
  // Only one process's memory knows what is at work. Its lock is another file: the ledger can be copied.
  const lock = takeFileLock(`${file}.lock`);
  try {
    const db = openDatabase(file, durability);
    const close = () => {
      db.close();
      lock.release();
    };
    return { ...ledgerIn(db), close };
  } catch (error) {
    lock.release();
    throw error;
  }
};
