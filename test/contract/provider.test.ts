/** What every driver of the provider port promises (gaps §7, §13; provider.md). */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { LedgerEntry, Provider } from '../../command-api/provider/port.ts';
import { TEST_CARDS } from '../../provider-simulator/test-cards.ts';
import { CardSecret } from '../../shared/payment/card.ts';
import {
  APPROVED_CARD,
  authorize,
  CVV,
  followUp,
  newOperationId,
  providerDrivers,
} from '../support/provider-drivers.ts';
import { temporaryFolder } from '../support/read-model-drivers.ts';
import { until } from '../support/until.ts';

const TIMEOUT_MS = 300;
const LONG_TIMEOUT_MS = 5000;

const approved = { outcome: 'APPROVED', providerReference: expect.any(String) };
const declined = (failureCode: string) => ({
  outcome: 'DECLINED',
  failureCode,
  providerFailureCode: expect.stringMatching(/^[A-Za-z0-9_.-]{1,64}$/),
});
const unknown = { outcome: 'UNKNOWN', reason: expect.any(String) };

const takeAll = async (provider: Provider, limit: number): Promise<LedgerEntry[]> => {
  const all: LedgerEntry[] = [];
  let after: number | null = 0;
  while (after !== null) {
    const page = await provider.ledger(after, limit);
    expect(page.entries.length).toBeLessThanOrEqual(limit);
    all.push(...page.entries);
    after = page.next;
  }
  return all;
};

describe.each(providerDrivers)('provider: $name', (driver) => {
  let folder: ReturnType<typeof temporaryFolder>;
  let provider: Provider;

  const reopen = async (timeoutMs: number): Promise<void> => {
    await provider.close();
    provider = await driver.open(folder.path, timeoutMs);
  };
  const authorized = async (number?: string, parts?: Parameters<typeof authorize>[1]) => {
    const operation = authorize(number, parts);
    expect(await provider.execute(operation)).toEqual(approved);
    return operation;
  };
  const captured = async (amount: number, number?: string) => {
    const operation = await authorized(number);
    expect(await provider.execute(followUp('CAPTURE', operation, { amount }))).toEqual(approved);
    return operation;
  };

  beforeEach(async () => {
    folder = temporaryFolder();
    provider = await driver.open(folder.path, TIMEOUT_MS);
  });
  afterEach(async () => {
    await provider.close();
    folder.remove();
  });

  describe('gaps §13: the card number decides', () => {
    const plain = TEST_CARDS.filter(({ behaviour }) => behaviour === undefined);

    test.each(plain)('$number: $outcome $failureCode', async ({ number, failureCode }) => {
      const expected = failureCode === undefined ? approved : declined(failureCode);
      expect(await provider.execute(authorize(number))).toEqual(expected);
      expect(await provider.execute(authorize(number, { kind: 'SALE' }))).toEqual(expected);
    });

    test('any other number is approved when it passes the Luhn check, and only then', async () => {
      expect(await provider.execute(authorize('6011111111111117'))).toEqual(approved);
      expect(await provider.execute(authorize('6011111111111118'))).toEqual(
        declined('INVALID_CARD_NUMBER'),
      );
    });

    test("the card's date is not judged", async () => {
      const { card: _card, ...rest } = authorize();
      const past = { number: APPROVED_CARD, expiryMonth: '01', expiryYear: '2001' };
      const card = new CardSecret({ ...past, holderName: 'Jane Doe' });
      expect(await provider.execute({ ...rest, card })).toEqual(approved);
    });

    test('4210: never sent, and found as nothing', async () => {
      const operation = authorize('4000000000004210');
      expect(await provider.execute(operation)).toEqual({ outcome: 'NOT_SENT' });
      expect(await provider.lookUp(operation)).toEqual({ outcome: 'NOT_FOUND' });
      expect(await takeAll(provider, 10)).toEqual([]);
    });

    test('4228: times out before it acts, can be fenced while it hangs', async () => {
      const operation = authorize('4000000000004228');
      const hanging = provider.execute(operation);
      expect(await provider.lookUp(operation)).toEqual({ outcome: 'NOT_FOUND' });
      expect(await provider.fence(operation)).toEqual({ outcome: 'FENCED' });
      expect(await hanging).toEqual({ outcome: 'UNKNOWN', reason: 'timeout' });
      expect(await provider.lookUp(operation)).toEqual({ outcome: 'NOT_FOUND' });
      expect(await takeAll(provider, 10)).toEqual([]);
    });

    test('4236: acts, then its answer is lost; found as approved, not to be fenced', async () => {
      const operation = authorize('4000000000004236', { kind: 'SALE' });
      expect(await provider.execute(operation)).toEqual(unknown);
      expect(await provider.lookUp(operation)).toEqual(approved);
      expect(await provider.fence(operation)).toEqual(approved);
      expect(await provider.execute(operation)).toEqual(approved);
      expect(await takeAll(provider, 10)).toHaveLength(1);
    });

    test('4244: approved, its capture is declined, its void is not', async () => {
      const operation = await authorized('4000000000004244');
      await reopen(TIMEOUT_MS);
      expect(await provider.execute(followUp('CAPTURE', operation))).toEqual(
        declined('PROCESSING_ERROR'),
      );
      expect(await provider.execute(followUp('VOID', operation))).toEqual(approved);
    });

    test('4251: approved, its refund is declined, after a capture and after a sale', async () => {
      const refused = declined('TRANSACTION_NOT_PERMITTED');
      const operation = await captured(2000, '4000000000004251');
      const sale = await authorized('4000000000004251', { kind: 'SALE' });
      await reopen(TIMEOUT_MS);
      expect(await provider.execute(followUp('REFUND', operation))).toEqual(refused);
      expect(await provider.execute(followUp('REFUND', sale))).toEqual(refused);
    });

    test('4269: at work for 2 s, then carried out once; until then nobody can fence it', async () => {
      await reopen(LONG_TIMEOUT_MS);
      const operation = authorize('4000000000004269');
      const began = performance.now();
      const twins = Promise.all([provider.execute(operation), provider.execute(operation)]);
      await until('the operation is at work', async () => {
        const { outcome } = await provider.lookUp(operation);
        return outcome === 'UNKNOWN';
      });
      expect(await provider.fence(operation)).toEqual(unknown);
      expect(await twins).toEqual([approved, approved]);
      expect(performance.now() - began).toBeGreaterThan(1900);
      expect(await provider.lookUp(operation)).toEqual(approved);
      expect(await takeAll(provider, 10)).toHaveLength(1);
    });

    test('4269 past the time-out: Unknown at once, found as approved later', async () => {
      const operation = authorize('4000000000004269');
      expect(await provider.execute(operation)).toEqual({ outcome: 'UNKNOWN', reason: 'timeout' });
      expect(await provider.lookUp(operation)).toEqual(unknown);
      await until('the operation is carried out', async () => {
        const { outcome } = await provider.lookUp(operation);
        return outcome === 'APPROVED';
      });
    });

    test('4269 at work when the provider stops: not carried out, can be fenced', async () => {
      const operation = authorize('4000000000004269');
      const response = provider.execute(operation);
      await until('the operation is at work', async () => {
        const { outcome } = await provider.lookUp(operation);
        return outcome === 'UNKNOWN';
      });
      expect(await response).toEqual(unknown);
      await reopen(TIMEOUT_MS);
      expect(await provider.lookUp(operation)).toEqual({ outcome: 'NOT_FOUND' });
      expect(await provider.fence(operation)).toEqual({ outcome: 'FENCED' });
    });
  });

  describe('gaps §7: the operation id is the idempotency key', () => {
    test('a repeat gives the first answer again, whatever the card is now', async () => {
      const yes = authorize();
      const no = authorize('4000000000009995');
      const first = await provider.execute(yes);
      await provider.execute(no);
      const otherCard = authorize('4000000000000002', { operationId: yes.operationId });
      expect(await provider.execute(yes)).toEqual(first);
      expect(await provider.execute(otherCard)).toEqual(first);
      expect(await provider.execute(no)).toEqual(declined('INSUFFICIENT_FUNDS'));
      expect(await takeAll(provider, 10)).toHaveLength(2);
    });

    test('a repeat with another kind gives the first answer again', async () => {
      const operation = await authorized();
      const { operationId } = operation;
      const other = followUp('CAPTURE', operation, { operationId });
      expect(await provider.execute(other)).toEqual(approved);
      const [entry, ...rest] = await takeAll(provider, 10);
      expect([entry?.kind, rest]).toEqual(['AUTHORIZE', []]);
    });

    test('an answer about another amount or currency is Unknown', async () => {
      const { operationId } = await authorized();
      const mismatch = { outcome: 'UNKNOWN', reason: 'mismatch' };
      const requested = { operationId, amount: 2000, currency: 'USD' };
      expect(await provider.execute(authorize(undefined, { operationId, amount: 1 }))).toEqual(
        mismatch,
      );
      expect(await provider.lookUp({ ...requested, amount: 1999 })).toEqual(mismatch);
      expect(await provider.lookUp({ ...requested, currency: 'EUR' })).toEqual(mismatch);
      expect(await provider.fence({ ...requested, amount: 2001 })).toEqual(mismatch);
      expect(await provider.lookUp(requested)).toEqual(approved);
    });

    test('of 32 calls at once with one id, one is carried out', async () => {
      const operation = authorize();
      const responses = await Promise.all(
        Array.from({ length: 32 }, () => provider.execute(operation)),
      );
      expect(new Set(responses.map((response) => JSON.stringify(response))).size).toBe(1);
      expect(await takeAll(provider, 10)).toHaveLength(1);
    });
  });

  describe('gaps §7: asking and fencing', () => {
    test('a look-up finds approvals, declines and nothing', async () => {
      const yes = await authorized();
      const no = authorize('4000000000000002');
      await provider.execute(no);
      expect(await provider.lookUp(yes)).toEqual(approved);
      expect(await provider.lookUp(no)).toEqual(declined('CARD_DECLINED'));
      expect(await provider.lookUp(authorize())).toEqual({ outcome: 'NOT_FOUND' });
    });

    test('a fence before the call: the call is NotSent, for good', async () => {
      const operation = authorize();
      expect(await provider.fence(operation)).toEqual({ outcome: 'FENCED' });
      expect(await provider.fence(operation)).toEqual({ outcome: 'FENCED' });
      await reopen(TIMEOUT_MS);
      expect(await provider.execute(operation)).toEqual({ outcome: 'NOT_SENT' });
      expect(await provider.lookUp(operation)).toEqual({ outcome: 'NOT_FOUND' });
      expect(await takeAll(provider, 10)).toEqual([]);
    });

    test.each(['4000000000004228', '4000000000004269', '4000000000004236'])(
      'a fence holds against %s too',
      async (number) => {
        const operation = authorize(number);
        await provider.fence(operation);
        expect(await provider.execute(operation)).toEqual({ outcome: 'NOT_SENT' });
        expect(await takeAll(provider, 10)).toEqual([]);
      },
    );

    test('a fence after the call gives its outcome', async () => {
      const yes = await authorized();
      const no = authorize('4000000000000002');
      await provider.execute(no);
      expect(await provider.fence(yes)).toEqual(approved);
      expect(await provider.fence(no)).toEqual(declined('CARD_DECLINED'));
      expect(await provider.execute(followUp('CAPTURE', yes))).toEqual(approved);
    });

    test('of a call and a fence at once, both tell the same story', async () => {
      for (let round = 0; round < 20; round += 1) {
        const operation = authorize();
        const [response, fence] = await Promise.all([
          provider.execute(operation),
          provider.fence(operation),
        ]);
        const both = `${response.outcome} ${fence.outcome}`;
        expect(['APPROVED APPROVED', 'NOT_SENT FENCED']).toContain(both);
      }
    });
  });

  describe('M1 to M3: the ledger keeps its own money rules', () => {
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
      expect(await provider.execute(followUp('CAPTURE', operation))).toEqual(approved);
    });

    test('a void is whole, comes once, and not after a capture', async () => {
      const operation = await authorized();
      expect(await provider.execute(followUp('VOID', operation, { amount: 1 }))).toEqual(
        notPermitted,
      );
      expect(await provider.execute(followUp('VOID', operation))).toEqual(approved);
      expect(await provider.execute(followUp('VOID', operation))).toEqual(notPermitted);
      expect(await provider.execute(followUp('CAPTURE', operation))).toEqual(notPermitted);
      expect(await provider.execute(followUp('VOID', await captured(1)))).toEqual(notPermitted);
    });

    test('a sale is captured already', async () => {
      const sale = await authorized(undefined, { kind: 'SALE' });
      expect(await provider.execute(followUp('CAPTURE', sale))).toEqual(notPermitted);
      expect(await provider.execute(followUp('VOID', sale))).toEqual(notPermitted);
      expect(await provider.execute(followUp('REFUND', sale))).toEqual(approved);
    });

    test('refunds add up to the captured amount at most', async () => {
      const operation = await captured(1500);
      const refund = (amount: number) =>
        provider.execute(followUp('REFUND', operation, { amount }));
      expect(await refund(1501)).toEqual(overLimit);
      expect(await refund(1000)).toEqual(approved);
      expect(await refund(501)).toEqual(overLimit);
      expect(await refund(500)).toEqual(approved);
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

  describe('the ledger', () => {
    test('lists what was carried out, oldest first, page by page, from sequence 1', async () => {
      const operation = await authorized();
      await provider.fence(authorize());
      await provider.execute(authorize('4000000000009995', { paymentId: 'pay_2' }));
      await provider.execute(followUp('CAPTURE', operation, { amount: 1500 }));
      const entries = await takeAll(provider, 2);
      expect(entries).toEqual(await takeAll(provider, 3));
      expect(entries.map(({ sequence, kind, outcome }) => [sequence, kind, outcome])).toEqual([
        [1, 'AUTHORIZE', 'APPROVED'],
        [2, 'AUTHORIZE', 'DECLINED'],
        [3, 'CAPTURE', 'APPROVED'],
      ]);
      expect(entries[0]).toEqual({
        sequence: 1,
        operationId: operation.operationId,
        kind: 'AUTHORIZE',
        paymentId: 'pay_1',
        outcome: 'APPROVED',
        amount: 2000,
        currency: 'USD',
        providerReference: expect.any(String),
      });
      expect(entries[1]).toMatchObject({ paymentId: 'pay_2', ...declined('INSUFFICIENT_FUNDS') });
      expect(entries[2]).toMatchObject({ amount: 1500 });
    });

    test('an empty ledger, and a page after the last line', async () => {
      expect(await provider.ledger(0, 10)).toEqual({ entries: [], next: null });
      await authorized();
      expect(await provider.ledger(1, 10)).toEqual({ entries: [], next: null });
    });

    test('survives close and open: answers, fences, sequence numbers', async () => {
      const operation = await authorized();
      const before = await provider.lookUp(operation);
      await reopen(TIMEOUT_MS);
      expect(await provider.lookUp(operation)).toEqual(before);
      expect(await provider.execute(operation)).toEqual(before);
      await authorized();
      const sequences = (await takeAll(provider, 10)).map(({ sequence }) => sequence);
      expect(sequences).toEqual([1, 2]);
    });

    test('300 calls at once are all carried out, each once', async () => {
      await reopen(LONG_TIMEOUT_MS);
      const calls = Array.from({ length: 300 }, () => authorize());
      const responses = await Promise.all(calls.map((call) => provider.execute(call)));
      expect(responses.filter(({ outcome }) => outcome === 'APPROVED')).toHaveLength(300);
      const entries = await takeAll(provider, 1000);
      expect(entries.map(({ sequence }) => sequence)).toEqual(calls.map((_, at) => at + 1));
      expect(new Set(entries.map(({ operationId }) => operationId)).size).toBe(300);
    });
  });

  test('gaps §4: no card number, no last four and no CVV in the files of the ledger', async () => {
    const numbers = TEST_CARDS.map(({ number }) => number);
    const traces = numbers.flatMap((number) => [number, number.slice(-4)]);
    // Amounts and ids that no trace can be found in by chance.
    const parts = { amount: 7, paymentId: 'pay_x' };
    await Promise.all(numbers.map((number) => provider.execute(authorize(number, parts))));
    await provider.close();
    const bytes = readdirSync(folder.path).map((name) => {
      expect(statSync(join(folder.path, name)).mode & 0o777).toBe(0o600);
      return readFileSync(join(folder.path, name)).toString('latin1');
    });
    expect(bytes.join().includes('pay_x')).toBe(true);
    for (const trace of [...traces, CVV, 'Jane Doe']) {
      expect([trace, bytes.join().includes(trace)]).toEqual([trace, false]);
    }
    provider = await driver.open(folder.path, TIMEOUT_MS);
  });

  test('ids of every allowed form are taken', async () => {
    const operationId = `${newOperationId()}-${'x_Z'.repeat(18)}`;
    expect(operationId).toHaveLength(64);
    await authorized(undefined, { operationId });
  });
});
