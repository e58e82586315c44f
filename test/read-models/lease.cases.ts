/** What every driver of the read models promises of the lease (shared/read-models/port.ts). */
import { describe, expect, test } from '@jest/globals';
import type { ReadModels } from '../../shared/read-models/port.ts';
import type { ReadModelDriver } from '../support/read-model-drivers.ts';
import { until } from '../support/until.ts';
import { openBeforeEach } from './opened.ts';

export const leaseCases = (driver: ReadModelDriver): void => {
  describe('the lease', () => {
    let readModels: ReadModels;
    const { openAnother } = openBeforeEach(driver, (opened) => {
      readModels = opened;
    });
    const several = driver.alone === undefined ? test : test.skip;
    const why = driver.alone === undefined ? '' : ` (skipped: ${driver.alone})`;

    test('the lease is taken, renewed and released', async () => {
      expect(await readModels.lease('a', 10_000)).toBeTruthy();
      expect(await readModels.lease('a', 10_000)).toBeTruthy();
      await readModels.release('b');
      await readModels.release('a');
      expect(await readModels.lease('b', 10_000)).toBeTruthy();
    });

    several(
      `of two processes one gets the lease, until it releases it or the lease expires${why}`,
      async () => {
        const other = await openAnother();
        try {
          const asking = [readModels.lease('a', 10_000), other.lease('b', 10_000)];
          const [a, b] = await Promise.all(asking);
          expect([a, b].filter(Boolean)).toHaveLength(1);
          const [first, second] = a ? ['a', 'b'] : ['b', 'a'];
          expect(await other.lease(second as string, 10_000)).toBe(false);
          await other.release(second as string);
          expect(await readModels.lease(second as string, 10_000)).toBe(false);
          await readModels.release(first as string);
          expect(await other.lease(second as string, 300)).toBe('free');
          expect(await readModels.lease(first as string, 300)).toBe(false);
          const taken = () => readModels.lease(first as string, 10_000);
          let how: Awaited<ReturnType<typeof taken>> = false;
          await until('the lease has run out', async () => {
            how = await taken();
            return how !== false;
          });
          expect(how).toBe('held');
          expect(await other.lease(second as string, 10_000)).toBe(false);
        } finally {
          await other.close();
        }
      },
    );
  });
};
