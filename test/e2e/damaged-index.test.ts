/** A merchant's list after an index of the read models was damaged: it is whole again by itself. */
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { emptyIndex } from '../support/damaged-index.ts';
import { APPROVED, PAYMENTS, payment } from '../support/in-process.ts';
import { metricOf, runCliProcess, type Service, startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const COUNT = 60;
const listed = async (service: Service): Promise<number> =>
  JSON.parse((await service.get(`${PAYMENTS}?limit=100`)).text).payments.length;
const differences = (service: Service) => metricOf(service, 'payments_read_model_differences');

test('a list that a damaged index made short is whole again, and an operator is told', async () => {
  const folder = temporaryFolder();
  const dataDir = folder.path;
  {
    await using first = await startService({ dataDir });
    for (let n = 0; n < COUNT; n += 1) await first.post(PAYMENTS, payment({ number: APPROVED }));
    await until('all are listed', async () => (await listed(first)) === COUNT);
    first.kill();
    expect(await first.exited).toEqual({ code: 0, signal: null });
  }
  emptyIndex(join(dataDir, 'read-models.sqlite'), 'payment_merchant');
  {
    await using second = await startService({ dataDir });
    await until('all are listed again', async () => (await listed(second)) === COUNT);
    expect(second.stdout()).toMatch(
      /"detail":"index payment_merchant has 0 entries, and leads to 0 of 60 documents"/,
    );
    expect(await differences(second)).toBeGreaterThan(0);
    const env = { DATA_DIR: dataDir, PAYMENTS_URL: second.url };
    expect(await runCliProcess(['verify', '--read-models'], env)).toMatchObject({ code: 0 });
    expect(await differences(second)).toBe(0);
  }
  folder.remove();
}, 120_000);
