/** An event log that takes no events is shown as not writable, until it takes them again. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from '@jest/globals';
import { describeUnless } from '../support/describe-driver.ts';
import { shareOf } from '../support/long-run-share.ts';
import { type Client, metricOf } from '../support/service-client.ts';
import { APPROVED, PAYMENTS, payment, startInProcess } from '../support/service-in-process.ts';
import { startService } from '../support/service-processes.ts';
import { noSmallDisk, openSmallDisk } from '../support/small-disk.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const create = async (service: Client): Promise<number> =>
  (await service.post(PAYMENTS, payment({ number: APPROVED }))).status;
const readiness = async (service: Client) => {
  const { status, text } = await service.get('/health/ready');
  return { status, ...JSON.parse(text).engines.eventStore };
};
const failures = (service: { url: string }) => metricOf(service, 'payments_append_failures_total');

/** A create was rejected: so it is shown at each look. */
const expectNotWritable = async (
  service: Client & { url: string },
  reason: string,
): Promise<void> => {
  const shown = { status: 503, state: 'down', reason: expect.stringContaining(reason) };
  for (let looks = 0; looks < 5; looks += 1) expect(await readiness(service)).toMatchObject(shown);
  expect(await failures(service)).toBeGreaterThan(0);
};

const missing = noSmallDisk();

describeUnless(missing, 'a full disk', () => {
  test.each(shareOf([3, 0], 1))(
    'with room for %i pages is not ready until there is room',
    async (pages) => {
      const disk = openSmallDisk(24);
      {
        await using service = await startService({ dataDir: disk.path });
        expect(await create(service)).toBe(200);
        expect(await failures(service)).toBe(0);
        disk.fill(pages);
        expect(await create(service)).toBe(503);
        await expectNotWritable(service, 'not writable: database or disk is full');
        disk.clear();
        await until('it is ready', async () => (await readiness(service)).status === 200);
        await until('it takes payments', async () => (await create(service)) === 200);
      }
      disk.remove();
    },
  );
});

test('a log that another program has locked is not ready until it lets go', async () => {
  const folder = temporaryFolder();
  {
    await using service = await startInProcess({ dataDir: folder.path });
    expect(await create(service)).toBe(200);
    const other = new DatabaseSync(join(folder.path, 'events.sqlite'));
    other.exec('BEGIN IMMEDIATE');
    expect(await create(service)).toBe(503);
    await expectNotWritable(service, 'not writable: database is locked');
    other.exec('ROLLBACK');
    other.close();
    await until('it is ready', async () => (await readiness(service)).status === 200);
    expect(await create(service)).toBe(200);
  }
  folder.remove();
});
