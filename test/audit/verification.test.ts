/** The scheduled verification of the whole log: when it runs, what it keeps, and what it says of a break. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { faultsOfBreaks, openCheckRecord, resultOfBreaks } from '../../audit/check-record.ts';
import { startVerification } from '../../audit/verification-schedule.ts';
import { fileDocument } from '../../shared/read-models/key-document.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';
import { memoryDocument } from '../support/memory-feed.ts';
import { silentLog } from '../support/silent-log.ts';
import { type LogUnderTest, noReadModels, openFilledLog, openRows } from '../support/tampering.ts';
import { until } from '../support/until.ts';

const DAY_MS = 86_400_000;
const CHANGED = { position: '4', stream: 'payment-pay_3', revision: 0, reason: 'changed' };
const INTACT = { faults: faultsOfBreaks({ count: 0, named: [] }, [6, 0]) };

let log: LogUnderTest;
let clock: ManualClock;
let lines: { level: string; fields: Record<string, unknown> }[];
beforeEach(async () => {
  log = await openFilledLog();
  clock = manualClock();
  lines = [];
  verifyKeys = oneLost;
});
afterEach(() => log.close());

const LOST = { stream: 'payment-pay_1', reason: 'its key is missing' };
const KEYS = { opens: 1, erased: 0, missing: 1, alive: 0, unreadable: 0, refused: 0 };
const oneLost = async () => ({ ...KEYS, named: [{ ...LOST, position: '1', revision: 0 }] });
let verifyKeys = oneLost;

const start = (everyMs = DAY_MS, mayRun = true) => {
  const keep = (level: string) => (fields: object) =>
    void lines.push({ level, fields: { ...fields } });
  const metrics = createMetrics();
  const verification = startVerification({
    store: log.store,
    readModels: noReadModels,
    document: fileDocument(`${log.folder}/log-verification.json`),
    everyMs,
    mayRun: () => mayRun,
    verifyKeys: () => verifyKeys(),
    lookMs: 5,
    logger: { info: keep('info'), warn: keep('warn'), error: keep('error') },
    metrics,
    startTimer: clock.startTimer,
    nowMs: () => Date.UTC(2026, 10, 22) + clock.nowMs(),
  });
  const gauge = async (name: string): Promise<number> =>
    Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(await metrics.text())?.[1]);
  return { ...verification, gauge };
};

const timerSet = () => until('the next run is set', () => clock.timers() === 1);
/** Lets a day and its jitter pass, and waits for the run that is due in it. */
const nextRun = async (): Promise<void> => {
  await timerSet();
  const before = lines.length;
  await clock.advance(1.2 * DAY_MS);
  await until('the run has ended', () => lines.length > before);
  await timerSet();
};

const forge = (): (() => void) => {
  const rows = openRows(log.file);
  rows.write(
    rows.rows.map((row, n) => (n === 3 ? { ...row, text: row.text.replace('2500', '9500') } : row)),
  );
  return () => {
    rows.restore();
    rows.close();
  };
};

test('the log is verified by itself, not at the start, then every VERIFY_INTERVAL_MS', async () => {
  const { stop, gauge } = start();
  await timerSet();
  await clock.advance(60_000);
  expect(lines).toEqual([]);
  expect(await gauge('payments_chain_last_ok_timestamp_seconds')).toBe(0);
  await nextRun();
  expect(lines).toEqual([{ level: 'info', fields: { events: 36 } }]);
  expect(await gauge('payments_chain_last_ok_timestamp_seconds')).toBeGreaterThan(0);
  await nextRun();
  expect(lines).toHaveLength(2);
  await stop();
  expect(clock.timers()).toBe(0);
});

test('a break is an error line, and its gauge stays over a restart until the log is whole', async () => {
  let running = start();
  const mend = forge();
  await nextRun();
  expect(lines.at(-1)).toMatchObject({
    level: 'error',
    fields: { position: '4', stream: 'payment-pay_3', revision: 0 },
  });
  expect(await running.gauge('payments_log_broken')).toBe(1);
  expect(await running.gauge('payments_chain_breaks_total')).toBe(1);
  await running.stop();

  running = start();
  await timerSet();
  expect(await running.gauge('payments_log_broken')).toBe(1);
  mend();
  await nextRun();
  expect(await running.gauge('payments_log_broken')).toBe(0);
  await running.stop();

  running = start();
  await timerSet();
  expect(await running.gauge('payments_log_broken')).toBe(0);
  expect(await running.gauge('payments_chain_last_ok_timestamp_seconds')).toBeGreaterThan(0);
  await running.stop();
});

test('a process that stands by has the gauges of the one that verifies', async () => {
  const standBy = start(0, false);
  expect(await standBy.gauge('payments_log_broken')).toBe(0);
  const running = start();
  const mend = forge();
  await nextRun();
  await until('seen', async () => (await standBy.gauge('payments_log_broken')) === 1);
  expect(standBy.status()).toEqual(running.status());
  mend();
  await nextRun();
  await until('seen', async () => (await standBy.gauge('payments_log_broken')) === 0);
  expect(await standBy.gauge('payments_chain_last_ok_timestamp_seconds')).toBeGreaterThan(0);
  await running.stop();
  await standBy.stop();
});

test('a break that could not be kept is told, and counts until a later verification is kept', async () => {
  const warned: unknown[] = [];
  const logger = { warn: (fields: object) => void warned.push(fields) };
  const document = memoryDocument();
  let now = 1;
  const own = openCheckRecord(document, logger, () => now);
  const other = openCheckRecord(document, logger, () => now);
  await other.note(INTACT);
  now = 2;
  const broken = { position: '4', stream: 'payment-pay_1', revision: 3, reason: 'another hash' };
  document.failSaves(1);
  await own.note({ faults: faultsOfBreaks({ count: 1, named: [broken] }, [6, 0]), broken });
  expect(warned).toEqual([{ reason: 'the checkpoint cannot be saved' }]);
  await own.load();
  expect(own.now()).toMatchObject({ lastOkMs: 0, lastRunMs: 2, broken });
  now = 3;
  await other.note(INTACT);
  await own.load();
  expect(own.now()).toEqual({ lastOkMs: 3, lastRunMs: 3 });
});

test('gaps §25: a break can be acknowledged that the last verification named, in whatever process', async () => {
  const running = start(0);
  const unreadable = { ...CHANGED, reason: 'it cannot be read: of a later version' };
  const document = fileDocument(`${log.folder}/log-verification.json`);
  const other = openCheckRecord(document, silentLog, () => Date.UTC(2026, 10, 21));
  expect(await running.hasNamed(CHANGED)).toBe(false);
  await other.note(
    resultOfBreaks({ count: 2, unreadable: 1, named: [CHANGED, unreadable] }, [36, 0]),
  );
  expect(await running.hasNamed(CHANGED)).toBe(true);
  expect(await running.hasNamed(unreadable)).toBe(true);
  expect(await running.hasNamed({ ...CHANGED, revision: 9 })).toBe(false);
  await running.noteVerification({ count: 0, named: [] }, [36, 0]);
  expect(await running.hasNamed(CHANGED)).toBe(false);
  await running.stop();
});

test('boxes are looked at too; while their keys are away the log is verified, and the last look counts', async () => {
  const running = start();
  await nextRun();
  expect(running.status()).toMatchObject({ boxes: [LOST] });
  verifyKeys = async () => Promise.reject(new Error('the store of keys is away'));
  await nextRun();
  await until('verified', () => lines.length === 3);
  expect(lines.slice(1)).toEqual([
    { level: 'warn', fields: { reason: 'the store of keys is away' } },
    { level: 'info', fields: { events: 36 } },
  ]);
  expect(running.status()).toMatchObject({ boxes: [LOST] });
  await running.stop();
});

test('with 0 nothing runs by itself, and what a person finds is noted all the same', async () => {
  const running = start(0);
  running.noteVerification({ count: 1, named: [CHANGED] }, [36, 0]);
  await until('noted', () => lines.length === 1);
  expect(lines[0]).toMatchObject({ level: 'error', fields: { reason: 'changed' } });
  expect(await running.gauge('payments_log_broken')).toBe(1);
  expect(clock.timers()).toBe(0);
  await running.stop();
});

test('what was noted is kept when a stop has ended', async () => {
  const running = start(0);
  running.noteVerification({ count: 1, named: [CHANGED] }, [36, 0]);
  await running.stop();
  const kept = await fileDocument(`${log.folder}/log-verification.json`).load();
  expect(kept?.text).toContain('payment-pay_3');
});
