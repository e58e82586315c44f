/** `payments seed <n>`: makes many payments in all states, to try what needs many of them. */
import { setTimeout } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { type Client, openClient, rejectionLine } from '../client.ts';
import { type Format, formatted } from '../options.ts';
import { CommandFailed, print, printJson } from '../output.ts';
import { startProgress } from '../streams.ts';
import { SCENARIOS, type ScenarioName, type Step } from './scenarios.ts';

/** More at once would only wait longer for the disk. */
const AT_ONCE = 16;
const ATTEMPTS_MAX = 5;
const PAYMENTS_MAX = 1_000_000;
const PAYMENTS = '/api/v1/payments';

/** Mixed so that neighbouring payments differ in state. */
const MIX: readonly ScenarioName[] = [
  'authorize',
  'sale',
  'partial-capture',
  'sale',
  'refund',
  'authorize',
  'sale',
  'decline',
  'partial-capture',
  'full-story',
];

const paymentCount = (text: string): number => {
  const count = Number(text);
  if (/^[0-9]{1,7}$/.test(text) && count >= 1 && count <= PAYMENTS_MAX) return count;
  throw new InvalidArgumentError(`It must be a number from 1 to ${PAYMENTS_MAX}.`);
};

const send = async (client: Client, body: Step['body'], expected: number, path: string) => {
  const headers = { 'idempotency-key': crypto.randomUUID() };
  for (let attempts = 1; ; attempts += 1) {
    const response = await client.post(path, body, headers);
    const text = await response.text();
    if (response.status === expected) return JSON.parse(text);
    if (![429, 503].includes(response.status) || attempts === ATTEMPTS_MAX)
      throw new CommandFailed(rejectionLine(response.status, text));
    await setTimeout(Number(response.headers.get('retry-after') ?? 1) * 1000);
  }
};

const makeOne = async (client: Client, run: string, index: number): Promise<string> => {
  const name = MIX[index % MIX.length] ?? 'sale';
  let last: unknown;
  let id = '';
  for (const step of SCENARIOS[name].steps(1000 + ((index * 37) % 9000))) {
    if (step.method === 'GET') continue;
    const reference = id === '' && { merchantReference: `seed-${run}-${index}` };
    const body = step.body && { ...step.body, ...reference };
    last = await send(client, body, step.expected, PAYMENTS + step.path.replace('{id}', id));
    id ||= String(Object(last).paymentId);
  }
  return String(Object(last).status);
};

const seed = async (count: number) => {
  const client = await openClient();
  const startedAtMs = performance.now();
  const run = Date.now().toString(36);
  const progress = startProgress('seed', count);
  const statuses: Record<string, number> = {};
  let done = 0;
  // All workers take from one generator: an error in one of them ends it for the others too.
  const indexes = (function* () {
    yield* Array(count).keys();
  })();
  const worker = async (): Promise<void> => {
    for (const index of indexes) {
      const status = await makeOne(client, run, index);
      statuses[status] = (statuses[status] ?? 0) + 1;
      done += 1;
      progress.update({ done, total: count });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker)).finally(progress.stop);
  const seconds = Math.round(performance.now() - startedAtMs) / 1000;
  return { payments: count, seconds, statuses };
};

const seedAndPrint = async (count: number, { format }: { format: Format }): Promise<void> => {
  const seeded = await seed(count);
  if (format === 'json') return printJson(seeded);
  const { payments, seconds, statuses } = seeded;
  const rate = Math.round(payments / Math.max(seconds, 0.001));
  print(`${payments} payments in ${seconds.toFixed(1)} s (${rate}/s)`);
  for (const [status, number] of Object.entries(statuses).sort()) print(`  ${status}  ${number}`);
};

export const seedCommand = (): Command =>
  formatted('seed', 'payments seed 1000')
    .description(`Makes payments of every kind, ${AT_ONCE} at once.`)
    .argument('<n>', 'how many payments', paymentCount)
    .action(seedAndPrint);
