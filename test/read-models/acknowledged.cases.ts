/**
 * What every driver of the read models promises of a batch that it has acknowledged (shared/read-models/port.ts):
 * no reader is shown less of it again, whatever has left memory and whichever process is killed.
 */
import { describe, expect, test } from '@jest/globals';
import { foldReadModel } from '../../shared/payment/fold.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { created, placed } from '../support/payment-events.ts';
import { randomOf } from '../support/random.ts';
import type { ReadModelDriver } from '../support/read-model-drivers.ts';
import { HANGS_MS } from '../support/time-bounds.ts';
import { change, MANY, openBeforeEach, readModelAt } from './opened.ts';

/** Of so many payments in turn. */
const EVENTS = 20;
const PAYMENTS = 5;

export const acknowledgedCases = (driver: ReadModelDriver): void => {
  describe('what was acknowledged', () => {
    let readModels: ReadModels;
    const { reopen, store } = openBeforeEach(driver, (opened) => {
      readModels = opened;
    });

    test('P2: a late older one is skipped when the newer has left memory', async () => {
      const newest = readModelAt('pay_late', 4);
      const others = Array.from({ length: MANY }, (_, n) => change(readModelAt(`pay_${n}`, 0)));
      await readModels.apply([change(newest)], null, 'p1');
      await readModels.apply(others, 'p1', 'p2');
      const late = { ...readModelAt('pay_late', 2), merchantId: 'm_wrong' };
      await readModels.apply([change(late)], 'p2', 'p3');
      expect(await readModels.getAny('pay_late')).toMatchObject({ revision: 4, merchantId: 'm_1' });
      expect(await readModels.load('pay_late')).toEqual(newest);
      expect(await readModels.waitForRevision('pay_late', 4, HANGS_MS)).toBe(true);
    });

    test('a rebuild puts right what was wrong, whatever revision it had', async () => {
      const wrong = foldReadModel(placed([created({ amount: 9900 })]));
      if (wrong === undefined) throw new Error('no read model');
      const ofAnother = { ...readModelAt('pay_2', 5), merchantId: 'm_wrong' };
      await readModels.apply([change({ ...wrong, revision: 7 }), change(ofAnother)], null, 'p1');
      const next = await readModels.openGeneration();
      const right = ['pay_1', 'pay_2'].map((paymentId) => change(readModelAt(paymentId, 3)));
      await next.apply(right, null, 'p1');
      // The wrong one is written again, and read, while the rebuild runs.
      await readModels.apply([change({ ...wrong, revision: 8 })], 'p1', 'p1');
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 8 });
      await next.serve();
      await next.end();
      const expectRight = async () => {
        expect(await readModels.load('pay_1')).toEqual(readModelAt('pay_1', 3));
        expect(await readModels.get('pay_2', 'm_1')).toMatchObject({ revision: 3 });
        expect(await readModels.get('pay_2', 'm_wrong')).toBeUndefined();
        const { documents } = await readModels.search({}, 9);
        expect(documents.map(({ revision }) => revision)).toEqual([3, 3]);
      };
      await expectRight();
      readModels = await reopen();
      await expectRight();
    });

    test(`P1: what a killed process leaves is whole up to its checkpoint`, async () => {
      const random = randomOf();
      let from: string | null = null;
      for (let at = 0; at < EVENTS; at += 1) {
        const readModel = readModelAt(`pay_${at % PAYMENTS}`, Math.floor(at / PAYMENTS));
        await readModels.apply([change(readModel)], from, `${at}`);
        from = `${at}`;
        if (random.chance(0.85)) continue;
        const left = await store().openLeft();
        try {
          const upTo = Number((await left.checkpoint()) ?? -1);
          for (let n = 0; n < Math.min(PAYMENTS, upTo + 1); n += 1) {
            const { revision = -1 } = (await left.getAny(`pay_${n}`)) ?? {};
            expect(revision).toBeGreaterThanOrEqual(Math.floor((upTo - n) / PAYMENTS));
          }
        } finally {
          await left.close();
        }
      }
      readModels = await reopen();
      expect(await readModels.checkpoint()).toBe(`${EVENTS - 1}`);
    });
  });
};
