/** gaps §27: places that merchants share are given to them in turn, and to none more than its part. */
import { describe, expect, test } from '@jest/globals';
import { createTurns } from '../../shared/runtime/fair-turns.ts';

const { signal } = new AbortController();

/** Merchants that work until they are ended; `began` has them in the order in which they got a place. */
const worldOf = (places: number, ofOneMax?: number) => {
  const turns = createTurns(places, ofOneMax);
  const began: string[] = [];
  const ends: { merchant: string; end: () => void }[] = [];
  const want = (merchant: string, name = merchant, leave = signal): Promise<void> =>
    turns.with(merchant, leave, () => {
      began.push(name);
      return new Promise((resolve) => void ends.push({ merchant, end: () => resolve() }));
    });
  const wantMany = (merchant: string, count: number): void => {
    for (let n = 0; n < count; n += 1) want(merchant).catch(() => undefined);
  };
  /** Ends the work that began first, of a merchant or of any. */
  const endFirst = async (merchant?: string): Promise<void> => {
    const at = ends.findIndex((one) => merchant === undefined || one.merchant === merchant);
    ends.splice(at, 1)[0]?.end();
    await new Promise(setImmediate);
  };
  const nextTurn = () => new Promise(setImmediate);
  return { turns, want, wantMany, began, endFirst, nextTurn };
};
const countOf = (began: readonly string[], merchant: string): number =>
  began.filter((one) => one === merchant).length;

describe('how many places', () => {
  test.each([
    // The last one is for another merchant.
    { places: 256, ofOneMax: undefined, alone: 255 },
    { places: 8, ofOneMax: undefined, alone: 7 },
    { places: 2, ofOneMax: undefined, alone: 1 },
    { places: 1, ofOneMax: undefined, alone: 1 },
    { places: 32, ofOneMax: 4, alone: 4 },
    { places: 8, ofOneMax: 1, alone: 1 },
  ])('$alone of $places are for a merchant alone, at most $ofOneMax', async (row) => {
    const { wantMany, began, nextTurn } = worldOf(row.places, row.ofOneMax);
    wantMany('a', 2 * row.places);
    await nextTurn();
    expect(began).toHaveLength(row.alone);
    wantMany('b', 1);
    await nextTurn();
    expect(countOf(began, 'b')).toBe(row.places === 1 ? 0 : 1);
  });

  test('however much two merchants want, a third finds a place', async () => {
    const { wantMany, began, endFirst, nextTurn } = worldOf(16);
    wantMany('a', 40);
    wantMany('b', 40);
    for (let n = 0; n < 20; n += 1) await endFirst();
    wantMany('c', 1);
    await nextTurn();
    expect(began.at(-1)).toBe('c');
  });

  test('a merchant beyond its eighth gets none back while one within its eighth waits', async () => {
    const { wantMany, began, endFirst } = worldOf(16);
    wantMany('a', 40);
    wantMany('b', 40);
    wantMany('c', 40);
    // 15 of the first, and the last place of the second.
    expect([countOf(began, 'a'), countOf(began, 'b')]).toEqual([15, 1]);
    for (let n = 0; n < 3; n += 1) await endFirst('a');
    expect(began.slice(16)).toEqual(['b', 'c', 'c']);
  });

  test('a token of all merchants has a place of its own, however many hang', async () => {
    const { wantMany, began, endFirst, nextTurn } = worldOf(2, 1);
    for (const merchant of ['a', 'b', 'c']) wantMany(merchant, 3);
    wantMany('*', 2);
    await nextTurn();
    expect(began).toEqual(['a', 'b', '*']);
    await endFirst('*');
    expect(began).toEqual(['a', 'b', '*', '*']);
  });
});

describe('in which order', () => {
  test('a merchant that wants little is next, however much another wanted before it', async () => {
    const { wantMany, began, endFirst } = worldOf(3);
    wantMany('a', 20);
    wantMany('x', 1);
    wantMany('b', 2);
    wantMany('c', 1);
    for (let n = 0; n < 5; n += 1) await endFirst();
    expect(began).toEqual(['a', 'a', 'x', 'b', 'a', 'c', 'b', 'a']);
  });

  test('a merchant that leaves the queue takes no place along, and what it wants next stays there', async () => {
    const { want, began, endFirst } = worldOf(1);
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
    void want('a');
    expect(began).toEqual(['a', 'b3', 'a']);
  });

  test('work that fails gives its place back', async () => {
    const { turns } = worldOf(1);
    await expect(turns.with('a', signal, () => Promise.reject(new Error('no')))).rejects.toThrow();
    expect(turns.take('b')).toBe(true);
  });
});
