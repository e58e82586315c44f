/** What every driver of the read models promises of a document: its body, its owner, its revision (shared/read-models/port.ts). */
import { describe, expect, test } from '@jest/globals';
import { foldReadModel } from '../../shared/payment/fold.ts';
import { keptBodyOf } from '../../shared/payment/response.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { authorized, created, placed, wholeLife } from '../support/payment-events.ts';
import type { ReadModelDriver } from '../support/read-model-drivers.ts';
import { change, MANY, openBeforeEach, readModelAt } from './opened.ts';

export const documentCases = (driver: ReadModelDriver): void => {
  describe('documents', () => {
    let readModels: ReadModels;
    const { reopen } = openBeforeEach(driver, (opened) => {
      readModels = opened;
    });
    const revisionOf = async (id: string) => (await readModels.getAny(id))?.revision;

    test('new read models are empty and start from the beginning of the log', async () => {
      expect(await readModels.checkpoint()).toBeNull();
      expect(await readModels.getAny('pay_1')).toBeUndefined();
      expect(await readModels.load('pay_1')).toBeUndefined();
      expect(await readModels.unresolved(10)).toEqual([]);
      expect(await readModels.parked(10)).toEqual([]);
    });

    test('gaps §9: the body comes back to the byte, with revision and owner', async () => {
      const details = { merchantReference: 'é \u{1F4B3} "quoted" \u2028 \\ \ud800' };
      const readModel = foldReadModel(placed([created({ details, merchantId: 'm_é' })]));
      if (readModel === undefined) throw new Error('no read model');
      await readModels.apply([change(readModel)], null, 'p1');
      expect(await readModels.getAny('pay_1')).toEqual({
        paymentId: 'pay_1',
        merchantId: 'm_é',
        revision: 0,
        body: keptBodyOf(readModel),
        parked: false,
      });
      const remembered = await readModels.getAny('pay_1');
      readModels = await reopen();
      expect(await readModels.getAny('pay_1')).toEqual(remembered);
    });

    test("each document names its own merchant, and an id's case matters", async () => {
      await readModels.apply(
        [change(readModelAt('pay_a', 1, 'm_1')), change(readModelAt('pay_A', 2, 'm_2'))],
        null,
        'p1',
      );
      expect((await readModels.getAny('pay_a'))?.merchantId).toBe('m_1');
      expect((await readModels.getAny('pay_A'))?.merchantId).toBe('m_2');
      expect(await readModels.getAny("pay_a' OR 1=1 --")).toBeUndefined();
    });

    test("a merchant never sees another merchant's document", async () => {
      await readModels.apply([change(readModelAt('pay_1', 1, 'm_1'))], null, 'p1');
      expect(await readModels.get('pay_1', 'm_1')).toEqual(await readModels.getAny('pay_1'));
      for (const merchantId of ['m_2', 'm_', 'M_1', '', 'm_1 ', '*'])
        expect(await readModels.get('pay_1', merchantId)).toBeUndefined();
      readModels = await reopen();
      expect(await readModels.get('pay_1', 'm_2')).toBeUndefined();
      expect(await readModels.get('pay_1', 'm_1')).toMatchObject({ revision: 1 });
    });

    test('P2: a lower or equal revision is skipped, a higher one is written', async () => {
      await readModels.apply([change(readModelAt('pay_1', 3))], null, 'p1');
      const lower = { ...readModelAt('pay_1', 2), merchantId: 'm_wrong' };
      const equal = { ...readModelAt('pay_1', 3), merchantId: 'm_wrong' };
      await readModels.apply([change(lower), change(equal)], 'p1', 'p2');
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 3, merchantId: 'm_1' });
      expect(await readModels.load('pay_1')).toEqual(readModelAt('pay_1', 3));
      await readModels.apply([change(readModelAt('pay_1', 4))], 'p2', 'p3');
      expect(await revisionOf('pay_1')).toBe(4);
    });

    test('P1: a loaded read model gives the same body and the same next read model as the one written', async () => {
      for (let revision = 0; revision < wholeLife('pay_1').length; revision += 1) {
        const paymentId = `pay_${revision}`;
        const from = await readModels.checkpoint();
        await readModels.apply([change(readModelAt(paymentId, revision))], from, `p${revision}`);
      }
      readModels = await reopen();
      for (let revision = 0; revision < wholeLife('pay_1').length; revision += 1) {
        const loaded = await readModels.load(`pay_${revision}`);
        expect(loaded).toEqual(readModelAt(`pay_${revision}`, revision));
        expect(loaded && keptBodyOf(loaded)).toBe(
          keptBodyOf(readModelAt(`pay_${revision}`, revision)),
        );
      }
    });

    test('more payments than are kept in memory load as they were written', async () => {
      const ids = Array.from({ length: MANY }, (_, n) => `pay_${n}`);
      const first = ids.map((paymentId) => change(readModelAt(paymentId, 0)));
      await readModels.apply(first, null, 'p1');
      for (const paymentId of ['pay_0', 'pay_471', 'pay_472', `pay_${MANY - 1}`])
        expect(await readModels.load(paymentId)).toEqual(readModelAt(paymentId, 0));
      const next = foldReadModel(placed([created({ paymentId: 'pay_0' }), authorized()]));
      if (next === undefined) throw new Error('no read model');
      await readModels.apply([change(next)], 'p1', 'p2');
      expect(await revisionOf('pay_0')).toBe(1);
    });
  });
};
