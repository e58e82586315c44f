/** What many share is given to them in turn, and to none more than its part. */
import { expect, test } from '@jest/globals';
import { createPermits, createPlaces, type Standing } from '../../projector/deliverer/permits.ts';

const { signal } = new AbortController();

/** Merchants that work until they are ended; `began` has them in the order in which they got a permit. */
const worldOf = (max: number, ofOneMax: number) => {
  const permits = createPermits(max, ofOneMax);
  const began: string[] = [];
  const ends: (() => void)[] = [];
  const want = (merchant: string, name = merchant, leave = signal): Promise<void> =>
    permits.with(merchant, leave, () => {
      began.push(name);
      return new Promise((resolve) => void ends.push(resolve));
    });
  /** Ends the work that began first. */
  const endFirst = async (): Promise<void> => {
    ends.shift()?.();
    await new Promise(setImmediate);
  };
  return { want, began, endFirst };
};

test('a merchant that wants little is next, however much another wanted before it', async () => {
  const { want, began, endFirst } = worldOf(2, 2);
  for (let n = 0; n < 20; n += 1) void want('a');
  void want('b');
  void want('b');
  void want('c');
  for (let n = 0; n < 4; n += 1) await endFirst();
  expect(began).toEqual(['a', 'a', 'a', 'b', 'c', 'a']);
});

test('a merchant has no more than its part, though others leave theirs free', async () => {
  const { want, began, endFirst } = worldOf(4, 2);
  for (let n = 0; n < 5; n += 1) void want('a', `a${n}`);
  await endFirst();
  expect(began).toEqual(['a0', 'a1', 'a2']);
  void want('b');
  void want('b');
  expect(began).toEqual(['a0', 'a1', 'a2', 'b', 'b']);
});

test('a merchant that leaves the queue takes no permit along, and what it wants next stays there', async () => {
  const { want, began, endFirst } = worldOf(1, 1);
  const leaving = new AbortController();
  void want('a');
  const left = want('b', 'b1', leaving.signal);
  const reason = new Error('gone');
  leaving.abort(reason);
  await expect(left).rejects.toBe(reason);
  await expect(want('b', 'b2', leaving.signal)).rejects.toBe(reason);
  void want('b', 'b3');
  await endFirst();
  await endFirst();
  expect(began).toEqual(['a', 'b3']);
  void want('a');
  expect(began).toEqual(['a', 'b3', 'a']);
});

test('however many merchants hang, an endpoint that responds finds a place', async () => {
  const places = createPlaces();
  const began = new Map<string, number>();
  const hang = (standing: Standing, merchantId: string): void =>
    void places.with(standing, merchantId, signal, () => {
      for (const one of [standing, `${standing} ${merchantId}`])
        began.set(one, (began.get(one) ?? 0) + 1);
      return new Promise(() => undefined);
    });
  for (let n = 0; n < 20; n += 1) {
    hang('silent', 'm_0');
    hang('doubtful', 'm_1');
  }
  expect([began.get('silent m_0'), began.get('doubtful m_1')]).toEqual([8, 4]);
  for (let n = 0; n < 400; n += 1) {
    hang('silent', `m_${n % 40}`);
    hang('doubtful', `m_${n % 40}`);
  }
  expect([began.get('silent'), began.get('doubtful')]).toEqual([128, 64]);
  for (let n = 0; n < 64; n += 1) hang('well', `m_well_${n}`);
  expect(began.get('well')).toBe(64);
});
