/** Twenty restores under load, with clients that go on repeating their keys (gaps §17). */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { freePort } from '../support/free-port.ts';
import { entriesOfLedger, expectLedgerMatchesLog } from '../support/ledger-and-log.ts';
import { type Random, randomOf } from '../support/random.ts';
import type { Body } from '../support/service-client.ts';
import { payment, SECRET, token } from '../support/service-in-process.ts';
import {
  LAUNCHER,
  NODE,
  runCliProcess,
  type Service,
  spawnService,
  startService,
  untilReady,
} from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { HANGS_MS } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const ROUNDS = 20;
const CLIENTS = 8;
/** Jobs that are acknowledged before a backup, and after it, in each round. */
const JOBS = 20;
const AGAIN_MS = 20;

/** A sale and a refund, each under a key of its own; the outcomes as they were first acknowledged. */
type Job = { key: string; amount: number; outcomes: Map<string, string> };

type Load = {
  url: string;
  bearer: string;
  random: Random;
  jobs: Job[];
  done: number;
  stopped: boolean;
};

/** The status and text of a response; undefined where the service is away. */
const post = async ({ url, bearer }: Load, path: string, key: string, body: object) => {
  try {
    const response = await fetch(`${url}/api/v1/payments${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}`, 'idempotency-key': key },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(HANGS_MS),
    });
    return { status: response.status, text: await response.text() };
  } catch {
    return undefined;
  }
};

/** 404: the payment of a refund is not in the restored log before its sale is repeated. */
const WITHOUT_OUTCOME = [503, 409, 404];

/** Undefined without an outcome, so that the client repeats the request. */
const send = async (
  load: Load,
  path: string,
  key: string,
  body: object,
): Promise<Body | undefined> => {
  const response = await post(load, path, key, body);
  if (response === undefined || WITHOUT_OUTCOME.includes(response.status)) return undefined;
  if (response.status !== 200)
    throw new Error(`${path} ${key}: ${response.status} ${response.text}`);
  return JSON.parse(response.text) as Body;
};

/** What a merchant books: of which payment, what it came to, and by which transactions. */
const outcomeOf = ({ paymentId, status, transactions }: Body): string =>
  [
    paymentId,
    status,
    ...transactions.map(({ id, type, amount, result }) => `${id} ${type} ${amount} ${result}`),
  ].join('; ');

const acknowledge = ({ outcomes }: Job, name: string, body: Body): void => {
  const outcome = outcomeOf(body);
  const first = outcomes.get(name) ?? outcome;
  outcomes.set(name, first);
  expect(outcome).toBe(first);
};

/** Sends or repeats both requests of a job; true once both have their outcome. */
const workOn = async (load: Load, job: Job): Promise<boolean> => {
  const { key, amount } = job;
  const sold = await send(load, '', key, payment({ amount, captureNow: true }));
  if (sold === undefined) return false;
  acknowledge(job, 'sale', sold);
  const refunded = await send(load, `/${sold.paymentId}/refund`, key, { refundAmount: 1 });
  if (refunded === undefined) return false;
  acknowledge(job, 'refund', refunded);
  return true;
};

const newJob = ({ random, jobs }: Load): Job => {
  const job = {
    key: `order-${jobs.length}`,
    amount: random.between(100, 9999),
    outcomes: new Map(),
  };
  jobs.push(job);
  return job;
};

/** One client: new jobs, and repeats of any job, each until it is done or the load is stopped. */
const client = async (load: Load): Promise<void> => {
  while (!load.stopped) {
    const { random, jobs } = load;
    const known = random.chance(0.5) ? jobs[random.between(0, jobs.length - 1)] : undefined;
    const job = known ?? newJob(load);
    while (!load.stopped && !(await workOn(load, job)))
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    load.done += 1;
  }
};

/** Rejects with what a client met, where one met what it must not. */
const jobsDone = async (load: Load, count: number, clients: Promise<unknown>): Promise<void> => {
  const goal = load.done + count;
  const done = until(`${count} jobs are done`, () => load.done >= goal);
  await Promise.race([done, clients]);
};

const openForPayments = async ({ url }: Service): Promise<boolean> => {
  const headers = { authorization: `Bearer ${await token('*', 'ops:admin')}` };
  const path = `${url}/ops/v1/reconcile/acknowledge`;
  const response = await fetch(path, { method: 'POST', headers });
  expect(response.status).toBe(200);
  return ((await response.json()) as { acknowledged: boolean }).acknowledged;
};

/** Repeats every job until both of its outcomes are known. */
const repeatAll = async (load: Load): Promise<void> => {
  for (const job of load.jobs) await until(`${job.key} has its outcome`, () => workOn(load, job));
};

/** Nothing was charged or refunded twice: each entry of the ledger belongs to an outcome, one to one. */
const expectOneOfEach = async (load: Load, ledgerDir: string): Promise<void> => {
  const entries = (await entriesOfLedger(ledgerDir)).map((entry) => entry.split(' ').slice(1, 3));
  const paymentIds = load.jobs.map(({ outcomes }) => outcomes.get('sale')?.split(';')[0] ?? '');
  const wanted = paymentIds.flatMap((id) => [
    ['SALE', id],
    ['REFUND', id],
  ]);
  const sorted = (all: string[][]): string[] => all.map((one) => one.join(' ')).sort();
  expect(sorted(entries)).toEqual(sorted(wanted));
};

test(`${ROUNDS} restores under load: no key is charged twice, and every outcome stays`, async () => {
  const random = randomOf();
  using temporary = temporaryFolder();
  const folder = temporary.path;
  const ledgerDir = join(folder, 'provider');
  const provider = await spawnService({
    dataDir: ledgerDir,
    env: { PORT: String(await freePort()), LOG_LEVEL: 'warn' },
    command: [NODE, LAUNCHER, 'provider-simulator/main.ts'],
  });
  await untilReady(provider);
  const port = String(await freePort());
  const env = { PORT: port, JWT_SECRET: SECRET, LOG_LEVEL: 'warn', PROVIDER_URL: provider.url };
  let dataDir = join(folder, 'data-0');
  let service = await startService({ dataDir, env });
  const bearer = await token('m_demo');
  const load: Load = { url: service.url, bearer, random, jobs: [], done: 0, stopped: false };
  const clients = Promise.all(Array.from({ length: CLIENTS }, () => client(load)));
  clients.catch(() => undefined);
  let ahead = 0;
  try {
    for (let round = 1; round <= ROUNDS; round += 1) {
      await jobsDone(load, JOBS, clients);
      const backup = join(folder, `backup-${round}`);
      expect(await runCliProcess(['backup', backup], { ...env, DATA_DIR: dataDir })).toMatchObject({
        code: 0,
      });
      await jobsDone(load, JOBS, clients);
      service.kill('SIGKILL');
      await service.exited;
      dataDir = join(folder, `data-${round}`);
      cpSync(backup, dataDir, { recursive: true });
      service = await startService({ dataDir, env });
      if (await openForPayments(service)) ahead += 1;
    }
    await jobsDone(load, JOBS, clients);
    load.stopped = true;
    await clients;
    await repeatAll(load);
    service.kill('SIGTERM');
    await service.exited;
    provider.kill('SIGTERM');
    await provider.exited;
    process.stderr.write(
      `restores: ${ROUNDS} rounds, ${load.jobs.length} jobs, ${load.done} times acknowledged\n`,
    );
    expect(ahead).toBe(ROUNDS);
    await expectOneOfEach(load, ledgerDir);
    await expectLedgerMatchesLog(dataDir, ledgerDir);
  } finally {
    load.stopped = true;
    await service[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
  }
});
