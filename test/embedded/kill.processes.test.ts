/**
 * `kill -9` under load, again and again on one data folder. After each restart every payment that
 * was acknowledged is asked for; after the last one ledger and log are read to the end.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { expectAllKept, expectKept, openPaymentsIn } from '../support/ledger-and-log.ts';
import { timesOf } from '../support/long-run-share.ts';
import { randomOf } from '../support/random.ts';
import { startInProcess } from '../support/service-in-process.ts';
import { type Service, startService } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { STARTS_MS_MAX } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';
import { type Acknowledged, newWork, startWriters, type Work } from '../support/writers.ts';

const WRITERS = 16;
/** Where every core is busy elsewhere: in comparison with the first start, of an empty folder. */
const TIMES_FIRST_MAX = 3;

const getBody = async (
  { url, token }: Pick<Work, 'url' | 'token'>,
  paymentId: string,
): Promise<string> => {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/api/v1/payments/${paymentId}`, { headers });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`GET ${paymentId}: ${response.status} ${body}`);
  return body;
};

/** Asks for each payment; one that was touched is from then on as the answer says. */
const expectAllServed = async (
  work: Pick<Work, 'url' | 'token' | 'acknowledged'>,
): Promise<void> => {
  const left = [...work.acknowledged].values();
  const ask = async (): Promise<void> => {
    for (const [paymentId, known] of left) {
      expectKept(known, await getBody(work, paymentId));
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, ask));
};

const start = async (
  dataDir: string,
  env: NodeJS.ProcessEnv,
  readyMs: number[],
): Promise<Service> => {
  const from = performance.now();
  const service = await startService({ dataDir, env });
  readyMs.push(performance.now() - from);
  return service;
};

const killNow = async (service: Service): Promise<void> => {
  service.kill('SIGKILL');
  await service.exited;
};

const medianOf = (all: readonly number[]): number =>
  all.toSorted((a, b) => a - b)[Math.floor((all.length - 1) / 2)] ?? Number.NaN;

const report = (rounds: number, operations: number, readyMs: number[]): void => {
  const [median, slowest] = [medianOf(readyMs), Math.max(...readyMs)].map(Math.round);
  process.stderr.write(
    `kill -9: ${rounds} rounds, ${operations} operations acknowledged, ` +
      `ready after ${median} ms (median), ${slowest} ms (slowest)\n`,
  );
};

/** Runs the rounds and expects that nothing acknowledged is lost and nothing is half done. */
const surviveKills = async (rounds: number): Promise<void> => {
  const random = randomOf();
  using folder = temporaryFolder();
  const dataDir = join(folder.path, 'data');
  mkdirSync(dataDir);
  // The head that is kept beside the key fits the log at each start.
  const env = { LOG_LEVEL: 'warn', SEALING_KEY_FILE: join(folder.path, 'key.pem') };
  const readyMs: number[] = [];
  const kept = new Map<string, Acknowledged>();
  let operations = 0;
  let service = await start(dataDir, env, readyMs);
  try {
    const token = await service.token();
    for (let round = 0; round < rounds; round += 1) {
      const work = newWork(service, token, random);
      const killed = wait(random.between(50, 400))
        // On a busy machine a kill before the first of them would show nothing.
        .then(() => until('some are acknowledged', () => work.counts.taken > 1))
        .finally(() => killNow(service));
      await Promise.all([startWriters(work, WRITERS), killed]);
      // P4: what the read models have lost is served while they are filled again.
      if (round % 2 === 0)
        for (const suffix of ['', '-wal', '-shm'])
          rmSync(join(dataDir, `read-models.sqlite${suffix}`), { force: true });
      operations += work.counts.taken;
      const isLast = round === rounds - 1;
      await using last = isLast ? await startInProcess({ dataDir, env }) : undefined;
      if (!isLast) service = await start(dataDir, env, readyMs);
      await expectAllServed({ ...work, url: (last ?? service).url });
      if (isLast) await until('nothing is unresolved', () => openPaymentsIn(dataDir).length === 0);
      for (const [paymentId, known] of work.acknowledged) kept.set(paymentId, known);
    }
    report(rounds, operations, readyMs);
    await expectAllKept(dataDir, kept);
    expect(operations).toBeGreaterThan(rounds);
    const [first = 0, ...restarts] = readyMs;
    const limitMs = Math.max(STARTS_MS_MAX, TIMES_FIRST_MAX * first);
    // One in a moment without a core says nothing of the others.
    if (restarts.length > 0) expect(medianOf(restarts)).toBeLessThan(limitMs);
  } finally {
    await killNow(service);
  }
};

describe('gaps §6, §7: kill -9 under 16 writers', () => {
  test('L1, P4: loses no acknowledged operation and leaves none half done', async () => {
    await surviveKills(timesOf(100, 1));
  });
});
