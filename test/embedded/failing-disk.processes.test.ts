/** A failed fsync ends the process, and loses nothing that was acknowledged (faults: SQLite). */
import { afterAll, expect, test } from '@jest/globals';
import { describeUnless } from '../support/describe-driver.ts';
import { type FailingDisk, noFailingDisk, openFailingDisk } from '../support/failing-disk.ts';
import { expectAllKept, openPaymentsIn } from '../support/ledger-and-log.ts';
import { shareOf } from '../support/long-run-share.ts';
import { randomOf } from '../support/random.ts';
import { metricOf } from '../support/service-client.ts';
import { SECRET, startInProcess, token } from '../support/service-in-process.ts';
import { type Service, startService } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';
import { newWork, startWriters, type Work } from '../support/writers.ts';

const TAKEN_BEFORE = 100;
const SETTINGS = { JWT_SECRET: SECRET, LOG_LEVEL: 'warn' };

const WRITERS = 16;
const ROUNDS = [
  // Commands whose commit was complete may still get their response; no later one may.
  { when: 'at a commit', file: 'events.sqlite-wal', takenAfterMax: 2 * WRITERS },
  // A checkpoint comes once the write-ahead log has grown to 8 MB; the commits before it succeed.
  { when: 'at a checkpoint', file: 'events.sqlite', takenAfterMax: Number.POSITIVE_INFINITY },
];

/** Works until the process has ended by itself, which only the disk may have made it do. */
const untilItEnds = async (
  service: Service,
  disk: FailingDisk,
  takenAfterMax: number,
): Promise<Work> => {
  const work = newWork(service, await token('m_test'), randomOf(), true);
  // It ends with the service; an answer that is none of ours would leave the service running.
  const working = startWriters(work, WRITERS).catch(() => undefined);
  await until('it is at work', () => work.counts.taken >= TAKEN_BEFORE);
  disk.fail();
  const takenBefore = work.counts.taken;
  await until('it has ended', () => !service.running());
  work.ended = true;
  await working;
  expect(work.counts.taken - takenBefore).toBeLessThanOrEqual(takenAfterMax);
  return work;
};

const resolved = async (dataDir: string): Promise<void> => {
  await using again = await startInProcess({ dataDir, env: SETTINGS });
  // The read models first: what they do not show yet may be open.
  const behind = () => metricOf(again, 'payments_projection_lag_events');
  await until('the read models are there', async () => (await behind()) === 0);
  await until('all is resolved', () => openPaymentsIn(dataDir).length === 0);
  await again[Symbol.asyncDispose]();
};

const missing = noFailingDisk();

describeUnless(missing, 'a failed fsync', () => {
  const disk = missing === undefined ? openFailingDisk() : undefined;
  afterAll(() => disk?.remove());

  test.each(shareOf(ROUNDS, 1))(
    '$when ends the process with one line, and nothing acknowledged is lost',
    async (round) => {
      if (disk === undefined) throw new Error(missing);
      using folder = temporaryFolder();
      const env = { ...SETTINGS, ...disk.envOf(round.file) };
      try {
        await using service = await startService({ dataDir: folder.path, env });
        const work = await untilItEnds(service, disk, round.takenAfterMax);
        expect((await service.exited).code).toBe(1);
        expect(service.stderr()).toMatch(
          /^payments: DATA_DIR: \S+events\.sqlite: [^\n]*SQLite error 1034[^\n]*$/m,
        );
        disk.mend();
        await resolved(folder.path);
        await expectAllKept(folder.path, work.acknowledged);
        process.stderr.write(
          `failed fsync of ${round.file}: ${work.counts.taken} operations ` +
            'acknowledged, the process ended, 0 lost, 0 differences to the ledger\n',
        );
      } finally {
        disk.mend();
      }
    },
  );
});
