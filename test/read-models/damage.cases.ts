/** What every driver of the read models promises of a document that another program changed (ADR-0121). */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { createRowCheck, rowOf } from '../../shared/read-models/document-row.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import type { ForgedField, ReadModelDriver } from '../support/read-model-drivers.ts';
import { READ_MODEL_SECRETS } from '../support/read-models-here.ts';
import { change, openBeforeEach, readModelAt } from './opened.ts';

const [SECRET] = READ_MODEL_SECRETS;

type Row = ReturnType<typeof rowOf>;

const FORGED: [ForgedField, (row: Row) => string | number][] = [
  ['merchantId', () => 'm_2'],
  ['revision', () => 9],
  ['revision', () => 2 ** 60],
  ['amount', () => 2 ** 60],
  ['status', () => 'VOIDED'],
  ['createdAt', () => '2020-01-01T00:00:00.000Z'],
  ['amount', () => 1],
  ['last4', () => '0000'],
  ['merchantReference', () => 'order-2'],
  ['unresolvedSince', () => '2020-01-01T00:00:00.000Z'],
  ['unresolved', () => '[]'],
  ['body', ({ body }) => body.replace('"amount":2500', '"amount":9500')],
  ['check', (row) => createRowCheck(['another secret']).of(row)],
];

export const damageCases = (driver: ReadModelDriver): void => {
  describe('a document that another program changed', () => {
    let readModels: ReadModels;
    const { reopen, store } = openBeforeEach(driver, (opened) => {
      readModels = opened;
    });
    const reopened = async (): Promise<string[]> => {
      readModels = await reopen();
      const reported: string[] = [];
      readModels.onDamage((paymentId) => reported.push(paymentId));
      return reported;
    };
    const forge = async (field: ForgedField, value: string | number): Promise<string[]> => {
      await store().forge('pay_1', field, value);
      return reopened();
    };

    beforeEach(async () => {
      const both = ['pay_1', 'pay_2'].map((id) => change(readModelAt(id, 3)));
      await readModels.apply(both, null, 'p1');
    });

    test('whichever field it is: none is served, and each is reported once', async () => {
      const forged = FORGED.map(([field, value], n) => ({ field, value, id: `pay_${field}_${n}` }));
      const ids = forged.map(({ id }) => id);
      await readModels.apply(
        ids.map((id) => change(readModelAt(id, 3))),
        'p1',
        'p2',
      );
      for (const { id, field, value } of forged)
        await store().forge(id, field, value(rowOf(readModelAt(id, 3))));
      const reported = await reopened();
      const served: unknown[] = [];
      for (const id of ids) {
        served.push(await readModels.getAny(id), await readModels.load(id));
        served.push(await readModels.get(id, 'm_1'), await readModels.get(id, 'm_2'));
        const { whole, parked } = await readModels.inspect(id);
        expect([id, whole, parked]).toEqual([id, false, false]);
      }
      expect(served.filter((one) => one !== undefined)).toEqual([]);
      const { documents: found } = await readModels.search({}, 100);
      const damaged = found.filter((one) => one.damaged).map(({ paymentId }) => paymentId);
      expect(damaged.sort()).toEqual([...ids].sort());
      expect(found).toHaveLength(ids.length + 2);
      expect(reported.sort()).toEqual([...ids].sort());
      expect(await readModels.checksum()).toMatchObject({ documents: ids.length + 2 });
      expect(await readModels.getAny('pay_2')).toMatchObject({ revision: 3 });
      expect(await readModels.inspect('pay_2')).toMatchObject({ whole: true });
    });

    test('counts until a read finds it right again', async () => {
      const reported = await forge('status', 'VOIDED');
      expect(readModels.damaged()).toEqual([]);
      expect(await readModels.getAny('pay_1')).toBeUndefined();
      await readModels.inspect('pay_1');
      expect([reported, readModels.damaged()]).toEqual([['pay_1'], ['pay_1']]);
      await readModels.apply([change(readModelAt('pay_1', 4))], 'p1', 'p2');
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 4 });
      expect(readModels.damaged()).toEqual([]);
    });

    test('counts no more once a rebuild has switched', async () => {
      await forge('revision', 9);
      await readModels.getAny('pay_1');
      const next = await readModels.openGeneration();
      await next.apply([change(readModelAt('pay_1', 3))], null, 'p1');
      expect(readModels.damaged()).toEqual(['pay_1']);
      await next.serve();
      expect(readModels.damaged()).toEqual([]);
      await next.end();
    });

    test('under the earlier secret of a rotation it is no damage', async () => {
      readModels = await reopen(['the next secret', SECRET]);
      const reported: string[] = [];
      readModels.onDamage((paymentId) => reported.push(paymentId));
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 3 });
      await readModels.apply([change(readModelAt('pay_1', 4))], 'p1', 'p2');
      readModels = await reopen(['the next secret', SECRET]);
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 4 });
      expect(reported).toEqual([]);
    });

    test('the ids of all documents are read in pages', async () => {
      expect(await readModels.idsAfter(null, 1)).toEqual(['pay_1']);
      expect(await readModels.idsAfter('pay_1', 10)).toEqual(['pay_2']);
      expect(await readModels.idsAfter('pay_2', 10)).toEqual([]);
    });
  });
};
