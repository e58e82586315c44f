/** The steps of the curve that are no rounds of load. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Round } from './rounds.ts';
import { ROOT, type Server, startServer } from './server.ts';
import { load, measured } from './turns.ts';
import { getOrder, postOrder, serviceOrder, type Workplace } from './workplace.ts';

const POLL_MS = 20;

const metricOf = async (url: string, name: string): Promise<number> => {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
};

/** Resolves when the projector of the process at this address has applied every event. */
export const untilCaughtUp = async (url: string): Promise<void> => {
  while ((await metricOf(url, 'payments_projection_lag_events')) !== 0) await setTimeout(POLL_MS);
};

/**
 * Starts the service on a log that the read models lack `events` of, and measures from its start to
 * the last of them in the read models; the start without them is subtracted.
 */
export const catchUp = async (
  workplace: Workplace,
  events: number,
): Promise<{ projectedPerSecond: number }> => {
  const startedAt = performance.now();
  const service = await startServer(serviceOrder(workplace));
  try {
    await untilCaughtUp(service.url);
    const ms = performance.now() - startedAt;
    await service.stop();
    const again = await startServer(serviceOrder(workplace));
    await again.stop();
    return { projectedPerSecond: (events * 1000) / Math.max(ms - again.readyMs, 1) };
  } finally {
    await service.stop();
  }
};

/** The bytes of all files of a data folder. */
export const bytesOnDisk = (dataDir: string): number =>
  readdirSync(dataDir).reduce((sum, name) => sum + statSync(join(dataDir, name)).size, 0);

/** GETs at a modest rate, alone and while one client after the other asks for what needs a scan. */
export type BesideScans = { alone: Round; beside: Round; scansPerSecond: number };

const GETS_PER_SECOND = 500;

/** A list by a state that no payment has, and a search for digits that no card has. */
const SCANS = [
  '/api/v1/payments?status=VOIDED&limit=50',
  '/api/v1/payments?merchantReference=none',
];

/** Measures GETs of one payment beside scans. */
export const besideScans = async (
  workplace: Workplace,
  service: Server,
  ids: readonly string[],
): Promise<BesideScans> => {
  const order = () => ({
    ...getOrder(workplace, service.url, ids),
    perSecond: GETS_PER_SECOND,
  });
  await load(order());
  const alone = await measured(service, order());
  let goesOn = true;
  let scans = 0;
  const scanning = (async () => {
    for (; goesOn; scans += 1) {
      const path = SCANS[scans % SCANS.length];
      const response = await fetch(`${service.url}${path}`, { headers: workplace.headers });
      if (!response.ok) throw new Error(`${path}: status ${response.status}`);
      await response.arrayBuffer();
    }
  })();
  const startedAt = performance.now();
  const beside = await measured(service, order());
  goesOn = false;
  await scanning;
  return { alone, beside, scansPerSecond: (scans * 1000) / (performance.now() - startedAt) };
};

/** The commands that go through the whole log. */
export const VERIFY = ['verify', '--all'];
export const REBUILD = ['projections', 'rebuild', '--yes'];

/**
 * How many events a second such a command goes through, its start included; NaN where it failed, for
 * which it has printed why.
 */
export const commandRate = async (
  { env }: Workplace,
  { url }: Server,
  command: readonly string[],
): Promise<number> => {
  const events = await metricOf(url, 'payments_store_head_position');
  const startedAt = performance.now();
  const child = spawn(process.execPath, ['cli/payments.mjs', ...command], {
    cwd: ROOT,
    env: { ...env, PAYMENTS_URL: url },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await once(child, 'exit');
  if (code !== 0) return Number.NaN;
  return (events * 1000) / (performance.now() - startedAt);
};

const SECONDS_MAX = 3600;

/** The memory of the service after so many creates. */
export const rssAfterCreates = async (
  workplace: Workplace,
  service: Server,
  requestsMax: number,
): Promise<number> => {
  await load({ ...postOrder(workplace, service.url), seconds: SECONDS_MAX, requestsMax });
  return (await service.usage()).rssBytes;
};
