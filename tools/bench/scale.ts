/** `npm run bench -- --scale`: the cost of a start, of requests and of reading the whole log as it grows. */
import { execFile } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { ours, ROOT } from './contestants.ts';
import { middleOf, printTable, short } from './page.ts';
import { drive, type Run } from './rounds.ts';
import { onCpu, type Server, startServer } from './servers.ts';

const STARTS = 3;
const GETS = 10_000;
const GETS_BESIDE_SCANS = 1000;
/** 250 GETs a second. */
const GAP_MS = 4;
const PAYMENTS = '/api/v1/payments';
/** The window that is compared next to everything holds the payments made last. */
const WINDOW_SHARE = 100;
/** No payment of the bench is voided, so the whole log or every read model is read. */
const SCANS = ['?status=VOIDED&limit=50', '?merchantReference=none'];

type Command = { run: Run; service: Server; env: NodeJS.ProcessEnv };

/** Runs a command that makes the service read its whole log: its output, its seconds and the service's CPU. */
const timed = async ({ service, env }: Command, args: readonly string[]) => {
  const before = await service.usage();
  const startedAt = performance.now();
  const command = onCpu(1, [process.execPath, 'cli/payments.mjs', ...args]);
  const { stdout } = await promisify(execFile)(...command, { cwd: ROOT, env });
  const seconds = (performance.now() - startedAt) / 1000;
  return { stdout, seconds, cpuSeconds: ((await service.usage()).cpuUs - before.cpuUs) / 1e6 };
};

/**
 * The p99 in ms of GETs that become due at a fixed rate while one client after the other sends requests
 * that scan. Throws Error where a response is not 2xx.
 */
const p99BesideScans = async ({ run, service }: Command): Promise<number> => {
  const headers = { authorization: `Bearer ${run.place.token}` };
  const get = async (path: string): Promise<string> => {
    const response = await fetch(`${service.url}${PAYMENTS}${path}`, { headers });
    if (response.ok) return response.text();
    throw new Error(`GET ${path}: ${response.status} ${await response.text()}`);
  };
  const ids = (await get('?limit=50')).match(/pay_[\w-]{26,}/g) ?? [];
  const getWhenDue = async (at: number): Promise<number> => {
    await wait(at * GAP_MS);
    const startedAt = performance.now();
    await get(`/${ids[at % ids.length]}`);
    return performance.now() - startedAt;
  };
  let goesOn = true;
  const scanning = (async () => {
    for (let at = 0; goesOn; at += 1) await get(SCANS[at % SCANS.length] ?? '');
  })();
  const times = await Promise.all(
    Array.from({ length: GETS_BESIDE_SCANS }, (_, at) => getWhenDue(at)),
  );
  goesOn = false;
  await scanning;
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Number.NaN;
};

const startsOf = async (run: Run, contestant: typeof ours): Promise<number[]> => {
  const seconds: number[] = [];
  for (let start = 0; start < STARTS; start += 1) {
    const service = await startServer(contestant, run.place);
    seconds.push(service.readyMs / 1000);
    await service.stop();
  }
  return seconds;
};

/** Each size has a data folder and a process: its memory is that after so many creates. */
const measureAt = async (run: Run, size: number) => {
  const contestant = { ...ours, name: `${size} payments` };
  const service = await startServer(contestant, run.place);
  const env = { ...run.place.envOf(contestant.name), PAYMENTS_URL: service.url };
  const command = { run, service, env };
  try {
    const creates = await drive(run, service, ['create', size], { keepsIds: true });
    const gets = await drive(run, service, ['GET', GETS]);
    const besideMs = await p99BesideScans(command);
    const since = new Date().toISOString();
    const last = await drive(run, service, ['create', Math.ceil(size / WINDOW_SHARE)]);
    const all = await timed(command, ['reconcile', '--all']);
    const window = await timed(command, ['reconcile', '--since', since]);
    const verify = await timed(command, ['verify', '--all', '--format', 'json']);
    const rebuild = await timed(command, ['projections', 'rebuild', '--yes']);
    const { events } = JSON.parse(verify.stdout);
    await service.stop();
    const ready = middleOf(await startsOf(run, contestant)).middle;
    const reconciled = [all.cpuSeconds, window.cpuSeconds];
    const cells = [size, creates.megabytes, ready, creates.cpuUs, gets.cpuUs, besideMs];
    const rates = [verify, rebuild].flatMap(({ seconds, cpuSeconds }) => [
      events / seconds,
      events / cpuSeconds,
    ]);
    const bad = creates.bad + gets.bad + last.bad;
    return { row: [...cells, ...rates, ...reconciled].map(short), bad };
  } finally {
    await service.stop();
  }
};

const HEADS = [
  'payments',
  'MB after them',
  'ready s',
  'create CPU us',
  'GET CPU us',
  'GET p99 ms beside scans',
  'verified/s',
  '/CPU s',
  'rebuilt/s',
  '/CPU s',
  'reconciled CPU s',
  'its last 1 % CPU s',
];

/** Prints the curve. Resolves to the number of bad responses. Throws where the service does not start. */
export const benchScale = async (run: Run, sizes: readonly number[]): Promise<number> => {
  const rows: string[][] = [];
  let all = 0;
  for (const size of sizes) {
    process.stderr.write(`bench: ${size} payments\n`);
    const { row, bad } = await measureAt(run, size);
    rows.push(row);
    all += bad;
  }
  printTable('by payments in the log; verified and rebuilt events', [HEADS, ...rows]);
  console.log(
    'floors: 400 MB after 100,000; ready 1.2 s with 1M events; p99 of a GET beside scans 25 ms;' +
      ' 75,000 verified and 30,000 rebuilt a second',
  );
  return all;
};
