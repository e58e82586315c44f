/** Ids sort by the time they were made, and no two are equal. */
import { describe, expect, test } from '@jest/globals';
import {
  newEventId,
  newOperationId,
  newPaymentId,
  newRequestId,
  newUlid,
} from '../../shared/runtime/ids.ts';
import { timesOf } from '../support/long-run-share.ts';

const COUNT = timesOf(100_000, 20_000);
const many = (make: () => string): string[] => Array.from({ length: COUNT }, make);

describe('gaps §2: ids', () => {
  test.each([
    ['a ULID', newUlid, /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/],
    ['a request id', newRequestId, /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/],
    ['a payment id', newPaymentId, /^pay_[0-7][0-9A-HJKMNP-TV-Z]{25}$/],
    ['an operation id', newOperationId, /^op_[0-7][0-9A-HJKMNP-TV-Z]{25}$/],
    [
      'an event id',
      newEventId,
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    ],
  ])('%s has its form, is unique, and sorts after those made before', (_, make, shape) => {
    const ids = many(make);
    expect(ids.filter((id) => !shape.test(id))).toEqual([]);
    expect(new Set(ids).size).toBe(COUNT);
    expect(ids.filter((id, at) => at > 0 && id <= (ids[at - 1] ?? ''))).toEqual([]);
  });

  test('the first ten characters of a ULID are its time in milliseconds', () => {
    const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
    const before = Date.now();
    const time = [...newUlid().slice(0, 10)].reduce((ms, c) => ms * 32 + alphabet.indexOf(c), 0);
    // The ids of one millisecond may run a little ahead of the clock.
    expect(time).toBeGreaterThanOrEqual(before);
    expect(time).toBeLessThanOrEqual(Date.now() + 1);
  });
});
