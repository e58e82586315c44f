/** A merchant's list after an index of the read models was damaged: it is whole again by itself. */
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { runCli } from '../support/cli.ts';
import { emptyIndex } from '../support/damaged-index.ts';
import { openInProcess, PAYMENTS, SECRET } from '../support/in-process.ts';
import { metricOf } from '../support/service.ts';
import { until } from '../support/until.ts';

const COUNT = 60;

test('a list that a damaged index made short is whole again, and an operator is told', async () => {
  await using service = await openInProcess();
  const listed = async (): Promise<number> =>
    JSON.parse((await service.ask('GET', `${PAYMENTS}?limit=100`)).text).payments.length;
  await Promise.all(Array.from({ length: COUNT }, () => service.create()));
  await until('all are listed', async () => (await listed()) === COUNT);
  await service.restart((folder) =>
    emptyIndex(join(folder, 'read-models.sqlite'), 'payment_merchant'),
  );
  await until('all are listed again', async () => (await listed()) === COUNT);
  const url = await service.listen();
  const differences = () => metricOf({ url }, 'payments_read_model_differences');
  expect(await differences()).toBeGreaterThan(0);
  const env = { DATA_DIR: service.dataDir, PAYMENTS_URL: url, JWT_SECRET: SECRET };
  expect(await runCli(['verify', '--read-models'], env)).toMatchObject({ code: 0 });
  expect(await differences()).toBe(0);
});
