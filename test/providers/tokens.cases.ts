/** Tokens in place of card numbers (gaps §14); a driver without any says so for each. */
import { describe, expect, test } from '@jest/globals';
import { CardSecret } from '../../shared/payment/card.ts';
import type { LoggedProvider } from '../support/logged-provider.ts';
import { authorize } from '../support/provider-operations.ts';
import { approved, openBeforeEach, type ProviderDriver, takeAll } from './opened.ts';

export const tokenCases = (driver: ProviderDriver): void => {
  describe('gaps §14: a token in place of the card number', () => {
    let provider: LoggedProvider;
    openBeforeEach(driver, (opened) => {
      provider = opened;
    });
    const { token } = driver;
    const byToken = (name: string) => ({
      ...authorize(),
      card: new CardSecret({ token: name, holderName: 'Jane Doe' }),
    });

    test('an unknown one is not found, and nothing is charged on it', async () => {
      expect(await provider.describeToken('tok_nobody', 'm_1')).toEqual({ outcome: 'NOT_FOUND' });
      expect((await provider.execute(byToken('tok_nobody'))).outcome).not.toBe('APPROVED');
      const entries = await takeAll(provider, 10);
      expect(entries.filter(({ outcome }) => outcome === 'APPROVED')).toEqual([]);
    });

    if (token !== undefined) {
      test('one that is known is described, and charged', async () => {
        // A bin is not told by every provider.
        expect(await provider.describeToken(token, 'm_1')).toMatchObject({
          outcome: 'DESCRIBED',
          last4: expect.stringMatching(/^[0-9]{4}$/),
          expiryMonth: expect.stringMatching(/^(0[1-9]|1[0-2])$/),
          expiryYear: expect.stringMatching(/^[0-9]{4}$/),
          brand: 'VISA',
        });
        expect(await provider.execute(byToken(token))).toMatchObject(approved);
      });
    }
  });
};
