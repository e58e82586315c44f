/** What the ledger lists and what its files hold (gaps §4, provider.md). */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from '@jest/globals';
import { TEST_CARDS } from '../../providers/simulator/test-cards.ts';
import { CardSecret } from '../../shared/payment/card.ts';
import type { LoggedProvider } from '../support/logged-provider.ts';
import { timesOf } from '../support/long-run-share.ts';
import { authorize, followUp } from '../support/provider-operations.ts';
import {
  declined,
  LEDGER_FILE,
  onlySimulated,
  openBeforeEach,
  type ProviderDriver,
  SHORT_TIMEOUT_MS,
  takeAll,
} from './opened.ts';

const CALLS = timesOf(300, 60);

export const ledgerCases = (driver: ProviderDriver): void => {
  describe('the ledger', () => {
    let provider: LoggedProvider;
    const { reopen, authorized, folder } = openBeforeEach(driver, (opened) => {
      provider = opened;
    });

    test('lists what was carried out, oldest first, page by page', async () => {
      const operation = await authorized();
      await provider.fence(authorize());
      await provider.execute(authorize('4000000000009995', { paymentId: 'pay_2' }));
      await provider.execute(followUp('CAPTURE', operation, { amount: 1500 }));
      const entries = await takeAll(provider, 2);
      expect(entries).toEqual(await takeAll(provider, 3));
      // A provider may list what came of an authorization beside it; a payment's own order holds.
      const [ofFirst = [], ofSecond = []] = ['pay_1', 'pay_2'].map((id) =>
        entries.filter(({ paymentId }) => paymentId === id),
      );
      expect(ofFirst.map(({ kind, outcome }) => [kind, outcome])).toEqual([
        ['AUTHORIZE', 'APPROVED'],
        ['CAPTURE', 'APPROVED'],
      ]);
      expect(entries[0]).toEqual({
        cursor: expect.any(String),
        operationId: operation.operationId,
        kind: 'AUTHORIZE',
        paymentId: 'pay_1',
        outcome: 'APPROVED',
        amount: 2000,
        currency: 'USD',
        providerReference: expect.any(String),
      });
      expect(ofFirst[1]).toMatchObject({ amount: 1500 });
      expect(ofSecond).toEqual([
        expect.objectContaining({ kind: 'AUTHORIZE', ...declined('INSUFFICIENT_FUNDS') }),
      ]);
    });

    test('an empty ledger, and a page after the last line', async () => {
      expect(await provider.ledger(null, 10)).toMatchObject({ entries: [], next: null });
      expect(await provider.ledgerEnd(null)).toEqual([]);
      await authorized();
      const [entry] = await takeAll(provider, 10);
      const cursor = entry?.cursor ?? '';
      expect(await provider.ledger(cursor, 10)).toMatchObject({ entries: [], next: null });
      expect(await provider.ledgerEnd(cursor)).toEqual([]);
    });

    test('gaps §28: since a time it lists what was carried out then or later, and says so', async () => {
      const since = '2026-01-01T00:00:00.000Z';
      for (let call = 0; call < 3; call += 1) await authorized();
      const all = await takeAll(provider, 10);
      const first = await provider.ledger(null, 2, since);
      expect(first).toMatchObject({ entries: all.slice(0, 2), since });
      const second = await provider.ledger(first.next, 2, since);
      expect(second).toMatchObject({ entries: all.slice(2), next: null, since });
      const later = '2099-01-01T00:00:00.000Z';
      expect(await provider.ledger(null, 2, later)).toMatchObject({
        entries: [],
        next: null,
        since: later,
      });
      expect((await provider.ledger(null, 2)).since).toBeUndefined();
    });

    test('the end of the ledger is its last entries, those after a cursor alone', async () => {
      for (let call = 0; call < 5; call += 1) await authorized();
      const all = await takeAll(provider, 2);
      const end = await provider.ledgerEnd(null);
      expect(end).toEqual(all.slice(-end.length));
      expect(end.length).toBeGreaterThan(0);
      expect(await provider.ledgerEnd(all[2]?.cursor ?? '')).toEqual(all.slice(3));
    });

    onlySimulated(driver, () => {
      test('survives close and open: answers, fences, cursors', async () => {
        const operation = await authorized();
        const before = await provider.lookUp(operation);
        provider = await reopen();
        expect(await provider.lookUp(operation)).toEqual(before);
        expect(await provider.execute(operation)).toEqual(before);
        await authorized();
        const [first, second] = await takeAll(provider, 10);
        expect(first?.operationId).toBe(operation.operationId);
        expect((await provider.ledger(first?.cursor ?? '', 10)).entries).toEqual([second]);
      });
    });

    onlySimulated(driver, () => {
      test(`${CALLS} calls at once are all carried out, each once`, async () => {
        const calls = Array.from({ length: CALLS }, () => authorize());
        const responses = await Promise.all(calls.map((call) => provider.execute(call)));
        expect(responses.filter(({ outcome }) => outcome === 'APPROVED')).toHaveLength(CALLS);
        const entries = await takeAll(provider, 1000);
        expect(entries).toHaveLength(CALLS);
        expect(new Set(entries.map(({ operationId }) => operationId)).size).toBe(CALLS);
      });
    });

    onlySimulated(driver, () => {
      test('gaps §4: no card number, no last four and no CVV in the files of the ledger', async () => {
        const numbers = TEST_CARDS.map(({ number }) => number);
        // No other text of a row has digits, but for the end of an authorization.
        const parts = (n: number) => ({
          paymentId: 'pay_x',
          operationId: `OP_${'x'.repeat(n + 1)}`,
        });
        const cardOf = (number: string) =>
          new CardSecret({ ...authorize(number).card.reveal(), cvv: 'CVV of a canary' });
        provider = await reopen(SHORT_TIMEOUT_MS);
        const calls = numbers.map((number, n) =>
          authorize(number, { ...parts(n), amount: 7, card: cardOf(number) }),
        );
        await Promise.all(calls.map((call) => provider.execute(call)));
        let bytes = '';
        let rows: Record<string, unknown>[] = [];
        provider = await reopen(SHORT_TIMEOUT_MS, () => {
          for (const name of readdirSync(folder())) {
            expect(statSync(join(folder(), name)).mode & 0o777).toBe(0o600);
            bytes += readFileSync(join(folder(), name), 'latin1');
          }
          const file = new DatabaseSync(join(folder(), LEDGER_FILE), { readOnly: true });
          rows = file.prepare('SELECT * FROM operations').all();
          file.close();
        });
        expect(bytes).toContain('pay_x');
        for (const trace of [...numbers, 'CVV of a canary', 'Jane Doe'])
          expect([trace, bytes.includes(trace)]).toEqual([trace, false]);
        const texts = rows.map(({ expires_at: _, ...row }) => JSON.stringify(row)).join();
        expect(texts).toContain('pay_x');
        for (const trace of numbers.map((number) => number.slice(-4)))
          expect([trace, texts.includes(trace)]).toEqual([trace, false]);
      });
    });
  });
};
