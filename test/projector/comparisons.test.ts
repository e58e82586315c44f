/** gaps §28: what another program did to the served read models is found by a comparison with the log. */
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type Projector, startProjector } from '../../projector/compose.ts';
import { foldStream } from '../../shared/event-store/fold-stream.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { foldReadModel } from '../../shared/payment/fold.ts';
import { createRowCheck, rowOf } from '../../shared/read-models/document-row.ts';
import { ReadModelsLost } from '../../shared/read-models/errors.ts';
import type { PaymentSearch, ReadModels } from '../../shared/read-models/port.ts';
import { shareOf } from '../support/long-run-share.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { newEvent, timeOf, wholeLife } from '../support/payment-events.ts';
import { READ_MODEL_SECRETS, readModelsIn } from '../support/read-models-here.ts';
import { silent } from '../support/silent-log.ts';
import { folderOfEachTest, folderOfTests } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const PAGE_BYTES = 4096;
/** A leaf: its kind (10 of an index, 13 of a table), no free block, no cell, content at the page's end. */
const emptyLeaf = (kind: number): Buffer => Buffer.from([kind, 0, 0, 0, 0, PAGE_BYTES >> 8, 0, 0]);
const PAYMENTS = 24;
const ids = Array.from({ length: PAYMENTS }, (_, n) => `pay_${String(n).padStart(2, '0')}`);
const OF_MERCHANT = { merchantId: 'm_1' };
const NAME = 'read-models.sqlite';

const whole = folderOfTests();
const folder = folderOfEachTest();
let file: string;
let store: MemoryEventStore;
let readModels: ReadModels;
let projector: Projector;
let errors: object[];
const logger = { ...silent, error: (fields: object) => void errors.push(fields) };

const start = async (path: string, over: EventStore = store): Promise<void> => {
  readModels = readModelsIn(path);
  projector = await startProjector({ store: over, readModels, logger });
  await projector.caughtUp;
};
const stop = async (): Promise<void> => {
  await projector.stop();
  await readModels.close();
};
const listed = async (search: PaymentSearch): Promise<number> =>
  (await readModels.search(search, 100)).documents.length;

beforeAll(async () => {
  store = memoryEventStore();
  for (const [n, id] of ids.entries()) {
    const events = wholeLife(id).slice(0, n % 2 === 0 ? 2 : undefined);
    const recorded = events.map((event, at) => newEvent(event, timeOf(at)));
    await store.append(streamOf(id), 'none', recorded);
  }
  await start(whole);
  await stop();
});
/** Whole read models whose process has stopped. */
beforeEach(() => {
  errors = [];
  file = join(folder.path, NAME);
  copyFileSync(join(whole, NAME), file);
});
afterEach(async () => {
  await stop();
});

const inFile = (change: (bytes: Buffer) => void): void => {
  const bytes = readFileSync(file);
  change(bytes);
  writeFileSync(file, bytes);
};
const sql = (text: string, ...values: (string | number)[]): void => {
  using db = new DatabaseSync(file);
  db.prepare(text).run(...values);
};
/** Puts these bytes over the root page of an index or a table. */
const overRoot = (name: string, content: Buffer): void => {
  using db = new DatabaseSync(file);
  const found = db.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').get(name);
  const root = (Number(found?.rootpage) - 1) * PAGE_BYTES;
  inFile((bytes) => content.copy(bytes.fill(0, root, root + PAGE_BYTES), root));
};
const emptyIndex = (name: string): void => overRoot(name, emptyLeaf(10));
/** Changes one bit of the index entry that holds these texts one after the other. */
const flipInIndex = (...columns: string[]): void =>
  inFile((bytes) => {
    // A page that was split keeps what it had in its free space.
    const text = columns.join('');
    for (let at = bytes.indexOf(text); at !== -1; at = bytes.indexOf(text, at + 1))
      bytes.writeUInt8((bytes[at] ?? 0) ^ 1, at);
  });
/** In the place of a payment's, with the right check, as a thief of the secret could. */
const putRow = async (revision: number, changed: object = {}): Promise<void> => {
  const events = await store.readStream(streamOf('pay_01'));
  const readModel = foldStream(events.slice(0, revision + 1), foldReadModel);
  if (readModel === undefined) throw new Error('no such revision');
  const row = rowOf({ ...readModel, ...changed });
  const check = createRowCheck(READ_MODEL_SECRETS).of(row);
  sql(
    'UPDATE payment SET payment_id = ?, revision = ?, status = ?, body = ?, row_check = ? WHERE payment_id = ?',
    ...[row.paymentId, row.revision, row.status, row.body, check, 'pay_01'],
  );
};

/** `found` is how many payments the search finds where the index is whole. */
const INDEXES: { what: string; harm(): void; search: PaymentSearch; found: number }[] = [
  {
    what: 'of the merchants, empty',
    harm: () => emptyIndex('payment_merchant'),
    ...{ search: OF_MERCHANT, found: PAYMENTS },
  },
  {
    what: 'of the merchants, with one bit changed',
    harm: () => flipInIndex('m_1', timeOf(0), 'pay_07'),
    ...{ search: OF_MERCHANT, found: PAYMENTS },
  },
  {
    what: 'of the statuses, empty',
    harm: () => emptyIndex('payment_status'),
    ...{ search: { ...OF_MERCHANT, status: 'AUTHORIZED' }, found: PAYMENTS / 2 },
  },
  {
    what: 'of the ids, empty',
    harm: () => emptyIndex('sqlite_autoindex_payment_1'),
    ...{ search: { text: 'pay_07' }, found: 1 },
  },
];

describe('what a comparison finds is told, counts, and stays until a rebuild', () => {
  const unlisted = { paymentId: '-', kind: 'unlisted' };
  const [missing, damaged] = [{ kind: 'missing' }, { kind: 'damaged' }];
  const ofOne = "WHERE payment_id = 'pay_01'";
  test.each<[string, () => void | Promise<void>, object]>([
    ['a row deleted', () => sql(`DELETE FROM payment ${ofOne}`), missing],
    ['a row forged', () => sql(`UPDATE payment SET status = 'VOIDED' ${ofOne}`), damaged],
    ['an older row with its check', () => putRow(1), { kind: 'older' }],
    ['another row with its check', () => putRow(5, { refundedAmount: 1 }), { kind: 'differs' }],
    [
      'a row of no payment',
      () => putRow(5, { paymentId: 'pay_xx' }),
      { paymentId: 'pay_xx', kind: 'not in the log' },
    ],
    ...shareOf(INDEXES, 2).map(({ what, harm }) => [`an index ${what}`, harm, unlisted] as never),
  ])('%s', async (_, harm, expected) => {
    await start(folder.path);
    await harm();
    const first = await projector.compareAll();
    expect(first.named).toContainEqual(
      expect.objectContaining({ paymentId: 'pay_01', ...expected }),
    );
    expect(projector.status().differences).toBe(first.differences);
    expect(errors).toContainEqual({ kinds: first.kinds, first: first.named.slice(0, 10) });
    expect(await projector.compareAll()).toEqual(first);
    expect(await projector.rebuild({ accept: true })).toMatchObject({ served: true });
    expect(projector.status().differences).toBe(0);
    expect(await projector.compareAll()).toMatchObject({ documents: PAYMENTS, differences: 0 });
  });

  test('a file deleted while it is served', async () => {
    await start(folder.path);
    rmSync(file);
    await expect(projector.compareAll()).rejects.toThrow(ReadModelsLost);
    expect(errors).toMatchObject([{ paymentId: '-', reason: 'unable to open database file' }]);
    expect(projector.status().differences).toBe(1);
    expect(await projector.rebuild()).toMatchObject({ served: true });
    expect(projector.status().differences).toBe(0);
    expect(await listed(OF_MERCHANT)).toBe(PAYMENTS);
  });

  test('a comparison of read models that a rebuild replaces is given up', async () => {
    const held = Promise.withResolvers<void>();
    let isHeld = false;
    const end = async () => {
      if (isHeld) await held.promise;
      return store.end();
    };
    await start(folder.path, { ...store, end });
    isHeld = true;
    const comparing = projector.compareAll();
    await projector.rebuild();
    held.resolve();
    await expect(comparing).rejects.toThrow('aborted');
    expect(projector.status().differences).toBe(0);
  });
});

const AT_START = [
  {
    what: 'a page of the documents that cannot be read',
    harm: () => overRoot('payment', Buffer.alloc(PAGE_BYTES)),
    ...{ search: OF_MERCHANT, found: PAYMENTS },
  },
  {
    what: 'documents gone, with all indexes whole',
    harm: () => overRoot('payment', emptyLeaf(13)),
    ...{ search: OF_MERCHANT, found: PAYMENTS },
  },
  ...INDEXES.map((one) => ({ ...one, what: `an index ${one.what}` })),
];

test.each(shareOf(AT_START, 3))(
  '$what, at a start: they are filled anew',
  async ({ harm, search, found }) => {
    harm();
    await start(folder.path);
    const isWhole = async () => (await listed(search).catch(() => 0)) === found;
    await until('they are filled anew', isWhole);
    await until('nothing differs', () => projector.status().differences === 0);
    expect(errors).not.toEqual([]);
  },
);
