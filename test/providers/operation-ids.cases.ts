/** The operation id is the idempotency key of the provider (gaps §7). */
import { describe, expect, test } from '@jest/globals';
import type { LoggedProvider } from '../support/logged-provider.ts';
import { authorize, followUp, newOperationId } from '../support/provider-operations.ts';
import {
  approved,
  declined,
  onlySimulated,
  openBeforeEach,
  type ProviderDriver,
  takeAll,
} from './opened.ts';

export const operationIdCases = (driver: ProviderDriver): void => {
  describe('gaps §7: the operation id is the idempotency key', () => {
    let provider: LoggedProvider;
    const { authorized } = openBeforeEach(driver, (opened) => {
      provider = opened;
    });

    test('a repeat gives the first answer again, whatever the card is now', async () => {
      const yes = authorize();
      const no = authorize('4000000000009995');
      const first = await provider.execute(yes);
      await provider.execute(no);
      const otherCard = authorize('4000000000000002', { operationId: yes.operationId });
      expect(await provider.execute(yes)).toEqual(first);
      expect(await provider.execute(otherCard)).toEqual(first);
      expect(await provider.execute(no)).toMatchObject(declined('INSUFFICIENT_FUNDS'));
      expect(await takeAll(provider, 10)).toHaveLength(2);
    });

    onlySimulated(driver, () => {
      test('a repeat with another kind gives the first answer again', async () => {
        const operation = await authorized();
        const { operationId } = operation;
        const other = followUp('CAPTURE', operation, { operationId });
        expect(await provider.execute(other)).toMatchObject(approved);
        const [entry, ...rest] = await takeAll(provider, 10);
        expect([entry?.kind, rest]).toEqual(['AUTHORIZE', []]);
      });
    });

    test('an answer about another amount or currency is Unknown', async () => {
      const operation = await authorized();
      const { operationId } = operation;
      const mismatch = { outcome: 'UNKNOWN', reason: 'mismatch' };
      expect(await provider.execute(authorize(undefined, { operationId, amount: 1 }))).toEqual(
        mismatch,
      );
      expect(await provider.lookUp({ ...operation, amount: 1999 })).toEqual(mismatch);
      expect(await provider.lookUp({ ...operation, currency: 'EUR' })).toEqual(mismatch);
      expect(await provider.fence({ ...operation, amount: 2001 })).toEqual(mismatch);
      expect(await provider.lookUp(operation)).toMatchObject(approved);
    });

    onlySimulated(driver, () => {
      test('of 32 calls at once with one id, one is carried out', async () => {
        const operation = authorize();
        const responses = await Promise.all(
          Array.from({ length: 32 }, () => provider.execute(operation)),
        );
        expect(new Set(responses.map((response) => JSON.stringify(response))).size).toBe(1);
        expect(await takeAll(provider, 10)).toHaveLength(1);
      });
    });

    test('ids of every allowed form are taken', async () => {
      const operationId = `${newOperationId()}-${'x_Z'.repeat(18)}`;
      expect(operationId).toHaveLength(64);
      await authorized(undefined, { operationId });
    });
  });
};
