/** What every driver of the read models promises of the list of unresolved payments (shared/read-models/port.ts). */
import { describe, expect, test } from '@jest/globals';
import { foldReadModel } from '../../shared/payment/fold.ts';
import type { PaymentReadModel } from '../../shared/payment/state.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { created, placed, refundRequested, timeOf, wholeLife } from '../support/payment-events.ts';
import type { ReadModelDriver } from '../support/read-model-drivers.ts';
import { change, openBeforeEach, readModelAt } from './opened.ts';

export const unresolvedCases = (driver: ReadModelDriver): void => {
  describe('unresolved payments', () => {
    let readModels: ReadModels;
    openBeforeEach(driver, (opened) => {
      readModels = opened;
    });

    test('gaps §7: payments with an unresolved operation are listed, oldest first', async () => {
      const open = (paymentId: string, n: number): PaymentReadModel => {
        const event = created({ paymentId });
        const readModel = foldReadModel([{ revision: 0, time: timeOf(n), event }]);
        if (readModel === undefined) throw new Error('no read model');
        return readModel;
      };
      const batch = [open('pay_b', 7), open('pay_a', 9), open('pay_c', 8), readModelAt('pay_d', 5)];
      await readModels.apply(batch.map(change), null, 'p1');
      expect(await readModels.unresolved(10)).toEqual([
        { paymentId: 'pay_b', merchantId: 'm_1', since: timeOf(7) },
        { paymentId: 'pay_c', merchantId: 'm_1', since: timeOf(8) },
        { paymentId: 'pay_a', merchantId: 'm_1', since: timeOf(9) },
      ]);
      expect(await readModels.unresolved(2)).toHaveLength(2);
      await readModels.apply([change(readModelAt('pay_b', 1))], 'p1', 'p2');
      expect((await readModels.unresolved(10)).map((u) => u.paymentId)).toEqual(['pay_c', 'pay_a']);
    });

    test('of two unresolved operations of a payment the older one counts', async () => {
      const events = placed([
        ...wholeLife('pay_1').slice(0, 4),
        refundRequested({ operationId: 'a', amount: 100 }),
        refundRequested({ operationId: 'b', amount: 100 }),
      ]);
      const readModel = foldReadModel(events);
      if (readModel === undefined) throw new Error('no read model');
      await readModels.apply([change(readModel)], null, 'p1');
      expect(await readModels.unresolved(1)).toMatchObject([{ since: timeOf(4) }]);
      expect((await readModels.load('pay_1'))?.unresolved).toHaveLength(2);
    });
  });
};
