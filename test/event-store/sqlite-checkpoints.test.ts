/** The write-ahead log of the SQLite driver is moved into the file between two groups of appends. */
import { execFile } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { beforeIn, storedCheck } from '../../shared/event-store/chain.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../shared/event-store/sqlite/event-store.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { noFailingDisk, openFailingDisk } from '../support/failing-disk.ts';
import { authorized, created, newEvent } from '../support/payment-events.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { HANGS_MS } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

/** Few: each commit writes whole pages, so that a checkpoint is due after few events. */
const BATCH_EVENTS = 30;
/** A checkpoint is due at 2,000 pages of 4 kB, each with its header, after the header of the log. */
const DUE_PAGES = 2_000;
const DUE_BYTES = DUE_PAGES * (4_096 + 24) + 32;

let folder: ReturnType<typeof temporaryFolder>;
let file: string;
let store: SqliteEventStore;

beforeEach(async () => {
  folder = temporaryFolder();
  file = join(folder.path, 'events.db');
  store = await openSqliteEventStore({ file });
});
afterEach(async () => {
  await store.close();
  folder.remove();
});

const appendBatch = async (n: number): Promise<void> => {
  const events = Array.from({ length: BATCH_EVENTS }, (_, index) =>
    newEvent(index === 0 ? created() : authorized()),
  );
  await store.append(`payment-${n}`, 'none', events);
};
const walBytes = (): number => statSync(`${file}-wal`).size;

/** How many batches it took. */
const appendUntilDue = async (): Promise<number> => {
  for (let n = 0; ; n += 1) {
    if (walBytes() >= DUE_BYTES) return n;
    await appendBatch(n);
  }
};

const notMoved = (): number => {
  const database = new DatabaseSync(file, { timeout: 5000 });
  try {
    const pages = database.prepare('PRAGMA wal_checkpoint(NOOP)').get();
    return Number(pages?.log) - Number(pages?.checkpointed);
  } finally {
    database.close();
  }
};
test('a log that was moved to its end is written from its start again', async () => {
  const batches = await appendUntilDue();
  await until('all of the log is moved', () => notMoved() === 0);
  const before = walBytes();
  await appendBatch(batches);
  expect(walBytes()).toBe(before);
  // As much as the file is alone, without the write-ahead log beside it.
  const moved = new DatabaseSync(`file:${file}?immutable=1`, { readOnly: true });
  const rows = moved.prepare('SELECT count(*) AS count FROM events').get();
  moved.close();
  expect(rows?.count).toBe(batches * BATCH_EVENTS);
});

test('a log that a reader kept from being moved is moved, and written from its start again, once it has left', async () => {
  const reader = new DatabaseSync(file, { readOnly: true });
  reader.exec('BEGIN; SELECT count(*) FROM events');
  const batches = await appendUntilDue();
  reader.close();
  await appendBatch(batches);
  await until('the log is moved', () => notMoved() < DUE_PAGES);
  const before = walBytes();
  for (let n = 1; n < 20; n += 1) await appendBatch(batches + n);
  expect(walBytes()).toBe(before);
});

test('a store that is closed while its log is moved leaves one whole file', async () => {
  const batches = await appendUntilDue();
  await store.close();
  expect(existsSync(`${file}-wal`)).toBe(false);
  store = await openSqliteEventStore({ file });
  const rows = await store.stored.readAll(null, 100_000);
  expect(rows).toHaveLength(batches * BATCH_EVENTS);
  const check = storedCheck(beforeIn(store.stored), 'log');
  for (const row of rows) expect(await check(row)).toBeUndefined();
});

const STORE = new URL('../../shared/event-store/sqlite/event-store.ts', import.meta.url);

/**
 * A process that appends to a log on a failing disk until a checkpoint is due, waits for its end, and prints
 * how the store ended (`fatal`) and what came of one more append: the number of its events, or the name of
 * its error.
 */
const appending = (database: string): string => `
  import { statSync, writeFileSync } from 'node:fs';
  import { DatabaseSync } from 'node:sqlite';
  import { setImmediate } from 'node:timers/promises';
  import { openSqliteEventStore } from '${STORE}';
  const file = ${JSON.stringify(database)};
  let fatal = null;
  const store = await openSqliteEventStore({ file, onFatal: (error) => { fatal ??= error.message; } });
  const event = ${JSON.stringify(newEvent(created()))};
  const append = (n) => store.append('payment-' + n, 'none',
    Array.from({ length: ${BATCH_EVENTS} }, () => ({ ...event, id: crypto.randomUUID() })));
  const state = new DatabaseSync(file).prepare('PRAGMA wal_checkpoint(NOOP)');
  const isMoved = ({ log, checkpointed }) => log === checkpointed;
  // Open from now on: the last connection that closes would move the log, this time without a failure.
  state.get();
  writeFileSync(process.env.FAIL_SYNC_WHEN, '');
  for (let n = 0; statSync(file + '-wal').size < ${DUE_BYTES}; n += 1)
    // The failure of the checkpoint may overtake the reply to the append before it.
    await append(n).catch(() => undefined);
  while (fatal === null && !isMoved(state.get())) await setImmediate();
  const after = await append('after').then(({ length }) => length, ({ name }) => name);
  console.log(JSON.stringify({ fatal, after }));
  process.exit(0);`;

const missing = noFailingDisk();

describeUnless(missing, 'a failed fsync', () => {
  test('of a checkpoint stops the store, though the next one would succeed', async () => {
    const disk = openFailingDisk();
    // Once a checkpoint is due nothing is appended: the thread syncs where it moved all that the log holds.
    const script = appending(join(folder.path, 'other.db'));
    try {
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ['--input-type=module', '--eval', script],
        { timeout: HANGS_MS, env: { ...process.env, ...disk.envOf('other.db', 'once') } },
      );
      expect(JSON.parse(stdout)).toEqual({
        fatal: expect.stringContaining('SQLite error 1034'),
        after: 'StoreUnavailable',
      });
    } finally {
      disk.remove();
    }
  });
});
