/**
 * A disk whose fsync fails under merchants at work. After a failed fsync it is not known what is on the
 * disk, and a second one may lie: the process ends, and the next one finds every acknowledged event.
 */
import { expect } from '@jest/globals';
import type { FailingDisk } from './failing-disk.ts';
import { SECRET, token } from './in-process.ts';
import { expectAllKept } from './kill-rounds.ts';
import { openPaymentsIn } from './ledger-and-log.ts';
import { newSeed, randomOf } from './random.ts';
import { newWork, type Work, workTogether } from './rejected-writers.ts';
import { metricOf, type Service, startService } from './service.ts';
import { startServiceHere } from './service-here.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { until } from './until.ts';

const TAKEN_BEFORE = 100;
const ENDED_MS_MAX = 60_000;
const RESOLVED_MS_MAX = 60_000;
const SETTINGS = { JWT_SECRET: SECRET, LOG_LEVEL: 'warn' };

export type FailedSync = {
  /** How the path of the file ends. */
  file: string;
  writers: number;
  /** How many commands may still be answered with 200 once the disk fails. */
  takenAfterMax: number;
};

/** Works until the process has ended by itself, which only the disk may have made it do. */
const untilItEnds = async (
  service: Service,
  disk: FailingDisk,
  { writers, takenAfterMax }: FailedSync,
): Promise<Work> => {
  const work = newWork(service, await token('m_test'), randomOf(newSeed()));
  // It ends with the service; an answer that is none of ours would leave the service running.
  const working = workTogether(work, writers).catch(() => undefined);
  await until('it is at work', () => work.counts.taken >= TAKEN_BEFORE);
  disk.fail();
  const takenBefore = work.counts.taken;
  await until('it has ended', () => !service.running(), ENDED_MS_MAX);
  work.ended = true;
  await working;
  expect(work.counts.taken - takenBefore).toBeLessThanOrEqual(takenAfterMax);
  return work;
};

const resolved = async (dataDir: string): Promise<void> => {
  await using again = await startServiceHere({ dataDir, env: SETTINGS });
  // The read models first: what they do not show yet may be open.
  const behind = () => metricOf(again, 'payments_projection_lag_events');
  await until('the read models are there', async () => (await behind()) === 0, RESOLVED_MS_MAX);
  await until('all is resolved', () => openPaymentsIn(dataDir).length === 0, RESOLVED_MS_MAX);
  await again[Symbol.asyncDispose]();
};

/** Fails the fsync of one file; expects the end of the process, one line of it, and no loss. */
export const surviveFailedSync = async (disk: FailingDisk, round: FailedSync): Promise<void> => {
  const { file } = round;
  const folder = temporaryFolder();
  try {
    const env = { ...SETTINGS, ...disk.envOf(file) };
    await using service = await startService({ dataDir: folder.path, env });
    const work = await untilItEnds(service, disk, round);
    expect((await service.exited).code).toBe(1);
    expect(service.stderr()).toMatch(
      /^payments: DATA_DIR: \S+events\.sqlite: [^\n]*SQLite error 1034[^\n]*$/m,
    );
    disk.mend();
    await resolved(folder.path);
    await expectAllKept(folder.path, work.acknowledged);
    process.stderr.write(
      `failed fsync of ${file}: seed ${work.random.seed}, ${work.counts.taken} operations ` +
        'acknowledged, the process ended, 0 lost, 0 differences to the ledger\n',
    );
  } finally {
    disk.mend();
    folder.remove();
  }
};
