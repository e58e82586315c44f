/**
 * `kill -9` under load, again and again on one data folder. After each restart every payment that
 * was acknowledged is asked for; after the last one ledger and log are read to the end.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from '@jest/globals';
import { expectLedgerMatchesLog, openPaymentsIn } from './ledger-and-log.ts';
import { newSeed, randomOf } from './random.ts';
import { type Body, type Service, startService } from './service.ts';
import { startServiceHere } from './service-here.ts';
import { until } from './until.ts';
import { type Acknowledged, startWriters, type Work } from './writers.ts';

const WRITERS = 16;
/** The figure of an idle machine stands in docs/reliability.md. */
const READY_MS_MAX = 6000;
/** Where every core is busy elsewhere: in comparison with the first start, of an empty folder. */
const TIMES_FIRST_MAX = 3;
const ENV = { LOG_LEVEL: 'warn' };

/** What was acknowledged is in `body`: all of it, or as its beginning when more was under way. */
export const expectKept = ({ body: acknowledged, touched }: Acknowledged, body: string): void => {
  if (!touched) {
    expect(body).toBe(acknowledged);
    return;
  }
  const before = JSON.parse(acknowledged) as Body;
  const now = JSON.parse(body) as Body;
  expect(now.transactions.slice(0, before.transactions.length)).toEqual(before.transactions);
  expect(now.capturedAmount).toBeGreaterThanOrEqual(before.capturedAmount);
  expect(now.refundedAmount).toBeGreaterThanOrEqual(before.refundedAmount);
};

const getBody = async ({ url, token }: Work['line'], paymentId: string): Promise<string> => {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/api/v1/payments/${paymentId}`, { headers });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`GET ${paymentId}: ${response.status} ${body}`);
  return body;
};

/** Asks for each payment; one that was touched is from then on as the answer says. */
const expectAllServed = async (work: Work): Promise<void> => {
  const left = [...work.acknowledged].values();
  const ask = async (): Promise<void> => {
    for (const [paymentId, known] of left) {
      expectKept(known, await getBody(work.line, paymentId));
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, ask));
};

const start = async (dataDir: string, readyMs: number[]): Promise<Service> => {
  const from = performance.now();
  const service = await startService({ dataDir, env: ENV });
  readyMs.push(performance.now() - from);
  return service;
};

const killNow = async (service: Service): Promise<void> => {
  service.kill('SIGKILL');
  await service.exited;
};

const medianOf = (all: readonly number[]): number =>
  all.toSorted((a, b) => a - b)[Math.floor((all.length - 1) / 2)] ?? Number.NaN;

const report = (seed: number, rounds: number, operations: number, readyMs: number[]): void => {
  const [median, slowest] = [medianOf(readyMs), Math.max(...readyMs)].map(Math.round);
  process.stderr.write(
    `kill -9: seed ${seed}, ${rounds} rounds, ${operations} operations acknowledged, ` +
      `ready after ${median} ms (median), ${slowest} ms (slowest)\n`,
  );
};

/** Runs the rounds and expects that nothing acknowledged is lost and nothing is half done. */
export const surviveKills = async (rounds: number): Promise<void> => {
  const random = randomOf(newSeed());
  const dataDir = mkdtempSync(join(tmpdir(), 'payments-kill-'));
  const readyMs: number[] = [];
  const kept = new Map<string, Acknowledged>();
  let operations = 0;
  let service = await start(dataDir, readyMs);
  try {
    const token = await service.token();
    for (let round = 0; round < rounds; round += 1) {
      const line = { url: service.url, token };
      const work: Work = { line, random, acknowledged: new Map(), operations: 0 };
      const killed = wait(random.between(50, 400))
        // On a busy machine a kill before the first of them would show nothing.
        .then(() => until('some are acknowledged', () => work.operations > 1))
        .finally(() => killNow(service));
      await Promise.all([startWriters(work, WRITERS), killed]);
      operations += work.operations;
      const isLast = round === rounds - 1;
      await using last = isLast ? await startServiceHere({ dataDir, env: ENV }) : undefined;
      if (!isLast) service = await start(dataDir, readyMs);
      await expectAllServed({ ...work, line: { url: (last ?? service).url, token } });
      if (isLast) await until('nothing is unresolved', () => openPaymentsIn(dataDir).length === 0);
      for (const [paymentId, known] of work.acknowledged) kept.set(paymentId, known);
    }
    report(random.seed, rounds, operations, readyMs);
    await expectAllKept(dataDir, kept);
    expect(operations).toBeGreaterThan(rounds);
    const [first = 0, ...restarts] = readyMs;
    const limitMs = Math.max(READY_MS_MAX, TIMES_FIRST_MAX * first);
    // One in a moment without a core says nothing of the others.
    if (restarts.length > 0) expect(medianOf(restarts)).toBeLessThan(limitMs);
  } finally {
    await killNow(service);
    rmSync(dataDir, { recursive: true });
  }
};

/** Nothing acknowledged is lost, nothing is open, and ledger and log say the same. */
export const expectAllKept = async (
  dataDir: string,
  kept: ReadonlyMap<string, Acknowledged>,
  ledgerDir = dataDir,
): Promise<void> => {
  const payments = await expectLedgerMatchesLog(dataDir, ledgerDir);
  for (const [paymentId, known] of kept) {
    expectKept(known, payments.get(paymentId)?.body ?? 'not in the event store');
  }
};
