/** A search for a rare text holds no request up, and says how far it came (ADR-0185). */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { foldReadModel } from '../../shared/payment/fold.ts';
import { ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import type { PaymentSearch, ReadModelChange, ReadModels } from '../../shared/read-models/port.ts';
import type { SearchBounds } from '../../shared/read-models/sqlite/search.ts';
import { untilBesideTheLoop } from '../support/beside-the-loop.ts';
import { created, timeOf, wholeLife } from '../support/payment-events.ts';
import { readModelsAt } from '../support/read-models-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { change } from './opened.ts';

const PAYMENTS = 1_200;
/** Of ten payments in a row one is of the second merchant, one of the third, and eight of the first. */
const merchantOf = (n: number): string => (n % 10 === 1 ? 'm_2' : n % 10 === 2 ? 'm_3' : 'm_1');

/** Payment n was made at time n; one in forty is authorized, and the first of each merchant is of 7 and card 7777. */
const payment = (n: number): ReadModelChange => {
  const merchantId = merchantOf(n);
  const [first, ...rest] = wholeLife(`pay_${n}`, merchantId);
  if (first?.type !== 'PaymentCreated') throw new Error('no first event');
  const isRare = n < 3;
  const card = { ...first.data.card, last4: isRare ? '7777' : '4242' };
  const amount = isRare ? 7 : 100 + n;
  const data = { ...first.data, amount, card, details: { merchantReference: 'order' } };
  const events = [created(data), ...rest].slice(0, isRare || n % 40 === 7 ? 2 : 1);
  const readModel = foldReadModel(
    events.map((event, at) => ({ revision: at, time: timeOf(n), event })),
  );
  if (readModel === undefined) throw new Error('no read model');
  return change(readModel);
};

const changes = Array.from({ length: PAYMENTS }, (_, n) => payment(n));

const folder = temporaryFolder();
const opened = async (name: string, searchBounds: SearchBounds): Promise<ReadModels> => {
  const file = join(folder.path, name);
  const readModels = readModelsAt(file, { searchBounds });
  await readModels.apply(changes, null, 'p1');
  return readModels;
};

const disposable = (readModels: ReadModels): ReadModels & AsyncDisposable => ({
  ...readModels,
  [Symbol.asyncDispose]: readModels.close,
});

/** Every page of a search, and how many there were. */
const pagesOf = async (readModels: ReadModels, search: PaymentSearch, limit: number) => {
  const ids: string[] = [];
  let pages = 0;
  for (let after: PaymentSearch['after'] | null | undefined; after !== null; ) {
    const more = after === undefined ? {} : { after };
    const { documents, searchedTo } = await readModels.search({ ...search, ...more }, limit);
    ids.push(...documents.map(({ paymentId }) => paymentId));
    pages += 1;
    if (pages > PAYMENTS) throw new Error('the pages do not end');
    after = searchedTo ?? null;
  }
  return { ids, pages };
};

const SEARCHES: PaymentSearch[] = [
  {},
  { status: 'AUTHORIZED' },
  { status: 'VOIDED' },
  { status: 'CAPTURED' },
  { text: '7777' },
  { text: 'order', maxAmount: 110 },
  { merchantReference: 'order', status: 'AUTHORIZED' },
  { maxAmount: 7 },
  { minAmount: 100 + PAYMENTS - 3 },
  { from: timeOf(2), to: timeOf(40), status: 'PENDING' },
];

describe('a search within bounds', () => {
  let [bounded, unbounded]: ReadModels[] = [];
  beforeAll(async () => {
    bounded = await opened('bounded.sqlite', { sliceRows: 7, rowsMax: 30 });
    unbounded = await opened('unbounded.sqlite', { sliceRows: PAYMENTS, rowsMax: PAYMENTS * 9 });
  });
  afterAll(async () => {
    await bounded?.close();
    await unbounded?.close();
    folder.remove();
  });

  test.each(SEARCHES.flatMap((search) => [search, { ...search, merchantId: 'm_1' }]))(
    'page after page it finds each payment once, newest first: %j',
    async (search) => {
      const { ids: expected } = await pagesOf(unbounded as ReadModels, search, PAYMENTS);
      const { ids, pages } = await pagesOf(bounded as ReadModels, search, 20);
      expect(ids).toEqual(expected);
      expect(pages).toBeGreaterThanOrEqual(Math.floor(expected.length / 20));
    },
  );

  test('a page without what was asked for says how far the search came', async () => {
    const { documents, searchedTo } = await (bounded as ReadModels).search(
      { merchantId: 'm_1', status: 'CAPTURED' },
      20,
    );
    expect(documents).toEqual([]);
    // Of the 960 payments of this merchant those of a few slices, and the last of them is named.
    expect(searchedTo?.paymentId).toMatch(/^pay_1\d\d\d$/);
  });

  test('a rare status is searched to the end at once, by its index', async () => {
    const readModels = bounded as ReadModels;
    const { documents, searchedTo } = await readModels.search({ status: 'VOIDED' }, 20);
    expect(documents).toEqual([]);
    expect(searchedTo).toBeUndefined();
    // The payments of the third merchant that are authorized: the oldest of them, and no other.
    const rare = await readModels.search({ merchantId: 'm_3', status: 'AUTHORIZED' }, 20);
    expect(rare.documents.map(({ paymentId }) => paymentId)).toEqual(['pay_2']);
    expect(rare.searchedTo).toBeUndefined();
  });

  test('the oldest payment is found by its id at once, for an id is no digits of a card', async () => {
    const page = await (bounded as ReadModels).search({ text: 'pay_0' }, 20);
    expect(page.documents.map(({ paymentId }) => paymentId)).toEqual(['pay_0']);
    expect(page.searchedTo).toBeUndefined();
  });

  test('a short search does not wait for the end of long ones', async () => {
    const name = 'in-slices.sqlite';
    await using readModels = disposable(
      await opened(name, { sliceRows: 7, rowsMax: PAYMENTS * 9 }),
    );
    const ended: string[] = [];
    const search = async (which: string, status: 'CAPTURED' | 'PENDING') => {
      const page = await readModels.search({ merchantId: 'm_1', status }, 1);
      ended.push(which);
      return page;
    };
    // So many that none of them is over before the short one is in the thread.
    const long = Array.from({ length: 20 }, () => search('long', 'CAPTURED'));
    const short = await search('short', 'PENDING');
    expect(short.documents).toHaveLength(1);
    expect(ended).toEqual(['short']);
    expect(await Promise.all(long)).toEqual(long.map(() => ({ documents: [] })));
  });

  test('a search takes next to nothing of the event loop, whatever it looks at', async () => {
    const readModels = unbounded as ReadModels;
    const search = () => readModels.search({ merchantId: 'm_1', status: 'CAPTURED' }, 1);
    await untilBesideTheLoop(async () => {
      for (let n = 0; n < 50; n += 1) await search();
    });
  });

  test('a closed set of read models is not searched, and its file is left alone', async () => {
    const closed = await opened('closed.sqlite', { sliceRows: 7, rowsMax: 30 });
    await closed.search({}, 1);
    await closed.close();
    await expect(closed.search({}, 1)).rejects.toThrow(ReadModelsUnavailable);
    // The last connection to a file removes what SQLite keeps beside it.
    expect(readdirSync(folder.path)).toContain('closed.sqlite');
    expect(readdirSync(folder.path)).not.toContain('closed.sqlite-wal');
  });

  test('a rebuild waits for the searches under way, and the next one finds what it made', async () => {
    const bounds = { sliceRows: 7, rowsMax: PAYMENTS * 9 };
    await using readModels = disposable(await opened('rebuilt.sqlite', bounds));
    const generation = await readModels.openGeneration();
    await generation.apply(changes.slice(0, 3), null, 'p1');
    const before = readModels.search({ merchantId: 'm_1', status: 'CAPTURED' }, 1);
    const served = generation.serve();
    expect(await before).toEqual({ documents: [] });
    await served;
    await generation.end();
    expect((await readModels.search({}, PAYMENTS)).documents).toHaveLength(3);
  });
});
