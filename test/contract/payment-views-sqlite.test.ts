/** What the views' own file must withstand: it can always be filled again from the log. */

import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { foldView, type PaymentView } from '../../shared/payment/response.ts';
import type { PaymentViews } from '../../shared/read-models/port.ts';
import { openSqliteViews } from '../../shared/read-models/sqlite/read-models.ts';
import { placed, wholeLife } from '../support/payment-events.ts';
import { temporaryFolder } from '../support/view-drivers.ts';

const whole = (paymentId: string): PaymentView => {
  const view = foldView(placed(wholeLife(paymentId)));
  if (view === undefined) throw new Error('no view');
  return view;
};
const fill = (views: PaymentViews, count: number): Promise<void> =>
  views.apply(
    Array.from({ length: count }, (_, n) => ({ kind: 'view', view: whole(`pay_${n}`) }) as const),
    null,
    'p1',
  );

describe('the file of the views', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let file: string;
  const warn = jest.fn();
  const open = (): PaymentViews => openSqliteViews({ file, logger: { warn } });
  const filled = async (count: number): Promise<void> => {
    const views = open();
    await fill(views, count);
    await views.close();
  };
  const expectEmptyAndUsable = async (): Promise<void> => {
    const views = open();
    expect(await views.checkpoint()).toBeNull();
    expect(await views.getAny('pay_0')).toBeUndefined();
    await fill(views, 1);
    expect(await views.getAny('pay_0')).toBeDefined();
    await views.close();
  };

  beforeEach(() => {
    warn.mockClear();
    folder = temporaryFolder();
    file = join(folder.path, 'views.db');
  });
  afterEach(() => folder.remove());

  test('is readable by its owner alone, its log beside it too', async () => {
    const views = open();
    await fill(views, 1);
    for (const name of [file, `${file}-wal`, `${file}-shm`])
      expect(statSync(name).mode & 0o777).toBe(0o600);
    await views.close();
  });

  test('opens without a word where it is whole', async () => {
    await filled(1);
    const views = open();
    expect(await views.checkpoint()).toBe('p1');
    expect(warn).not.toHaveBeenCalled();
    await views.close();
  });

  test('shows what a later search needs, without its being written', async () => {
    await filled(1);
    const db = new DatabaseSync(file);
    const row = db
      .prepare('SELECT merchant_reference, status, last4, amount, created_at FROM payment')
      .get();
    db.close();
    expect({ ...row }).toEqual({
      merchant_reference: 'order-1',
      status: 'CAPTURED',
      last4: '4242',
      amount: 2500,
      created_at: whole('pay_0').response.createdAt,
    });
  });

  test('of another version, older or newer, is thrown away with a line in the log', async () => {
    for (const version of [1, 999_999]) {
      warn.mockClear();
      await filled(1);
      const db = new DatabaseSync(file);
      db.exec(`PRAGMA user_version = ${version}`);
      db.close();
      await expectEmptyAndUsable();
      expect(warn).toHaveBeenCalledTimes(1);
      rmSync(file);
    }
  });

  test('whose tables are not those of its version is thrown away', async () => {
    await filled(1);
    const db = new DatabaseSync(file);
    db.exec('DROP TABLE parked');
    db.close();
    await expectEmptyAndUsable();
    expect(warn).toHaveBeenCalledTimes(1);
  });

  test.each([
    ['no database', () => Buffer.from('not a database, but long enough to look at'.repeat(100))],
    ['a damaged schema page', (b: Buffer) => b.fill(0xff, 100, 4096)],
    ['cut in half', (b: Buffer) => b.subarray(0, b.length / 2)],
    ['a damaged header', (b: Buffer) => b.fill(0x41, 0, 60)],
  ])('that is %s is thrown away with a line in the log', async (_, damage) => {
    await filled(50);
    writeFileSync(file, damage(readFileSync(file)));
    await expectEmptyAndUsable();
    expect(warn).toHaveBeenCalledTimes(1);
  });

  test('found damaged only while running is replaced then, and says so', async () => {
    await filled(500);
    writeFileSync(file, readFileSync(file).fill(0xff, 10 * 4096));
    const views = open();
    expect(warn).not.toHaveBeenCalled();
    const reads = await Promise.allSettled(
      Array.from({ length: 500 }, (__, n) => views.getAny(`pay_${n}`)),
    );
    expect(reads.some((read) => read.status === 'rejected')).toBe(true);
    expect(warn).toHaveBeenCalled();
    expect(await views.checkpoint()).toBeNull();
    await fill(views, 500);
    expect(await views.getAny('pay_499')).toMatchObject({ revision: 5 });
    await views.close();
  });

  test.each([
    ['body', `replace(body, '"amount":2500', '"amount":9500')`],
    ['revision', 'revision + 1'],
    ['merchant_id', `'m_other'`],
    ['payment_id', `replace(payment_id, 'pay_0', 'pay_00')`],
  ])(
    'with another %s in it than was written is thrown away, never served',
    async (column, value) => {
      await filled(1);
      const db = new DatabaseSync(file);
      db.exec(`UPDATE payment SET ${column} = ${value}`);
      db.close();
      const views = open();
      const paymentId = column === 'payment_id' ? 'pay_00' : 'pay_0';
      await expect(views.getAny(paymentId)).rejects.toThrow('does not have its checksum');
      expect(warn).toHaveBeenCalledTimes(1);
      expect(await views.getAny(paymentId)).toBeUndefined();
      expect(await views.checkpoint()).toBeNull();
      await views.close();
    },
  );

  test('deleted while stopped, its log left behind, starts empty', async () => {
    const views = open();
    await fill(views, 3);
    const log = readFileSync(`${file}-wal`);
    await views.close();
    rmSync(file);
    writeFileSync(`${file}-wal`, log);
    await expectEmptyAndUsable();
  });

  test('that cannot be made is refused in one line', () => {
    const missing = join(folder.path, 'nowhere', 'views.db');
    expect(() => openSqliteViews({ file: missing })).toThrow(/^the views file cannot be used: .+$/);
  });
});
