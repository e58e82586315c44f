/** What every driver of the read models promises of a search (shared/read-models/port.ts). */
import { describe, expect, test } from '@jest/globals';
import { foldReadModel } from '../../shared/payment/fold.ts';
import type { PaymentSearch, ReadModelChange, ReadModels } from '../../shared/read-models/port.ts';
import { largestCreated } from '../support/largest-payment.ts';
import { created, timeOf, wholeLife } from '../support/payment-events.ts';
import type { ReadModelDriver } from '../support/read-model-drivers.ts';
import { change, openBeforeAll, openBeforeEach, parking, readModelAt } from './opened.ts';

export const searchCases = (driver: ReadModelDriver): void => {
  describe('search', () => {
    let readModels: ReadModels;
    /** Five payments, named by what they are found by. */
    const fill = async (): Promise<void> => {
      const payment = (
        paymentId: string,
        n: number,
        { merchantId = 'm_1', amount = 2500, last4 = '4242', reference = 'order-1' } = {},
        revision = 0,
      ): ReadModelChange => {
        const [first, ...rest] = wholeLife(paymentId, merchantId);
        if (first?.type !== 'PaymentCreated') throw new Error('no first event');
        const card = { ...first.data.card, last4 };
        const data = { ...first.data, amount, card, details: { merchantReference: reference } };
        const events = [created(data), ...rest].slice(0, revision + 1);
        const readModel = foldReadModel(
          events.map((event, at) => ({ revision: at, time: timeOf(n + at), event })),
        );
        if (readModel === undefined) throw new Error('no read model');
        return change(readModel);
      };
      const changes = [
        payment('pay_1', 10, { amount: 100 }),
        payment('pay_2', 20, { amount: 200, merchantId: 'm_2' }, 1),
        payment('pay_3', 30, { amount: 300, last4: '1111' }, 3),
        payment('pay_5', 40, { amount: 400, reference: 'pay_1' }),
        payment('pay_4', 40, { amount: 500, reference: '1111' }),
      ];
      await readModels.apply(changes, null, 'p1');
    };
    const found = async (search: PaymentSearch, limit = 10): Promise<string[]> =>
      (await readModels.search(search, limit)).documents.map(({ paymentId }) => paymentId);

    describe('of read models that were filled once', () => {
      openBeforeAll(driver, (opened) => {
        readModels = opened;
        return fill();
      });

      test.each<[string, PaymentSearch, string[]]>([
        ['an id, or a reference that looks like one', { text: 'pay_1' }, ['pay_5', 'pay_1']],
        ['last four digits, or such a reference', { text: '1111' }, ['pay_4', 'pay_3']],
        ['a reference', { text: 'order-1' }, ['pay_3', 'pay_2', 'pay_1']],
        ['a reference of one merchant', { text: 'order-1', merchantId: 'm_2' }, ['pay_2']],
        ['a part of a text', { text: 'order-' }, []],
        ['a text of another case', { text: 'ORDER-1' }, []],
        ['a text with signs of a query', { text: "' OR 1=1 --" }, []],
        ['a status', { status: 'PENDING' }, ['pay_5', 'pay_4', 'pay_1']],
        ['a text and a status', { text: '4242', status: 'AUTHORIZED' }, ['pay_2']],
        ['a time, from inclusive', { from: timeOf(30) }, ['pay_5', 'pay_4', 'pay_3']],
        ['a time, to exclusive', { to: timeOf(30) }, ['pay_2', 'pay_1']],
        ['both times', { from: timeOf(20), to: timeOf(40) }, ['pay_3', 'pay_2']],
        ['amounts, inclusive', { minAmount: 200, maxAmount: 400 }, ['pay_5', 'pay_3', 'pay_2']],
        ['the authorized amount, not the captured', { minAmount: 300, maxAmount: 300 }, ['pay_3']],
      ])('finds by %s', async (_, search, expected) => {
        expect(await found(search)).toEqual(expected);
      });

      test.each<PaymentSearch>([{}, { merchantId: 'm_1' }, { text: '4242' }])(
        'page after page gives what one page gives: %j',
        async (search) => {
          const pages: string[] = [];
          let after: PaymentSearch['after'];
          for (let page = 0; page < 9; page += 1) {
            const more = after === undefined ? {} : { after };
            const { documents, searchedTo } = await readModels.search({ ...search, ...more }, 1);
            pages.push(...documents.map(({ paymentId }) => paymentId));
            after = searchedTo;
            if (after === undefined) break;
          }
          expect(pages).toEqual(await found(search));
        },
      );
    });

    describe('of read models that are written', () => {
      openBeforeEach(driver, (opened) => {
        readModels = opened;
      });

      test('finds everything, newest first, and by id where times are equal', async () => {
        await fill();
        expect(await found({})).toEqual(['pay_5', 'pay_4', 'pay_3', 'pay_2', 'pay_1']);
        expect(await found({}, 2)).toEqual(['pay_5', 'pay_4']);
        expect(await found({ merchantId: 'm_1' })).toEqual(['pay_5', 'pay_4', 'pay_3', 'pay_1']);
        expect(await found({ merchantId: 'm_3' })).toEqual([]);
      });

      test('gives the documents as they are read one by one', async () => {
        await fill();
        await readModels.apply([parking('pay_2', 2)], 'p1', 'p2');
        for (const document of (await readModels.search({}, 10)).documents)
          expect(document).toEqual(await readModels.getAny(document.paymentId));
        expect((await readModels.search({ text: 'pay_2' }, 10)).documents).toMatchObject([
          { parked: true },
        ]);
      });

      /** Payments with 60 of the largest items, oldest first: two of them have room on a page. */
      const fillWithLarge = async (count: number): Promise<void> => {
        const changes = Array.from({ length: count }, (_, n) => {
          const event = largestCreated(`pay_${n}`, 'm_1', 60);
          const readModel = foldReadModel([{ revision: 0, time: timeOf(n), event }]);
          if (readModel === undefined) throw new Error('no read model');
          return change(readModel);
        });
        await readModels.apply(changes, null, 'p1');
      };

      test('a page ends at 256 KiB of bodies, and page after page gives every payment once', async () => {
        await fillWithLarge(9);
        const ids: string[] = [];
        let pages = 0;
        for (let after: PaymentSearch['after'] | null | undefined; after !== null; pages += 1) {
          const search = { merchantId: 'm_1', ...(after && { after }) };
          const { documents, searchedTo } = await readModels.search(search, 100);
          const bytes = documents.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);
          expect(bytes).toBeLessThanOrEqual(262_144);
          ids.push(...documents.map(({ paymentId }) => paymentId));
          after = searchedTo ?? null;
        }
        expect(ids).toEqual(Array.from({ length: 9 }, (_, n) => `pay_${8 - n}`));
        expect(pages).toBe(9);
      });

      test('a payment that is larger than a page has one of its own', async () => {
        const event = largestCreated('pay_large', 'm_1');
        const large = foldReadModel([{ revision: 0, time: timeOf(30), event }]);
        if (large === undefined) throw new Error('no read model');
        await readModels.apply([change(large)], null, 'p1');
        const page = await readModels.search({}, 100);
        expect(page).toMatchObject({ documents: [{ paymentId: 'pay_large' }] });
        expect(Buffer.byteLength(page.documents[0]?.body ?? '')).toBeGreaterThan(262_144);
        expect(page.searchedTo).toBeUndefined();
      });

      test('shows a payment as it was last written', async () => {
        await fill();
        await readModels.apply([change(readModelAt('pay_1', 1))], 'p1', 'p2');
        expect(await found({ status: 'PENDING' })).toEqual(['pay_5', 'pay_4']);
        expect(await found({ text: 'pay_1', status: 'AUTHORIZED' })).toEqual(['pay_1']);
      });
    });
  });
};
