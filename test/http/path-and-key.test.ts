/** Which payment ids of a path and which Idempotency-Key headers are well formed (gaps §2, §8). */
import { describe, expect, test } from '@jest/globals';
import { parseIdempotencyKey } from '../../command-api/request/read-request.ts';
import { parsePaymentId } from '../../shared/http/route.ts';

describe('gaps §2: a paymentId in a path', () => {
  test.each(['pay_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'a', 'A-_9', 'x'.repeat(32)])(
    '%s is well formed',
    (id) => {
      expect(parsePaymentId(id)).toBe(id);
    },
  );
  test.each(['', 'x'.repeat(33), 'a/b', '\0', 'ä', '%zz', 'a\n', 'a.b'])(
    '%j is not well formed',
    (id) => {
      expect(parsePaymentId(id)).toBeUndefined();
    },
  );
});

describe('gaps §8: the Idempotency-Key', () => {
  test('is optional, and kept as it is', () => {
    expect(parseIdempotencyKey([])).toEqual({ ok: true, key: undefined });
    const key = `!~${'x'.repeat(253)}`;
    expect(parseIdempotencyKey(['idempotency-KEY', key])).toEqual({ ok: true, key });
  });
  test.each(['', 'a b', 'ä', 'x'.repeat(256), '\x7f'])('%j is refused', (key) => {
    expect(parseIdempotencyKey(['Idempotency-Key', key])).toEqual({
      ok: false,
      details: ['Idempotency-Key must be 1 to 255 visible ASCII characters'],
    });
  });
  test('two Idempotency-Key headers are rejected, equal ones too', () => {
    const twice = ['Idempotency-Key', 'a', 'Accept', '*/*', 'idempotency-key', 'a'];
    expect(parseIdempotencyKey(twice)).toEqual({
      ok: false,
      details: ['Idempotency-Key must be given once'],
    });
  });
});
