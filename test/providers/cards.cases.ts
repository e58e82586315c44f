/** What the card number of the test decides (gaps §13). */
import { describe, expect, test } from '@jest/globals';
import { resilient } from '../../providers/resilience.ts';
import { TEST_CARDS } from '../../providers/simulator/test-cards.ts';
import { CardSecret } from '../../shared/payment/card.ts';
import { type LoggedProvider, withLog } from '../support/logged-provider.ts';
import { APPROVED_CARD, authorize, followUp } from '../support/provider-operations.ts';
import { until } from '../support/until.ts';
import {
  approved,
  declined,
  notSent,
  openBeforeEach,
  type ProviderDriver,
  SHORT_TIMEOUT_MS,
  takeAll,
  unknown,
} from './opened.ts';

export const cardCases = (driver: ProviderDriver): void => {
  describe('gaps §13: the card number decides', () => {
    let provider: LoggedProvider;
    const { reopen, authorized, captured } = openBeforeEach(driver, (opened) => {
      provider = opened;
    });

    const plain = TEST_CARDS.filter(({ behaviour }) => behaviour === undefined);

    test.each(plain)('$number: $outcome $failureCode', async ({ number, failureCode }) => {
      const expected = failureCode === undefined ? approved : declined(failureCode);
      expect(await provider.execute(authorize(number))).toMatchObject(expected);
      expect(await provider.execute(authorize(number, { kind: 'SALE' }))).toMatchObject(expected);
    });

    test('any other number is approved when it passes the Luhn check, and only then', async () => {
      expect(await provider.execute(authorize('6011111111111117'))).toMatchObject(approved);
      expect(await provider.execute(authorize('6011111111111118'))).toEqual(
        declined('INVALID_CARD_NUMBER'),
      );
    });

    test("the card's date is not judged", async () => {
      const { card: _card, ...rest } = authorize();
      const past = { number: APPROVED_CARD, expiryMonth: '01', expiryYear: '2001' };
      const card = new CardSecret({ ...past, holderName: 'Jane Doe' });
      expect(await provider.execute({ ...rest, card })).toMatchObject(approved);
    });

    test('4210: never sent, and found as nothing', async () => {
      const operation = authorize('4000000000004210');
      expect(await provider.execute(operation)).toMatchObject(notSent);
      expect(await provider.lookUp(operation)).toEqual({ outcome: 'NOT_FOUND' });
      expect(await takeAll(provider, 10)).toEqual([]);
    });

    test('five calls with 4210 leave the circuit breaker closed for other payments', async () => {
      const resilientOne = resilient(provider);
      const behind = withLog(resilientOne);
      for (let call = 1; call <= 5; call += 1) {
        const response = await behind.execute(authorize('4000000000004210'));
        expect(response.outcome).toBe('NOT_SENT');
      }
      expect(resilientOne.breakerOpen()).toBe(false);
      expect(await behind.execute(authorize())).toMatchObject(approved);
    });

    test('4228: times out before it acts, can be fenced while it hangs', async () => {
      provider = await reopen(SHORT_TIMEOUT_MS);
      const operation = authorize('4000000000004228');
      const hanging = provider.execute(operation);
      expect(await provider.lookUp(operation)).toEqual({ outcome: 'NOT_FOUND' });
      expect(await provider.fence(operation)).toEqual({ outcome: 'FENCED' });
      expect(await hanging).toEqual({ outcome: 'UNKNOWN', reason: 'timeout' });
      expect(await provider.lookUp(operation)).toEqual({ outcome: 'NOT_FOUND' });
      expect(await takeAll(provider, 10)).toEqual([]);
    });

    test('4236: acts, then its answer is lost; found as approved, not to be fenced', async () => {
      provider = await reopen(SHORT_TIMEOUT_MS);
      const operation = authorize('4000000000004236', { kind: 'SALE' });
      expect(await provider.execute(operation)).toEqual(unknown);
      expect(await provider.lookUp(operation)).toMatchObject(approved);
      expect(await provider.fence(operation)).toMatchObject(approved);
      expect(await provider.execute(operation)).toMatchObject(approved);
      expect(await takeAll(provider, 10)).toHaveLength(1);
    });

    test('4244: approved, its capture is declined, its void is not', async () => {
      const operation = await authorized('4000000000004244');
      provider = await reopen();
      const capture = await provider.execute(followUp('CAPTURE', operation));
      expect(capture).toEqual(declined('PROCESSING_ERROR'));
      expect(await provider.execute(followUp('VOID', operation))).toMatchObject(approved);
    });

    test('4251: approved, its refund is declined, after a capture and after a sale', async () => {
      const operation = await captured(2000, '4000000000004251');
      const sale = await authorized('4000000000004251', { kind: 'SALE' });
      provider = await reopen();
      for (const one of [operation, sale]) {
        const refund = await provider.execute(followUp('REFUND', one));
        expect(refund).toMatchObject(declined('TRANSACTION_NOT_PERMITTED'));
      }
    });

    const outcomeOf = async (operation: ReturnType<typeof authorize>) =>
      (await provider.lookUp(operation)).outcome;
    const untilAtWork = (operation: ReturnType<typeof authorize>) =>
      until('it is at work', async () => (await outcomeOf(operation)) === 'UNKNOWN');

    test('4269: at work for 2 s, then carried out once; until then it cannot be fenced', async () => {
      const operation = authorize('4000000000004269');
      const began = performance.now();
      const twins = Promise.all([provider.execute(operation), provider.execute(operation)]);
      await untilAtWork(operation);
      expect(await provider.fence(operation)).toEqual(unknown);
      expect(await twins).toMatchObject([approved, approved]);
      expect(performance.now() - began).toBeGreaterThan(1900);
      expect(await provider.lookUp(operation)).toMatchObject(approved);
      expect(await takeAll(provider, 10)).toHaveLength(1);
    });

    test('4269 past the time-out: Unknown at once, found as approved later', async () => {
      provider = await reopen(SHORT_TIMEOUT_MS);
      const operation = authorize('4000000000004269');
      expect(await provider.execute(operation)).toEqual({ outcome: 'UNKNOWN', reason: 'timeout' });
      expect(await provider.lookUp(operation)).toEqual(unknown);
      await until('it is carried out', async () => (await outcomeOf(operation)) === 'APPROVED');
    });

    test('4269 at work when the provider stops: not carried out, can be fenced', async () => {
      provider = await reopen(SHORT_TIMEOUT_MS);
      const operation = authorize('4000000000004269');
      const response = provider.execute(operation);
      await untilAtWork(operation);
      expect(await response).toEqual(unknown);
      provider = await reopen();
      expect(await provider.lookUp(operation)).toEqual({ outcome: 'NOT_FOUND' });
      expect(await provider.fence(operation)).toEqual({ outcome: 'FENCED' });
    });
  });
};
