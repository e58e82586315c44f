/** A full disk stops commands and nothing else, and only until there is space again (faults: SQLite). */
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { describeUnless } from '../support/describe-driver.ts';
import { faultyProvider } from '../support/faulty-provider.ts';
import { expectAllKept, expectKept } from '../support/ledger-and-log.ts';
import { type Random, randomOf } from '../support/random.ts';
import { unresolvedIn } from '../support/service-client.ts';
import { PAYMENTS, SECRET, token } from '../support/service-in-process.ts';
import { startService } from '../support/service-processes.ts';
import { noSmallDisk, openSmallDisk, type SmallDisk } from '../support/small-disk.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';
import { newWork, startWriters, type Work } from '../support/writers.ts';

const MEGABYTES = 24;
const WRITERS = 8;
const SETTINGS = {
  JWT_SECRET: SECRET,
  LOG_LEVEL: 'warn',
  RECOVERY_DELAYS_MS: '100,200,400,800,800,800,800,800,800,800,800,800',
};

const readiness = async ({ url }: Work): Promise<{ status: number; text: string }> => {
  const response = await fetch(`${url}/health/ready`);
  return { status: response.status, text: await response.text() };
};

/** Reads go on: the latest payments as they were acknowledged, or further. */
const readSome = async ({ url, token: bearer, acknowledged }: Work): Promise<number> => {
  const some = [...acknowledged].slice(-20);
  for (const [paymentId, known] of some) {
    const headers = { authorization: `Bearer ${bearer}` };
    const response = await fetch(`${url}${PAYMENTS}/${paymentId}`, { headers });
    const body = await response.text();
    expect([response.status, body]).toEqual([200, expect.any(String)]);
    // It may have been worked on since: what was acknowledged is its beginning.
    expectKept({ ...known, touched: true }, body);
  }
  return some.length;
};

/** Fills the disk, sees it refused and shown, gives the room back, sees it taken again. */
const oneRound = async (work: Work, disk: SmallDisk): Promise<number> => {
  const { counts, random } = work;
  await wait(random.between(20, 300));
  const refusedBefore = counts.refused;
  disk.fill();
  await until('commands are refused', () => counts.refused > refusedBefore);
  await until('it is shown', async () => (await readiness(work)).status === 503);
  expect((await readiness(work)).text).toContain('eventStore is down');
  const reads = await readSome(work);
  disk.clear();
  await until('it is ready', async () => (await readiness(work)).status === 200);
  const takenBefore = counts.taken;
  await until('commands are taken', () => counts.taken > takenBefore);
  return reads;
};

/** The rounds in one process, which is ended in good order once nothing is open any more. */
const throughRounds = async (
  rounds: number,
  random: Random,
  disk: SmallDisk,
  providerUrl: string,
): Promise<{ work: Work; reads: number }> => {
  const env = { ...SETTINGS, PROVIDER_URL: providerUrl };
  await using service = await startService({ dataDir: disk.path, env });
  const work = newWork(service, await token('m_test'), random, true);
  const writing = startWriters(work, WRITERS);
  // Told by the wait below, not as an unhandled error.
  writing.catch(() => undefined);
  let reads = 0;
  try {
    for (let round = 0; round < rounds; round += 1) reads += await oneRound(work, disk);
  } finally {
    work.ended = true;
  }
  await writing;
  await until('all is resolved', async () => (await unresolvedIn(service)) === 0);
  expect(service.running()).toBe(true);
  service.kill();
  expect((await service.exited).code).toBe(0);
  return { work, reads };
};

const ROUNDS = 20;
const missing = noSmallDisk();

describeUnless(missing, 'disk full', () => {
  test('commands get 503, reads go on, and commands succeed again without a restart', async () => {
    const random = randomOf();
    const disk = openSmallDisk(MEGABYTES);
    using elsewhere = temporaryFolder();
    const provider = await faultyProvider(join(elsewhere.path, 'provider-ledger.sqlite'));
    try {
      const done = await throughRounds(ROUNDS, random, disk, provider.url).finally(provider.close);
      const { acknowledged, counts } = done.work;
      await expectAllKept(disk.path, acknowledged, elsewhere.path);
      process.stderr.write(
        `disk full: ${ROUNDS} rounds, ${counts.taken} operations ` +
          `acknowledged, ${counts.refused} refused, ${done.reads} reads on a full disk, 0 lost, ` +
          '0 differences to the ledger\n',
      );
    } finally {
      disk.clear();
      disk.remove();
    }
  });
});
