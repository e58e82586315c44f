/** The provider keeps money rules of its own (M1 to M3). */
import { describe, expect, test } from '@jest/globals';
import type { LoggedProvider } from '../support/logged-provider.ts';
import { authorize, followUp } from '../support/provider-operations.ts';
import { approved, declined, openBeforeEach, type ProviderDriver } from './opened.ts';

export const moneyRuleCases = (driver: ProviderDriver): void => {
  describe('M1 to M3: the ledger keeps its own money rules', () => {
    let provider: LoggedProvider;
    const { authorized, captured } = openBeforeEach(driver, (opened) => {
      provider = opened;
    });

    const notPermitted = declined('TRANSACTION_NOT_PERMITTED');
    const overLimit = declined('LIMIT_EXCEEDED');

    test('a capture of part releases the rest, so there is no second one', async () => {
      const operation = await captured(500);
      expect(await provider.execute(followUp('CAPTURE', operation, { amount: 500 }))).toEqual(
        notPermitted,
      );
    });

    test('no capture above the authorized amount', async () => {
      const operation = await authorized();
      expect(await provider.execute(followUp('CAPTURE', operation, { amount: 2001 }))).toEqual(
        overLimit,
      );
      expect(await provider.execute(followUp('CAPTURE', operation))).toMatchObject(approved);
    });

    test('a void is whole, comes once, and not after a capture', async () => {
      const operation = await authorized();
      expect(await provider.execute(followUp('VOID', operation, { amount: 1 }))).toEqual(
        notPermitted,
      );
      expect(await provider.execute(followUp('VOID', operation))).toMatchObject(approved);
      expect(await provider.execute(followUp('VOID', operation))).toEqual(notPermitted);
      expect(await provider.execute(followUp('CAPTURE', operation))).toEqual(notPermitted);
      expect(await provider.execute(followUp('VOID', await captured(1)))).toEqual(notPermitted);
    });

    test('a sale is captured already', async () => {
      const sale = await authorized(undefined, { kind: 'SALE' });
      expect(await provider.execute(followUp('CAPTURE', sale))).toEqual(notPermitted);
      expect(await provider.execute(followUp('VOID', sale))).toEqual(notPermitted);
      expect(await provider.execute(followUp('REFUND', sale))).toMatchObject(approved);
    });

    test('refunds add up to the captured amount at most', async () => {
      const operation = await captured(1500);
      const refund = (amount: number) =>
        provider.execute(followUp('REFUND', operation, { amount }));
      expect(await refund(1501)).toEqual(overLimit);
      expect(await refund(1000)).toMatchObject(approved);
      expect(await refund(501)).toEqual(overLimit);
      expect(await refund(500)).toMatchObject(approved);
      expect(await refund(1)).toEqual(overLimit);
    });

    test('of refunds at once, no more than the captured amount passes', async () => {
      const operation = await captured(1000);
      const responses = await Promise.all(
        Array.from({ length: 8 }, () =>
          provider.execute(followUp('REFUND', operation, { amount: 300 })),
        ),
      );
      expect(responses.filter(({ outcome }) => outcome === 'APPROVED')).toHaveLength(3);
    });

    test('nothing captured, nothing to refund', async () => {
      expect(await provider.execute(followUp('REFUND', await authorized()))).toEqual(notPermitted);
    });

    test('an unknown, declined or fenced authorization, or no authorization at all', async () => {
      const refused = authorize('4000000000000002');
      const fenced = authorize();
      await provider.execute(refused);
      await provider.fence(fenced);
      const operation = await authorized();
      const capture = followUp('CAPTURE', operation);
      await provider.execute(capture);
      for (const target of [authorize(), refused, fenced, capture]) {
        expect(await provider.execute(followUp('CAPTURE', target))).toEqual(notPermitted);
      }
    });

    test("another payment's authorization, and another currency", async () => {
      const operation = await authorized();
      for (const parts of [{ paymentId: 'pay_2' }, { currency: 'EUR' }]) {
        expect(await provider.execute(followUp('CAPTURE', operation, parts))).toEqual(notPermitted);
      }
    });
  });
};
