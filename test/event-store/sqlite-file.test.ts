/** What only the SQLite driver of the event store promises. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import canonicalize from 'canonicalize';
import { encode, expectedAfter } from '../../shared/event-store/codec.ts';
import {
  AppendOutcomeUnknown,
  RevisionConflict,
  StoreFileUnusable,
  StoreUnavailable,
  UnreadableStream,
} from '../../shared/event-store/errors.ts';
import type { NewEvent, RecordedEvent } from '../../shared/event-store/port.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
  type SqliteEventStoreOptions,
} from '../../shared/event-store/sqlite/event-store.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { keptThread } from '../support/once/kept-threads.ts';
import { authorized, captured, created, newEvent } from '../support/payment-events.ts';
import { verifyWhole } from '../support/tampering.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { HANGS_MS } from '../support/time-bounds.ts';

let folder: ReturnType<typeof temporaryFolder>;
let file: string;
let store: SqliteEventStore | undefined;

/** A folder for each test of a group, or for all of them. */
const withFolder = (before = beforeEach, after = afterEach): void => {
  before(() => {
    folder = temporaryFolder();
    file = join(folder.path, 'events.db');
  });
  after(async () => {
    await store?.close();
    store = undefined;
    folder.remove();
  });
};

const open = async (options: Partial<SqliteEventStoreOptions> = {}): Promise<SqliteEventStore> => {
  store = await openSqliteEventStore({ file, newThread: keptThread, ...options });
  return store;
};
const begun = (stream: string) => newEvent(created({ paymentId: stream.slice('payment-'.length) }));
const append = (to: SqliteEventStore, stream: string, events = [begun(stream)]) =>
  to.append(stream, 'none', events);

/** Another program with the file in its hands. */
function withDatabase<T>(work: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(file, { timeout: 5000 });
  try {
    return work(database);
  } finally {
    database.close();
  }
}
const run = (sql: string): void => withDatabase((database) => database.exec(sql));
const forge = (sql: string): void =>
  run(`DROP TRIGGER IF EXISTS events_no_update; DROP TRIGGER IF EXISTS events_no_delete; ${sql}`);

/** One store for all tests of a group, each of which has streams of its own. */
const withStore = (): (() => SqliteEventStore) => {
  withFolder(beforeAll, afterAll);
  beforeAll(() => open());
  return () => {
    if (store === undefined) throw new Error('no store is open');
    return store;
  };
};

/** Two events each in two streams, interleaved, in a file that no store has open. */
async function storeFourEvents(path: string): Promise<void> {
  const opened = await openSqliteEventStore({ file: path, newThread: keptThread });
  for (const stream of ['payment-a', 'payment-b']) await append(opened, stream);
  for (const stream of ['payment-a', 'payment-b']) {
    const [{ revision, hash }] = (await opened.readStream(stream)) as [RecordedEvent];
    await opened.append(stream, { revision, hash }, [newEvent(authorized())]);
  }
  await opened.close();
}

describe('history cannot change', () => {
  const stored = temporaryFolder();
  const fourEvents = join(stored.path, 'events.db');
  beforeAll(() => storeFourEvents(fourEvents));
  afterAll(() => stored.remove());
  withFolder();
  beforeEach(() => copyFileSync(fourEvents, file));

  test.each(['events', 'streams', 'meta'])('an UPDATE or DELETE of %s is refused', (table) => {
    run(`INSERT INTO meta (key, value) VALUES ('k', 'v')`);
    const column = { events: 'text', streams: 'name', meta: 'value' }[table];
    expect(() => run(`UPDATE ${table} SET ${column} = 'x'`)).toThrow('append-only');
    expect(() => run(`DELETE FROM ${table}`)).toThrow('append-only');
  });

  test('gaps §6: both chains are what an independent recomputation gives', async () => {
    const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');
    const heads = new Map<string, string>();
    let logHash = '0'.repeat(64);
    for (const row of await (await open()).stored.readAll(null, 10)) {
      const { context, data, id, schemaVersion, time, type } = JSON.parse(row.text);
      const previousHash = heads.get(row.stream) ?? '0'.repeat(64);
      const place = { stream: row.stream, revision: row.revision, previousHash };
      const hashed = { ...place, id, type, schemaVersion, time, data, context };
      expect(row.hash).toBe(sha256(String(canonicalize(hashed))));
      logHash = sha256(logHash + row.hash);
      expect(row.logHash).toBe(logHash);
      heads.set(row.stream, row.hash);
    }
    expect(heads.size).toBe(2);
  });

  // test/event-store/chain.test.ts shows what is found; here, that a start looks.
  test('a changed text is refused at the start, with its place named', async () => {
    forge(`UPDATE events SET text = replace(text, '2500', '9500') WHERE position = 3`);
    const refused = open();
    await expect(refused).rejects.toThrow(StoreUnavailable);
    await expect(refused).rejects.toThrow(
      /events\.db: the event log is damaged at position 3 \(stream payment-a, revision 1\): /,
    );
  });

  test('a damage before the tail does not delay the start; verifying the whole log finds it', async () => {
    const opened = await open();
    await Promise.all(Array.from({ length: 120 }, (_, n) => append(opened, `payment-more-${n}`)));
    await opened.close();
    forge(`UPDATE events SET text = replace(text, '2500', '9500') WHERE position = 3`);
    const { broken } = await verifyWhole(await open());
    const reason = 'its text does not have its hash';
    expect(broken).toMatchObject({ position: '3', stream: 'payment-a', revision: 1, reason });
  });
});

describe('the file', () => {
  withFolder();

  test('it can be read by the owner alone, is in WAL mode, and says which schema it has', async () => {
    await append(await open(), 'payment-1');
    for (const name of [file, `${file}-wal`, `${file}-shm`]) {
      expect(statSync(name).mode & 0o777).toBe(0o600);
    }
    const pragma = (name: string) =>
      withDatabase((database) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
    expect(pragma('journal_mode')).toBe('wal');
    expect(pragma('user_version')).toBe(1);
  });

  test('one written by a newer version is refused in one line', async () => {
    run('PRAGMA user_version = 2');
    await expect(open()).rejects.toThrow(
      /^\S+events\.db: written by a newer version of this service \(schema 2, known is 1\)$/,
    );
  });

  test.each([
    ['one that is no database', () => writeFileSync(file, 'not a database'.repeat(100))],
    ['one in a folder that is not there', () => folder.remove()],
  ])('%s is refused in one line that names it', async (_, prepare) => {
    prepare();
    const refused = open();
    await expect(refused).rejects.toThrow(StoreUnavailable);
    await expect(refused).rejects.toThrow(/^\S+events\.db: .+$/);
  });

  test('an open store keeps no process alive, an append under way does', async () => {
    const script = `
      import { openSqliteEventStore } from '${new URL('../../shared/event-store/sqlite/event-store.ts', import.meta.url)}';
      const store = await openSqliteEventStore({ file: ${JSON.stringify(file)} });
      const [stored] = await store.append('payment-1', 'none', [${JSON.stringify(newEvent(created()))}]);
      console.log(stored.position);`;
    const args = ['--input-type=module', '--eval', script];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: HANGS_MS });
    expect(stdout).toBe('1\n');
    expect((await open()).lastPosition()).toBe('1');
  });
});

describe('group commit', () => {
  const opened = withStore();

  test('positions are 1, 2, 3, ... in the order of the log', async () => {
    expect(opened().lastPosition()).toBeNull();
    const appends = [1, 2, 3].map((n) =>
      append(opened(), `payment-first-${n}`, [begun(`payment-first-${n}`), newEvent(authorized())]),
    );
    const positions = (await Promise.all(appends)).flat().map(({ position }) => position);
    expect(positions).toEqual(['1', '2', '3', '4', '5', '6']);
    await opened().close();
    expect((await open()).lastPosition()).toBe('6');
  });

  test('an append that follows another at once is delivered in one batch with it', async () => {
    const subscribed = opened().subscribe(opened().lastPosition(), AbortSignal.timeout(HANGS_MS));
    const items = subscribed[Symbol.asyncIterator]();
    expect((await items.next()).value).toEqual({ kind: 'caught-up' });
    const next = items.next();
    const [intent] = await append(opened(), 'payment-both');
    const outcome = [newEvent(authorized())];
    const [second] = await opened().append('payment-both', expectedAfter(intent), outcome);
    expect((await next).value).toEqual({ kind: 'events', events: [intent, second] });
  });

  test('64 appends at once need far fewer commits than 64', async () => {
    await opened().close();
    const metrics = createMetrics();
    await open({ metrics });
    const appends = Array.from({ length: 64 }, (_, n) => append(opened(), `payment-once-${n}`));
    await Promise.all(appends);
    const [commits] = (await metrics.appendBatches.get()).values;
    expect(commits?.value).toBeLessThanOrEqual(4);
  });

  test('one that is refused does not take its neighbours along', async () => {
    const [taken] = await append(opened(), 'payment-0');
    const copied = { ...newEvent(authorized()), id: taken?.id ?? '' };
    const [stale, before, copy, twice, after] = await Promise.allSettled([
      append(opened(), 'payment-0'),
      append(opened(), 'payment-1'),
      append(opened(), 'payment-2', [begun('payment-2'), copied]),
      append(opened(), 'payment-3', [copied, copied]),
      append(opened(), 'payment-4'),
    ]);
    for (const lost of [stale, copy, twice]) {
      expect(lost).toMatchObject({ reason: expect.any(RevisionConflict) });
    }
    expect([before?.status, after?.status]).toEqual(['fulfilled', 'fulfilled']);
    expect(await opened().readStream('payment-2')).toEqual([]);
    const stored = await opened().readAll(taken?.position ?? null, 10);
    expect(stored.map(({ stream }) => stream)).toEqual(['payment-1', 'payment-4']);
    expect(await verifyWhole(opened())).toMatchObject({ ok: true });
    expect(await append(opened(), 'payment-2')).toHaveLength(1);
  });

  test('an event of another program between two appends is seen', async () => {
    const stream = 'payment-other';
    const [first] = (await append(opened(), stream)) as [RecordedEvent];
    const other = await openSqliteEventStore({ file, newThread: keptThread });
    const [second] = await other.append(stream, first, [newEvent(authorized())]);
    await other.close();
    const stale = opened().append(stream, first, [newEvent(authorized())]);
    await expect(stale).rejects.toThrow(RevisionConflict);
    if (second === undefined) throw new Error('it stored nothing');
    const [third] = await opened().append(stream, second, [newEvent(captured())]);
    expect(third).toMatchObject({ revision: 2, position: String(Number(first.position) + 2) });
    expect(await verifyWhole(opened())).toMatchObject({ ok: true });
  });

  test('gaps §8: a check value stands: the first writer wins, also over a restart', async () => {
    const both = ['one', 'other'].map((value) => opened().claimMeta('secret', value));
    expect(await Promise.all(both)).toEqual(['one', 'one']);
    expect(await opened().claimMeta('another', 'x')).toBe('x');
    await opened().close();
    expect(await (await open()).claimMeta('secret', 'other')).toBe('one');
  });
});

describe('subscriptions', () => {
  const opened = withStore();
  const start = () => opened().lastPosition();
  const batches = (count: number): NewEvent[][] =>
    Array.from({ length: count }, () =>
      Array.from({ length: 500 }, (_, n) => newEvent(n === 0 ? created() : authorized())),
    );

  test('a reader that falls behind what is kept in memory reads on from the file', async () => {
    const before = Number(start());
    const stop = new AbortController();
    const seen: string[] = [];
    for await (const item of opened().subscribe(start(), stop.signal)) {
      if (item.kind === 'caught-up' && seen.length > 0) stop.abort();
      if (item.kind === 'caught-up' && seen.length === 0) {
        const appends = batches(4).map((events, n) =>
          append(opened(), `payment-many-${n}`, events),
        );
        await Promise.all(appends);
      }
      if (item.kind === 'events') {
        expect(item.events.length).toBeLessThanOrEqual(1000);
        seen.push(...item.events.map(({ position }) => position));
      }
    }
    expect(seen).toEqual(Array.from({ length: 2000 }, (_, n) => String(before + n + 1)));
  });

  test('a position past the end of the log is refused, for what it stood for is lost', async () => {
    const { signal } = new AbortController();
    const past = String(Number(start()) + 1);
    const items = opened().subscribe(past, signal)[Symbol.asyncIterator]();
    await expect(items.next()).rejects.toThrow('past the end');
    await expect(opened().readAll('everything', 10)).rejects.toThrow(RangeError);
    for (const odd of ['everything', '-1', '1.5', '1e3', '0x10', '']) {
      const none = opened().subscribe(odd, signal)[Symbol.asyncIterator]();
      await expect(none.next()).rejects.toThrow(RangeError);
    }
  });

  test('an event that cannot be read is delivered as such, and stops its own stream only', async () => {
    const before = start();
    const [{ position }] = (await append(opened(), 'payment-6')) as [RecordedEvent];
    const [after] = (await append(opened(), 'payment-7')) as [RecordedEvent];
    forge(`UPDATE events SET text = replace(text, 'PaymentCreated', 'PaymentUnknown')
           WHERE position = ${position}`);
    const [poison, next] = await opened().readAll(before, 10);
    const place = { stream: 'payment-6', revision: 0, position };
    expect(poison).toMatchObject({ ...place, unreadable: 'has the unknown type PaymentUnknown' });
    expect(next).toEqual(after);
    await expect(opened().readStream('payment-6')).rejects.toThrow(
      'payment-6, revision 0: has the unknown type PaymentUnknown',
    );
    expect(await opened().readStream('payment-7')).toHaveLength(1);
  });

  test.each([2n ** 53n, 2n ** 60n])(
    'a revision of %s stops its own stream, and not the process',
    async (revision) => {
      const before = start();
      const stream = `payment-8-${revision}`;
      const authorizations = [newEvent(authorized()), newEvent(authorized())];
      const [, second] = await append(opened(), stream, [newEvent(created()), ...authorizations]);
      forge(`UPDATE events SET revision = ${revision} WHERE position = ${second?.position}`);
      await expect(opened().readStream(stream)).rejects.toThrow(UnreadableStream);
      expect(await opened().readAll(before, 10)).toHaveLength(3);
      expect(await opened().lastRevision(stream)).toBe(Number.MAX_SAFE_INTEGER);
      await expect(
        opened().append(stream, { revision: 2, hash: '' }, [newEvent(captured())]),
      ).rejects.toThrow(RevisionConflict);
      expect(await append(opened(), `${stream}-later`)).toHaveLength(1);
    },
  );
});

describe('faults of the disk', () => {
  withFolder();
  const large = (): NewEvent[] => Array.from({ length: 200 }, () => newEvent(authorized()));

  test('a full disk: nothing is stored, it is said once, and the next append tries again', async () => {
    const warnings: string[] = [];
    const warn = (_: object, message: string) => void warnings.push(message);
    const logger = { warn, error: warn };
    const opened = await open({ maxPages: 30, logger });
    await append(opened, 'payment-1');
    for (let n = 0; n < 2; n++) {
      const refused = append(opened, 'payment-2', large());
      await expect(refused).rejects.toThrow(StoreUnavailable);
      await expect(refused).rejects.toThrow('full');
    }
    expect(await opened.readStream('payment-2')).toEqual([]);
    expect(warnings).toHaveLength(1);
    // A small write fits where the batch did not: health asks by one of its own.
    await expect(opened.ping()).resolves.toBeUndefined();
    expect(warnings).toEqual([expect.stringContaining('full'), expect.stringContaining('again')]);
    expect(await append(opened, 'payment-2')).toMatchObject([{ position: '2' }]);
    expect(warnings).toEqual([expect.stringContaining('full'), expect.stringContaining('again')]);
    await opened.close();
    const reopened = await open();
    await append(reopened, 'payment-3', large());
    expect(await reopened.readStream('payment-3')).toHaveLength(200);
  });

  test('what was rolled back with its group is not appended to', async () => {
    const opened = await open({ maxPages: 30 });
    const [first] = (await append(opened, 'payment-1')) as [RecordedEvent];
    const next = newEvent(authorized());
    const [lost] = encode('payment-1', first, [next]);
    const group = [opened.append('payment-1', first, [next]), append(opened, 'payment-2', large())];
    for (const one of group) await expect(one).rejects.toThrow(StoreUnavailable);
    if (lost === undefined) throw new Error('nothing was encoded');
    const after = opened.append('payment-1', lost.recorded, [newEvent(captured())]);
    await expect(after).rejects.toThrow(RevisionConflict);
    expect(await opened.append('payment-1', first, [next])).toMatchObject([{ revision: 1 }]);
  });

  test('a commit that fails may be stored all the same: its outcome is unknown', async () => {
    const opened = await open({ onFatal: () => undefined });
    await append(opened, 'payment-1');
    // A foreign key that SQLite checks at the commit.
    run('CREATE TABLE absent (id INTEGER PRIMARY KEY)');
    run('CREATE TABLE late (id REFERENCES absent DEFERRABLE INITIALLY DEFERRED)');
    run('CREATE TRIGGER breaks AFTER INSERT ON events BEGIN INSERT INTO late VALUES (1); END');
    await expect(append(opened, 'payment-2')).rejects.toThrow(AppendOutcomeUnknown);
  });

  test('any other error of the file: no more writes, and onFatal is called once', async () => {
    const fatal: Error[] = [];
    const opened = await open({ onFatal: (error) => void fatal.push(error) });
    await append(opened, 'payment-1');
    run('ALTER TABLE events RENAME TO taken_away');
    await expect(append(opened, 'payment-2')).rejects.toThrow(StoreUnavailable);
    run('ALTER TABLE taken_away RENAME TO events');
    await expect(append(opened, 'payment-3')).rejects.toThrow(StoreUnavailable);
    expect(fatal).toEqual([expect.any(StoreFileUnusable)]);
    expect(fatal[0]?.message).toContain(`${file}: no such table`);
    expect(await opened.readAll(null, 10)).toHaveLength(1);
  });
});

describe('L1: a file that its name no longer leads to', () => {
  withFolder();
  const WAYS: Record<string, () => void> = {
    deleted: () => folder.remove(),
    'moved away': () => renameSync(file, `${file}.moved`),
    'replaced by a copy of itself': () => {
      copyFileSync(file, `${file}.copy`);
      renameSync(`${file}.copy`, file);
    },
    'without its write-ahead log': () => rmSync(`${file}-wal`),
  };

  test.each(Object.entries(WAYS))(
    '%s: nothing is acknowledged, and onFatal is called',
    async (_, way) => {
      const fatal: Error[] = [];
      const opened = await open({ onFatal: (error) => void fatal.push(error) });
      await append(opened, 'payment-1');
      way();
      await expect(append(opened, 'payment-2')).rejects.toThrow(AppendOutcomeUnknown);
      await expect(append(opened, 'payment-3')).rejects.toThrow(StoreUnavailable);
      expect(fatal.map(({ message }) => message)).toEqual([
        expect.stringContaining(`${file} or its -wal was moved, deleted or replaced`),
      ]);
    },
  );
});
