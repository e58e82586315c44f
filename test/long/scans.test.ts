/**
 * ADR-0185: GETs of one payment beside lists, searches, verifications and exports of a large log. What
 * another program on the same processors costs a GET is measured first, in the same run.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { authorized, created, newEvent, timeOf } from '../support/payment-events.ts';
import { randomOf } from '../support/random.ts';
import {
  cleanEnv,
  LAUNCHER,
  metricOf,
  metricsOf,
  NODE,
  ROOT,
  type Service,
  startService,
} from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { FILLED_MS_MAX, SCANNED_MS_MAX, STOP_MS_MAX } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const PAYMENTS = Number(process.env.SCAN_PAYMENTS ?? 350_000);
const PAGE = 2_000;
const MEASURED_MS = 15_000;
const AT_ONCE = 4;
const TURNS_MAX = 3;
const LAGS = ['nodejs_eventloop_lag_max_seconds', 'nodejs_eventloop_lag_p99_seconds'];

const paymentId = (n: number): string => `pay_${String(n).padStart(26, '0')}`;

const folder = temporaryFolder();
const env = {
  RATE_LIMIT_PER_SECOND: '0',
  RECONCILE_INTERVAL_MS: '0',
  VERIFY_INTERVAL_MS: '0',
  LOG_LEVEL: 'warn',
};
let service: Service;

/** Payments that were authorized, at the end of two events each. */
const fill = async (): Promise<void> => {
  const store = await openSqliteEventStore({ file: join(folder.path, 'events.sqlite') });
  for (let at = 0; at < PAYMENTS; at += PAGE) {
    const appends = Array.from({ length: Math.min(PAGE, PAYMENTS - at) }, (_, n) => {
      const id = paymentId(at + n);
      const life = [created({ paymentId: id }), authorized()];
      const events = life.map((event) => newEvent(event, timeOf(at + n)));
      return store.append(streamOf(id), 'none', events);
    });
    await Promise.all(appends);
  }
  await store.close();
};

beforeAll(async () => {
  await fill();
  service = await startService({ dataDir: folder.path, env });
  const isCaughtUp = async () => (await metricOf(service, 'payments_projection_lag_events')) === 0;
  await until('the read models hold every payment', isCaughtUp, FILLED_MS_MAX);
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder.remove();
});

const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });

/** How long a GET of one payment takes, in milliseconds. Throws where it is not 200. */
const timeOfGet = async (id: string, headers: Record<string, string>): Promise<number> => {
  const from = performance.now();
  const request = get(`${service.url}/api/v1/payments/${id}`, { agent, headers });
  const [response] = await once(request, 'response');
  await text(response);
  if (response.statusCode !== 200) throw new Error(`GET ${id}: ${response.statusCode}`);
  return performance.now() - from;
};

/** The 99th percentile of GETs by random ids, and the longest delay of the service's event loop meanwhile. */
const measured = async () => {
  const headers = { authorization: `Bearer ${await service.token('m_1')}` };
  const random = randomOf();
  const times: number[] = [];
  await metricOf(service, 'nodejs_eventloop_lag_max_seconds');
  const end = performance.now() + MEASURED_MS;
  const client = async (): Promise<void> => {
    while (performance.now() < end) {
      times.push(await timeOfGet(paymentId(random.between(0, PAYMENTS - 1)), headers));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  times.sort((a, b) => a - b);
  const p99 = times[Math.floor(times.length * 0.99)] ?? Number.NaN;
  // Both count from the last time that the metrics were read.
  const lags = await metricsOf(service, LAGS);
  const [lagMaxMs = Number.NaN, lagP99Ms = Number.NaN] = lags.map((seconds) => 1000 * seconds);
  return { p99, gets: times.length, lagMaxMs, lagP99Ms };
};

const start = (...args: string[]): ChildProcess =>
  spawn(NODE, [LAUNCHER, 'test/support/scan-clients.ts', ...args], {
    cwd: ROOT,
    env: cleanEnv(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });

/** Runs a step beside other processes; gives what they print at their end. */
const beside = async <T>(children: ChildProcess[], step: () => Promise<T>) => {
  const texts = children.map(({ stdout }) => (stdout === null ? '' : text(stdout)));
  const result = await step();
  for (const child of children) child.kill('SIGTERM');
  return { result, printed: await Promise.all(texts) };
};

const scanning = async (): Promise<ChildProcess> =>
  start(service.url, await service.token('m_1'), await service.token('*', 'audit:read'));

/** One turn: GETs beside as many processors as the thread of scans and its client take, then beside those. */
const turn = async () => {
  const { result: busy } = await beside([start(), start()], measured);
  const { result: scanned, printed } = await beside([await scanning()], measured);
  const counts: Record<string, number> = JSON.parse(printed[0] ?? '{}');
  const isQuick =
    scanned.p99 < Math.max(SCANNED_MS_MAX, 2 * busy.p99) &&
    scanned.lagP99Ms < Math.max(SCANNED_MS_MAX, 2 * busy.lagP99Ms);
  // At least the short ones came to their end, so that there was something to wait for.
  const hasScanned = (counts.list ?? 0) > 0 && (counts.search ?? 0) > 0;
  return { isQuick, hasScanned, busy, scanned, counts };
};

test(`of ${PAYMENTS} payments, GETs beside scans take no longer than beside any other program`, async () => {
  await measured();
  const rssMb = async () => (await metricOf(service, 'process_resident_memory_bytes')) / 1e6;
  const before = await rssMb();
  const alone = await measured();
  // What else the machine does comes between the halves of a turn, or into one of them.
  const turns = [await turn()];
  while (turns.length < TURNS_MAX && !turns.some(({ isQuick }) => isQuick)) {
    turns.push(await turn());
  }
  const rss = [before, await rssMb()];
  process.stderr.write(`${JSON.stringify({ PAYMENTS, alone, turns, rss })}\n`);
  expect(turns.every(({ hasScanned }) => hasScanned)).toBe(true);
  expect(turns.some(({ isQuick }) => isQuick)).toBe(true);
});

test('a stop while scans go on ends them, and leaves nothing beside the log', async () => {
  const client = await scanning();
  const headers = { authorization: `Bearer ${await service.token('*', 'audit:read')}` };
  const verified = fetch(`${service.url}/audit/v1/verify`, {
    headers: { ...headers, accept: 'text/event-stream' },
  });
  const reader = (await verified).body?.getReader();
  await reader?.read();
  const from = performance.now();
  service.kill('SIGTERM');
  expect(await service.exited).toEqual({ code: 0, signal: null });
  expect(performance.now() - from).toBeLessThan(STOP_MS_MAX);
  client.kill('SIGKILL');
  for (const name of ['events', 'read-models']) {
    const waiting = join(folder.path, `${name}.sqlite-wal`);
    expect(existsSync(waiting) && statSync(waiting).size > 0).toBe(false);
  }
});
