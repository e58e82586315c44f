/**
 * gaps §4: full number and CVV live in memory for one provider call and reach nothing else.
 * Numbers that exist nowhere else are sent on every path (test/support/canary.ts).
 */
import { describe, expect, test } from '@jest/globals';
import { blocks, expectNoCardData, testCard } from '../support/canary.ts';
import { luhnNumber, searchFor } from '../support/card-search.ts';
import { AWAITED_MS } from '../support/time-bounds.ts';

describe('gaps §4, S1, S2: card data', () => {
  test.each([
    ['plain', (n: string) => `"${n}"`],
    ['inside other digits', (n: string) => `17${n}99`],
    ['in blocks', (n: string) => blocks(n, ' ')],
    ['with dashes', (n: string) => blocks(n, '-')],
    ['in hex', (n: string) => Buffer.from(`is ${n}`).toString('hex')],
    ['in base64', (n: string) => Buffer.from(`{"number":"${n}"}`).toString('base64')],
    ['in base64, shifted', (n: string) => Buffer.from(`{"number": "${n}"}`).toString('base64')],
    [
      'in base64, shifted again',
      (n: string) => Buffer.from(`{"number":  "${n}"}`).toString('base64'),
    ],
  ])('the search finds a number %s', (_, hide) => {
    const number = luhnNumber('40128888888818');
    expect(searchFor([number])(`before ${hide(number)} after`)).toHaveLength(1);
  });

  test('no card number and no CVV is in any file, log line, response or metric', async () => {
    await expectNoCardData({ PROVIDER_TIMEOUT_MS: String(AWAITED_MS) }, [
      testCard('4000000000000002', 402),
      testCard('4000000000000127', 402),
      testCard('4000000000004210', 503),
      testCard('4000000000004228', 503),
      testCard('4000000000004236', 503),
    ]);
  });
});
