/** What every driver of the read models promises of a generation that is filled beside the served one (shared/read-models/port.ts). */
import { describe, expect, test } from '@jest/globals';
import { RebuildRunning } from '../../shared/read-models/errors.ts';
import type { NextGeneration, ReadModels } from '../../shared/read-models/port.ts';
import type { ReadModelDriver } from '../support/read-model-drivers.ts';
import { until } from '../support/until.ts';
import { change, openBeforeEach, parking, readModelAt } from './opened.ts';

export const generationCases = (driver: ReadModelDriver): void => {
  describe('a generation filled beside the served one', () => {
    let readModels: ReadModels;
    const { reopen } = openBeforeEach(driver, (opened) => {
      readModels = opened;
    });
    const revisionOf = async (id: string) => (await readModels.getAny(id))?.revision;

    const fill = async (into: Pick<ReadModels, 'apply'>, revision: number, to = 'p1') => {
      const payments = ['pay_1', 'pay_2', 'pay_3'].map((id) => change(readModelAt(id, revision)));
      await into.apply([...payments, parking('pay_9', 0)], null, to);
    };

    test('is empty, changes nothing that is read, and is served at once and whole', async () => {
      await fill(readModels, 1);
      const next = await readModels.openGeneration();
      expect(await next.checkpoint()).toBeNull();
      expect(await next.load('pay_1')).toBeUndefined();
      expect(await next.parked(10)).toEqual([]);
      await next.apply(
        [change(readModelAt('pay_1', 5)), change(readModelAt('pay_4', 0))],
        null,
        'p8',
      );
      await next.apply([parking('pay_4', 1)], 'p8', 'p9');
      expect(await revisionOf('pay_1')).toBe(1);
      expect(await readModels.getAny('pay_4')).toBeUndefined();
      expect(await readModels.checkpoint()).toBe('p1');
      expect(await readModels.parked(10)).toHaveLength(1);
      expect(await readModels.unresolved(10)).toEqual([]);
      await next.serve();
      expect(await revisionOf('pay_1')).toBe(5);
      await next.end();
      expect(await revisionOf('pay_1')).toBe(5);
      expect(await readModels.load('pay_1')).toEqual(readModelAt('pay_1', 5));
      expect(await readModels.getAny('pay_4')).toMatchObject({ revision: 0, parked: true });
      expect(await readModels.getAny('pay_2')).toBeUndefined();
      expect(await readModels.checkpoint()).toBe('p9');
      expect(await readModels.parked(10)).toMatchObject([{ paymentId: 'pay_4' }]);
      await readModels.apply([change(readModelAt('pay_4', 1))], 'p9', 'p10');
      expect(await readModels.getAny('pay_4')).toMatchObject({ revision: 1, parked: false });
      readModels = await reopen();
      expect(await readModels.checkpoint()).toBe('p10');
      expect(await revisionOf('pay_1')).toBe(5);
    });

    test('takes what is applied to the served one not along, and that goes on', async () => {
      await fill(readModels, 1);
      const next = await readModels.openGeneration();
      await readModels.apply([change(readModelAt('pay_1', 2))], 'p1', 'p2');
      expect(await revisionOf('pay_1')).toBe(2);
      expect(await next.load('pay_1')).toBeUndefined();
      await next.end();
      expect(await revisionOf('pay_1')).toBe(2);
      expect(await readModels.checkpoint()).toBe('p2');
    });

    test('a second generation is refused until the first has ended', async () => {
      for (const served of [false, true]) {
        const next = await readModels.openGeneration();
        await expect(readModels.openGeneration()).rejects.toThrow(RebuildRunning);
        await next.apply([], null, `p_${served}`);
        if (served) await next.serve();
        await expect(readModels.openGeneration()).rejects.toThrow(RebuildRunning);
        await next.end();
      }
      const next = await readModels.openGeneration();
      expect(await next.checkpoint()).toBeNull();
      await next.end();
      await next.end();
      expect(await readModels.checkpoint()).toBe('p_true');
    });

    test('of a process that was killed: the old one is served, the next begins empty', async () => {
      await fill(readModels, 1);
      const killed = await readModels.openGeneration();
      await fill(killed, 5, 'p9');
      readModels = await reopen();
      expect(await revisionOf('pay_1')).toBe(1);
      expect(await readModels.checkpoint()).toBe('p1');
      let next: NextGeneration | undefined;
      await until('it may be opened', async () => {
        next = await readModels.openGeneration().catch(() => undefined);
        return next !== undefined;
      });
      expect(await next?.checkpoint()).toBeNull();
      expect(await next?.load('pay_1')).toBeUndefined();
      await next?.end();
      expect(await revisionOf('pay_1')).toBe(1);
    });

    test('has the checksum of the old one exactly when its documents are the same', async () => {
      const empty = await readModels.checksum();
      expect(empty.documents).toBe(0);
      await fill(readModels, 1);
      const sum = await readModels.checksum();
      expect(sum).toMatchObject({ documents: 3, hash: expect.stringMatching(/^[0-9a-f]{64}$/) });
      const next = await readModels.openGeneration();
      expect(await next.checksum()).toEqual(empty);
      for (const id of ['pay_3', 'pay_1', 'pay_2']) {
        expect(await next.checksum()).not.toEqual(sum);
        await next.apply([change(readModelAt(id, 1))], await next.checkpoint(), id);
      }
      expect(await next.checksum()).toEqual(sum);
      await next.apply([change(readModelAt('pay_1', 2))], 'pay_2', 'p9');
      expect(await next.checksum()).not.toEqual(sum);
      await next.end();
    });
  });
};
