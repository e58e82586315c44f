/** A damaged index leaves payments out of lists, and no error says so: each is told, and filled anew. */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type Projector, startProjector } from '../../projector/compose.ts';
import { startVerification } from '../../projector/verification/schedule.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import type { PaymentSearch, ReadModels } from '../../shared/read-models/port.ts';
import { openSqliteReadModels } from '../../shared/read-models/sqlite/read-models.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { newEvent, timeOf, wholeLife } from '../support/payment-events.ts';
import { READ_MODEL_SECRETS } from '../support/read-models-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const PAGE_BYTES = 4096;
/** Of an index's leaf: its kind, no free block, no cell, its content at the end of the page. */
const EMPTY_LEAF = Buffer.from([0x0a, 0, 0, 0, 0, PAGE_BYTES >> 8, 0, 0]);

const inFile = (file: string, change: (bytes: Buffer) => void): void => {
  const bytes = readFileSync(file);
  change(bytes);
  writeFileSync(file, bytes);
};

/** Puts an empty page in the place of an index's root. */
const emptyIndex = (file: string, index: string): void => {
  const db = new DatabaseSync(file);
  const found = db.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').get(index);
  db.close();
  const root = (Number(found?.rootpage) - 1) * PAGE_BYTES;
  inFile(file, (bytes) => EMPTY_LEAF.copy(bytes.fill(0, root, root + PAGE_BYTES), root));
};

/** Changes one bit of the index entry that holds these texts one after the other. */
const flipInIndex = (file: string, ...columns: string[]): void =>
  inFile(file, (bytes) => {
    // A page that was split keeps what it had in its free space.
    const text = columns.join('');
    for (let at = bytes.indexOf(text); at !== -1; at = bytes.indexOf(text, at + 1))
      bytes.writeUInt8((bytes[at] ?? 0) ^ 1, at);
  });

const PAYMENTS = 24;
const ids = Array.from({ length: PAYMENTS }, (_, n) => `pay_${String(n).padStart(2, '0')}`);
/** None is taken while a test lasts. */
const NO_SAMPLE_MS = 600_000;

let folder: ReturnType<typeof temporaryFolder>;
let file: string;
let store: MemoryEventStore;
let readModels: ReadModels;
let projector: Projector;
let errors: { fields: object; message: string }[];
const logger = {
  info: () => undefined,
  warn: () => undefined,
  error: (fields: object, message: string) => void errors.push({ fields, message }),
};

const start = async (sampleMs: number): Promise<void> => {
  readModels = openSqliteReadModels({ file, secrets: READ_MODEL_SECRETS });
  projector = await startProjector({ store, readModels, logger, sampleMs });
  await projector.caughtUp;
};
const stop = async (): Promise<void> => {
  await projector.stop();
  await readModels.close();
};
const listed = async (search: PaymentSearch): Promise<number> =>
  (await readModels.search(search, 100)).documents.length;

const whole = temporaryFolder();
beforeAll(async () => {
  store = memoryEventStore();
  for (const [n, id] of ids.entries()) {
    const events = wholeLife(id).slice(0, n % 2 === 0 ? 2 : undefined);
    await store.append(
      streamOf(id),
      'none',
      events.map((event, at) => newEvent(event, timeOf(at))),
    );
  }
  file = join(whole.path, 'read-models.sqlite');
  await start(NO_SAMPLE_MS);
  await stop();
});
afterAll(() => whole.remove());
/** Whole read models whose process has stopped. */
beforeEach(() => {
  errors = [];
  folder = temporaryFolder();
  file = join(folder.path, 'read-models.sqlite');
  copyFileSync(join(whole.path, 'read-models.sqlite'), file);
});
afterEach(async () => {
  await stop();
  folder.remove();
});

const OF_MERCHANT = { merchantId: 'm_1' };

/** `found` is how many payments the search finds where the index is whole. */
const DAMAGES: { what: string; damage(): void; search: PaymentSearch; found: number }[] = [
  {
    what: 'of the merchants, empty',
    damage: () => emptyIndex(file, 'payment_merchant'),
    search: OF_MERCHANT,
    found: PAYMENTS,
  },
  {
    what: 'of the merchants, with one bit changed',
    damage: () => flipInIndex(file, 'm_1', timeOf(0), 'pay_07'),
    search: OF_MERCHANT,
    found: PAYMENTS,
  },
  {
    what: 'of the statuses, empty',
    damage: () => emptyIndex(file, 'payment_status'),
    search: { ...OF_MERCHANT, status: 'AUTHORIZED' },
    found: PAYMENTS / 2,
  },
  {
    what: 'of the ids, empty',
    damage: () => emptyIndex(file, 'sqlite_autoindex_payment_1'),
    search: { text: 'pay_07' },
    found: 1,
  },
];

describe.each(DAMAGES)('an index $what', ({ damage, search, found }) => {
  test('is named by a comparison, and the read models are filled anew', async () => {
    damage();
    await start(NO_SAMPLE_MS);
    expect(await listed(search)).toBeLessThan(found);
    const compared = await projector.compareAll();
    expect(compared.differences).toBeGreaterThan(0);
    expect(compared.named.at(-1)).toMatchObject({
      paymentId: '-',
      kind: 'unlisted',
      detail: expect.stringMatching(
        /^index \w+ has \d+ entries, and leads to \d+ of \d+ documents$/,
      ),
    });
    await until('they are filled anew', async () => (await listed(search)) === found);
    // An operator has to look, so the metric stays until they are compared once more.
    expect(projector.status().compared.differences).toBeGreaterThan(0);
    expect(errors).toMatchObject([{ message: expect.stringMatching(/^read models are damaged/) }]);
    expect(await projector.compareAll()).toMatchObject({ documents: PAYMENTS, differences: 0 });
    expect(projector.status().compared.differences).toBe(0);
  });
});

test('the comparison that goes on for ever notices an index that leaves payments out', async () => {
  emptyIndex(file, 'payment_merchant');
  await start(2);
  await until('it is noticed', () => errors.length >= 2);
  expect(errors.slice(0, 2)).toMatchObject([
    { fields: { kind: 'unlisted', detail: 'not found by index payment_merchant' } },
    { fields: { detail: expect.stringContaining(`leads to 0 of ${PAYMENTS} documents`) } },
  ]);
  await until('they are filled anew', async () => (await listed(OF_MERCHANT)) === PAYMENTS);
});

test('a document whose id the index has lost is not stored a second time', async () => {
  emptyIndex(file, 'sqlite_autoindex_payment_1');
  await start(2);
  const filled = async () => (await readModels.idsAfter(null, 100)).length === PAYMENTS;
  await until('they are filled anew', filled);
  expect(await listed(OF_MERCHANT)).toBe(PAYMENTS);
});

test('each scheduled verification looks at the indexes as well', async () => {
  emptyIndex(file, 'payment_merchant');
  await start(NO_SAMPLE_MS);
  const document = {
    load: async () => undefined,
    save: async () => true,
    close: async () => undefined,
  };
  const verification = startVerification({
    ...{ store, readModels, document, logger, metrics: createMetrics() },
    checkIndexes: projector.checkIndexes,
    everyMs: 60_000,
    mayRun: () => true,
    startTimer: (step) => {
      const timer = setImmediate(step);
      return () => clearImmediate(timer);
    },
  });
  await until('they are filled anew', async () => (await listed(OF_MERCHANT)) === PAYMENTS);
  await verification.stop();
  expect(errors).toMatchObject([{ message: expect.stringMatching(/^read models are damaged/) }]);
});
