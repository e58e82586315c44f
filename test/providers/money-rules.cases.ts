/** The provider keeps money rules of its own (M1 to M3). */
import { describe, expect, test } from '@jest/globals';
import type { ProviderOperation } from '../../providers/port.ts';
import type { LoggedProvider } from '../support/logged-provider.ts';
import { authorize, followUp } from '../support/provider-operations.ts';
import { approved, declined, openBeforeEach, type ProviderDriver } from './opened.ts';

export const moneyRuleCases = (driver: ProviderDriver): void => {
  describe('M1 to M3: the ledger keeps its own money rules', () => {
    let provider: LoggedProvider;
    const { authorized, captured } = openBeforeEach(driver, (opened) => {
      provider = opened;
    });
    const change = (kind: 'CAPTURE' | 'VOID' | 'REFUND', of: ProviderOperation, parts = {}) =>
      provider.execute(followUp(kind, of, parts));

    const notPermitted = declined('TRANSACTION_NOT_PERMITTED');
    const overLimit = declined('LIMIT_EXCEEDED');

    test('a capture of part releases the rest, so there is no second one', async () => {
      expect(await change('CAPTURE', await captured(500), { amount: 500 })).toEqual(notPermitted);
    });

    test('no capture above the authorized amount', async () => {
      const operation = await authorized();
      expect(await change('CAPTURE', operation, { amount: 2001 })).toEqual(overLimit);
      expect(await change('CAPTURE', operation)).toMatchObject(approved);
    });

    test('a void is whole, comes once, and not after a capture', async () => {
      const operation = await authorized();
      expect(await change('VOID', operation, { amount: 1 })).toEqual(notPermitted);
      expect(await change('VOID', operation)).toMatchObject(approved);
      expect(await change('VOID', operation)).toEqual(notPermitted);
      expect(await change('CAPTURE', operation)).toEqual(notPermitted);
      expect(await change('VOID', await captured(1))).toEqual(notPermitted);
    });

    test('a sale is captured already', async () => {
      const sale = await authorized(undefined, { kind: 'SALE' });
      expect(await change('CAPTURE', sale)).toEqual(notPermitted);
      expect(await change('VOID', sale)).toEqual(notPermitted);
      expect(await change('REFUND', sale)).toMatchObject(approved);
    });

    test('refunds add up to the captured amount at most', async () => {
      const operation = await captured(1500);
      for (const [amount, expected] of [
        [1501, overLimit],
        [1000, approved],
        [501, overLimit],
        [500, approved],
        [1, overLimit],
      ] as const)
        expect(await change('REFUND', operation, { amount })).toMatchObject(expected);
    });

    test('of refunds at once, no more than the captured amount passes', async () => {
      const operation = await captured(1000);
      const refunds = Array.from({ length: 8 }, () => change('REFUND', operation, { amount: 300 }));
      const responses = await Promise.all(refunds);
      expect(responses.filter(({ outcome }) => outcome === 'APPROVED')).toHaveLength(3);
    });

    test('an unknown, declined or fenced authorization, or no authorization at all', async () => {
      const [refused, fenced] = [authorize('4000000000000002'), authorize()];
      await provider.execute(refused);
      await provider.fence(fenced);
      const capture = followUp('CAPTURE', await authorized());
      await provider.execute(capture);
      for (const target of [authorize(), refused, fenced, capture])
        expect(await change('CAPTURE', target)).toEqual(notPermitted);
    });

    test("nothing captured to refund, another payment's authorization, another currency", async () => {
      const operation = await authorized();
      expect(await change('REFUND', operation)).toEqual(notPermitted);
      for (const parts of [{ paymentId: 'pay_2' }, { currency: 'EUR' }])
        expect(await change('CAPTURE', operation, parts)).toEqual(notPermitted);
    });
  });
};
