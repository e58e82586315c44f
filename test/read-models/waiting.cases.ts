/** What every driver of the read models promises of a wait for a revision (shared/read-models/port.ts). */
import { describe, expect, test } from '@jest/globals';
import { CheckpointMoved, ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import type { ReadModelDriver } from '../support/read-model-drivers.ts';
import { HANGS_MS } from '../support/time-bounds.ts';
import { change, openBeforeEach, readModelAt } from './opened.ts';

export const waitingCases = (driver: ReadModelDriver): void => {
  describe('waiting for a revision', () => {
    let readModels: ReadModels;
    const { openAnother } = openBeforeEach(driver, (opened) => {
      readModels = opened;
    });
    const several = driver.alone === undefined ? test : test.skip;
    const why = driver.alone === undefined ? '' : ` (skipped: ${driver.alone})`;

    several(`a wait ends for a document that another process wrote${why}`, async () => {
      const other = await openAnother();
      try {
        const waits = Array.from({ length: 50 }, (_, n) =>
          readModels.waitForRevision(`pay_${n}`, 1, HANGS_MS),
        );
        const changes = Array.from({ length: 50 }, (_, n) => change(readModelAt(`pay_${n}`, 2)));
        await other.apply(changes, null, 'p1');
        expect((await Promise.all(waits)).every(Boolean)).toBe(true);
        await expect(readModels.apply([], null, 'p2')).rejects.toThrow(CheckpointMoved);
      } finally {
        await other.close();
      }
    });

    test('gaps §9: every wait for a document ends as soon as it is written', async () => {
      await readModels.apply([change(readModelAt('pay_1', 0))], null, 'p1');
      expect(await readModels.waitForRevision('pay_1', 0, HANGS_MS)).toBe(true);
      const waits = [
        readModels.waitForRevision('pay_1', 1, HANGS_MS),
        readModels.waitForRevision('pay_1', 2, HANGS_MS),
        readModels.waitForRevision('pay_1', 2, HANGS_MS),
        readModels.waitForRevision('pay_2', 0, HANGS_MS),
      ];
      await readModels.apply(
        [change(readModelAt('pay_1', 2)), change(readModelAt('pay_2', 0))],
        'p1',
        'p2',
      );
      expect(await Promise.all(waits)).toEqual([true, true, true, true]);
    });

    test('a wait in vain gives false after its time, and for a revision still to come', async () => {
      const waits = [
        readModels.waitForRevision('pay_1', 3, 30),
        readModels.waitForRevision('pay_2', 0, 30),
        readModels.waitForRevision('pay_1', 9, 0),
      ];
      await readModels.apply([change(readModelAt('pay_1', 2))], null, 'p1');
      expect(await Promise.all(waits)).toEqual([false, false, false]);
    });

    test('closing ends the waits with false, and later calls throw ReadModelsUnavailable', async () => {
      const wait = readModels.waitForRevision('pay_1', 0, HANGS_MS);
      await Promise.resolve();
      await readModels.close();
      expect(await wait).toBe(false);
      expect(await readModels.waitForRevision('pay_1', 0, HANGS_MS)).toBe(false);
      await expect(readModels.getAny('pay_1')).rejects.toThrow(ReadModelsUnavailable);
      await expect(readModels.checkpoint()).rejects.toThrow(ReadModelsUnavailable);
      await expect(readModels.apply([], null, null)).rejects.toThrow(ReadModelsUnavailable);
    });
  });
};
