/** gaps §25: what a check found stands until the same check over at least as much finds it no more. */
import { describe, expect, test } from '@jest/globals';
import { type Faults, parseCheckRecord, standingAfter } from '../../audit/check-record.ts';

const faults = (keys: string[], events: number): Faults => ({
  count: keys.length,
  keys,
  what: keys.join(),
  over: [events],
});
const AT = '2026-01-01T00:00:00.000Z';
const LATER = '2026-01-02T00:00:00.000Z';
const before = { ...faults(['a', 'b'], 10), since: AT };

describe('standingAfter', () => {
  test.each<[string, Faults, object | undefined]>([
    ['nothing, over as much', faults([], 10), undefined],
    ['nothing, over more', faults([], 11), undefined],
    ['nothing, over less', faults([], 9), before],
    ['the same', faults(['a', 'b'], 12), { count: 2, over: [12], since: AT }],
    ['one of them, over more', faults(['a'], 12), { count: 1, keys: ['a'], since: AT }],
    ['one of them, over less', faults(['a'], 9), { count: 2, over: [10], since: AT }],
    ['another one', faults(['c'], 12), { count: 1, keys: ['c'], since: LATER }],
    // It has asked about each fault that stood.
    ['nothing, by a check that asks again', { ...faults([], 0), over: [] }, undefined],
    ['another one, over less', faults(['c'], 9), { count: 2, keys: ['c', 'a', 'b'], since: LATER }],
  ])('%s', (_, found, after) => {
    const now = standingAfter(before, found, LATER);
    if (after === undefined) expect(now).toBeUndefined();
    else expect(now).toMatchObject(after);
  });

  test('the first fault stands from now on', () => {
    expect(standingAfter(undefined, faults([], 5), AT)).toBeUndefined();
    expect(standingAfter(undefined, faults(['a'], 5), AT)).toMatchObject({ since: AT });
  });
});

test('a break that an earlier version kept stands since that run', () => {
  const broken = { position: '4', stream: 'payment-pay_3', revision: 0, reason: 'changed' };
  const lastRunMs = Date.parse(AT);
  const record = parseCheckRecord(JSON.stringify({ lastOkMs: 0, lastRunMs, broken }));
  expect(record.standing).toMatchObject({ since: AT, count: 1, over: [0] });
  expect(parseCheckRecord('no JSON')).toEqual({ lastOkMs: 0, lastRunMs: 0 });
});
