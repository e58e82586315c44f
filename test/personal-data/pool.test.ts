/** Keys are made ahead: no request waits for a disk, unless there is no key. */
import { expect, test } from '@jest/globals';
import { createPool } from '../../personal-data/pool.ts';
import { KeysUnavailable } from '../../personal-data/port.ts';
import { newPersonalKey } from '../support/personal-data.ts';
import { until } from '../support/until.ts';

const made = (count: number) => Array.from({ length: count }, newPersonalKey);

/** A store that makes keys when it is let. */
const pendingStore = () => {
  const orders: number[] = [];
  const makes: { resolve(): void; reject(error: Error): void }[] = [];
  const pool = createPool((count) => {
    orders.push(count);
    const { promise, resolve, reject } = Promise.withResolvers<ReturnType<typeof made>>();
    makes.push({ resolve: () => resolve(made(count)), reject });
    return promise;
  });
  return { ...pool, orders, makes };
};

const takeMany = (pool: ReturnType<typeof pendingStore>, count: number) =>
  Promise.all(Array.from({ length: count }, () => pool.take(1)));

test('768 keys are made at once, at 256 left as many as are missing, and are given while the store hangs', async () => {
  const pool = pendingStore();
  void pool.refill();
  pool.makes[0]?.resolve();
  await pool.refill();
  const taken = await takeMany(pool, 511);
  expect(pool.orders).toEqual([768]);
  taken.push(...(await takeMany(pool, 257)));
  expect(pool.orders).toEqual([768, 512]);
  expect(new Set(taken.map(({ id }) => id)).size).toBe(768);
});

test('without a key it waits for one within the time given, then says so', async () => {
  const pool = pendingStore();
  const late = pool.take(20);
  const inTime = pool.take(60_000);
  await expect(late).rejects.toThrow(KeysUnavailable);
  await expect(late).rejects.toThrow('no key for personal data within 20 ms');
  pool.makes[0]?.resolve();
  expect(await inTime).toMatchObject({ id: expect.any(String) });
  expect(pool.orders).toEqual([768]);
});

test('900 that wait get a key each, of two batches', async () => {
  const pool = pendingStore();
  const taking = Promise.all(Array.from({ length: 900 }, () => pool.take(60_000)));
  pool.makes[0]?.resolve();
  await until('more keys are ordered', () => pool.orders.length === 2);
  pool.makes[1]?.resolve();
  expect(new Set((await taking).map(({ id }) => id)).size).toBe(900);
});

test('a failure is told to those that wait, in one line, and the next one tries again', async () => {
  const pool = pendingStore();
  const failed = pool.take(60_000);
  pool.makes[0]?.reject(new Error('the disk is full\nand more'));
  await expect(failed).rejects.toThrow(KeysUnavailable);
  await expect(failed).rejects.toThrow(/^no key for personal data can be made: the disk is full$/);
  const next = pool.take(60_000);
  pool.makes[1]?.resolve();
  expect(await next).toMatchObject({ id: expect.any(String) });
});
