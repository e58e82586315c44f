/** What every driver of the read models promises of a parked payment (shared/read-models/port.ts). */
import { describe, expect, test } from '@jest/globals';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { timeOf } from '../support/payment-events.ts';
import type { ReadModelDriver } from '../support/read-model-drivers.ts';
import { change, openBeforeEach, parking, readModelAt } from './opened.ts';

export const parkingCases = (driver: ReadModelDriver): void => {
  describe('parked payments', () => {
    let readModels: ReadModels;
    openBeforeEach(driver, (opened) => {
      readModels = opened;
    });

    test('P5: a parked payment keeps its document, marked, and is listed oldest first', async () => {
      await readModels.apply([change(readModelAt('pay_1', 1)), parking('pay_1', 2, 5)], null, 'p1');
      await readModels.apply([parking('pay_0', 0, 4)], 'p1', 'p2');
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 1, parked: true });
      expect(await readModels.getAny('pay_0')).toBeUndefined();
      expect(await readModels.parked(10)).toEqual([
        { paymentId: 'pay_0', revision: 0, reason: 'cannot read 0', since: timeOf(4) },
        { paymentId: 'pay_1', revision: 2, reason: 'cannot read 2', since: timeOf(5) },
      ]);
      expect(await readModels.parked(1)).toHaveLength(1);
    });

    test('the list goes on after a place in it, also among payments parked at one time', async () => {
      const ids = ['pay_3', 'pay_1', 'pay_4', 'pay_2'];
      const parkings = ids.map((id) => parking(id, 2, 5));
      await readModels.apply([parking('pay_9', 0, 4), ...parkings], null, 'p1');
      const first = await readModels.parked(3);
      const rest = await readModels.parked(10, first.at(-1));
      expect([...first, ...rest].map(({ paymentId }) => paymentId)).toEqual([
        ...['pay_9', 'pay_1', 'pay_2', 'pay_3', 'pay_4'],
      ]);
      expect(await readModels.parked(10, rest.at(-1))).toEqual([]);
    });

    test('a payment parked again at another revision keeps the time of the first', async () => {
      await readModels.apply([parking('pay_1', 2, 5)], null, 'p1');
      await readModels.apply([parking('pay_1', 4, 9)], 'p1', 'p1');
      expect(await readModels.parked(10)).toEqual([
        { paymentId: 'pay_1', revision: 4, reason: 'cannot read 4', since: timeOf(5) },
      ]);
    });

    test('a read model at the parked revision or beyond ends the parking', async () => {
      await readModels.apply([change(readModelAt('pay_1', 1)), parking('pay_1', 3)], null, 'p1');
      await readModels.apply([change(readModelAt('pay_1', 2))], 'p1', 'p1');
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 2, parked: true });
      await readModels.apply([change(readModelAt('pay_1', 3))], 'p1', 'p1');
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 3, parked: false });
      expect(await readModels.parked(10)).toEqual([]);
    });

    test('an unparking ends the parking of a payment that no event follows', async () => {
      await readModels.apply([change(readModelAt('pay_1', 3)), parking('pay_1', 4)], null, 'p1');
      await readModels.apply([parking('pay_2', 0)], 'p1', 'p2');
      const unparked = ['pay_1', 'pay_2'].map(
        (paymentId) => ({ kind: 'unpark', paymentId }) as const,
      );
      await readModels.apply([...unparked, parking('pay_2', 1)], 'p2', 'p2');
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 3, parked: false });
      expect(await readModels.parked(10)).toMatchObject([{ paymentId: 'pay_2', revision: 1 }]);
    });

    test('P2: parking below the document is skipped', async () => {
      await readModels.apply([change(readModelAt('pay_1', 3))], null, 'p1');
      await readModels.apply([parking('pay_1', 3), parking('pay_1', 1)], 'p1', 'p2');
      expect(await readModels.getAny('pay_1')).toMatchObject({ parked: false });
      expect(await readModels.parked(10)).toEqual([]);
    });
  });
};
