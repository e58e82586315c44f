/** A cursor names the last item of a page; a text that no page can have given is rejected. */
import { describe, expect, test } from '@jest/globals';
import { cursorOf, placeOf } from '../../shared/http/cursor.ts';
import { newPaymentId } from '../../shared/runtime/ids.ts';

const encoded = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const createdAt = '2026-11-21T10:00:00.000Z';

describe('the cursor of a page (docs/interface.md, "List payments")', () => {
  test('is read back as the place that it was made from', () => {
    const place = { createdAt, paymentId: newPaymentId() };
    expect(placeOf(cursorOf(place))).toEqual(place);
  });

  test.each([
    ['no JSON', 'x'],
    ['three items', [createdAt, 'pay_1', 1]],
    ['a day that does not exist', ['2026-11-31T10:00:00.000Z', 'pay_1']],
    ['a time of another zone', ['2026-11-21T10:00:00.000+01:00', 'pay_1']],
    ['an id of another form', [createdAt, 'pay 1']],
  ])('is rejected when it holds %s', (_name, value) => {
    expect(placeOf(encoded(value))).toBeUndefined();
  });
});
