/** What every driver of the read models promises of a batch and its checkpoint (shared/read-models/port.ts). */
import { describe, expect, test } from '@jest/globals';
import { CheckpointMoved } from '../../shared/read-models/errors.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import type { ReadModelDriver } from '../support/read-model-drivers.ts';
import { change, openBeforeEach, parking, readModelAt } from './opened.ts';

export const checkpointCases = (driver: ReadModelDriver): void => {
  describe('batches and their checkpoint', () => {
    let readModels: ReadModels;
    const { reopen } = openBeforeEach(driver, (opened) => {
      readModels = opened;
    });
    const revisionOf = async (id: string) => (await readModels.getAny(id))?.revision;

    test('the same batch again changes nothing', async () => {
      const batch = [
        change(readModelAt('pay_1', 1)),
        parking('pay_2', 4),
        change(readModelAt('pay_3', 5)),
      ];
      await readModels.apply(batch, null, 'p1');
      const before = [
        await readModels.getAny('pay_1'),
        await readModels.getAny('pay_3'),
        await readModels.parked(9),
      ];
      await readModels.apply(batch, 'p1', 'p1');
      expect([
        await readModels.getAny('pay_1'),
        await readModels.getAny('pay_3'),
        await readModels.parked(9),
      ]).toEqual(before);
    });

    test('a writer whose checkpoint is not the stored one is refused and writes nothing', async () => {
      await readModels.apply([change(readModelAt('pay_1', 0))], null, 'p1');
      for (const from of [null, 'p0', 'p2']) {
        await expect(
          readModels.apply([change(readModelAt('pay_1', 1))], from, 'p9'),
        ).rejects.toThrow(CheckpointMoved);
        await expect(
          readModels.apply([change(readModelAt('pay_2', 1))], from, from),
        ).rejects.toThrow(CheckpointMoved);
      }
      expect(await readModels.checkpoint()).toBe('p1');
      expect(await readModels.getAny('pay_2')).toBeUndefined();
      expect(await readModels.load('pay_1')).toEqual(readModelAt('pay_1', 0));
    });

    test('the hash given with the checkpoint stays beside it, and is of that place alone', async () => {
      expect(await readModels.checkpointHash('p1')).toBeNull();
      await readModels.apply([change(readModelAt('pay_1', 0))], null, 'p1', 'hash of p1');
      expect(await readModels.checkpointHash('p1')).toBe('hash of p1');
      await readModels.apply([parking('pay_2', 0)], 'p1', 'p1');
      readModels = await reopen();
      expect(await readModels.checkpointHash('p1')).toBe('hash of p1');
      await expect(readModels.apply([], null, 'p2', 'hash of p2')).rejects.toThrow(CheckpointMoved);
      expect(await readModels.checkpointHash('p1')).toBe('hash of p1');
      await readModels.apply([], 'p1', 'p2', 'hash of p2');
      expect([
        await readModels.checkpointHash('p1'),
        await readModels.checkpointHash('p2'),
      ]).toEqual([null, 'hash of p2']);
      await readModels.apply([], 'p2', 'p3');
      expect(await readModels.checkpointHash('p3')).toBeNull();
    });

    test('a batch that fails leaves documents, checkpoint and the next load as they were', async () => {
      await readModels.apply([change(readModelAt('pay_1', 0))], null, 'p1');
      const broken = { ...readModelAt('pay_2', 0), merchantId: null as unknown as string };
      const batch = [change(readModelAt('pay_1', 1)), parking('pay_3', 0), change(broken)];
      await expect(readModels.apply(batch, 'p1', 'p2')).rejects.toThrow();
      expect(await readModels.checkpoint()).toBe('p1');
      expect(await revisionOf('pay_1')).toBe(0);
      expect(await readModels.parked(9)).toEqual([]);
      expect(await readModels.load('pay_1')).toEqual(readModelAt('pay_1', 0));
      expect(await readModels.waitForRevision('pay_1', 1, 1)).toBe(false);
      await readModels.apply([change(readModelAt('pay_1', 1))], 'p1', 'p2');
      expect(await revisionOf('pay_1')).toBe(1);
    });

    test('documents, checkpoint and parked payments are there after the next start', async () => {
      await readModels.apply([change(readModelAt('pay_1', 4)), parking('pay_2', 3)], null, 'p7');
      const before = await readModels.getAny('pay_1');
      readModels = await reopen();
      expect(await readModels.checkpoint()).toBe('p7');
      expect(await readModels.getAny('pay_1')).toEqual(before);
      expect(await readModels.load('pay_1')).toEqual(readModelAt('pay_1', 4));
      expect(await readModels.parked(10)).toHaveLength(1);
    });
  });
};
