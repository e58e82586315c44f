/** gaps §21 over several processes: a payment waits for its shopper, and no process is its own. */
import { afterAll, afterEach, expect, test } from '@jest/globals';
import Fastify from 'fastify';
import type { Simulator } from '../../providers/simulator/simulator.ts';
import { JANE } from '../support/provider-operations.ts';
import { type CommandResponse, idOf, NO_RETRIES } from '../support/service-in-process.ts';
import {
  type CommandProcess,
  openTwoCommandProcesses,
  typesOf,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const NEEDS_SHOPPER = '4000000000003220';
const PAST_WAITING_MS = 16 * 60_000;
const page = Fastify();
let simulator: Simulator | undefined;

const processes = await openTwoCommandProcesses(NO_RETRIES, (provider) => {
  simulator = provider as Simulator;
  return provider;
});
// No process is told: each has to ask.
simulator?.onNotice?.(() => undefined);
simulator?.register(page);
await page.listen({ host: '127.0.0.1', port: 0 });
afterEach(() => processes.calm());
afterAll(async () => {
  await page.close();
  await processes[Symbol.asyncDispose]();
});

const create = (at: CommandProcess, key: string): Promise<CommandResponse> => {
  const authentication = { returnUrl: 'https://shop.example/back' };
  const card = { number: NEEDS_SHOPPER, ...JANE, authentication };
  return at.create({ paymentMethod: { type: 'CARD', card } }, { key });
};
/** At `a`. */
const waiting = async (key: string) => {
  const first = await create(processes.a, key);
  expect(first.status).toBe(202);
  return { first, id: idOf(first), url: (first.json.nextAction as { url: string }).url };
};
const authenticate = async (url: string): Promise<void> => {
  const { status } = await fetch(`${url}/authenticate`, { method: 'POST', redirect: 'manual' });
  expect(status).toBe(303);
};
const onBoth = (key: string) =>
  Promise.all([processes.a, processes.b].map((at) => create(at, key)));

test('a repeat in the other process gets the same address, and a capture there asks no provider', async () => {
  const { b } = processes;
  const { first, id } = await waiting('the-other');
  expect((await create(b, 'the-other')).text).toBe(first.text);
  const { questions } = b.faults;
  expect((await b.change('capture', id)).status).toBe(422);
  expect([b.faults.questions, b.faults.calls]).toEqual([questions, []]);
});

test('repeats under the key ask the provider at most once in five seconds', async () => {
  const { a } = processes;
  const { first, url } = await waiting('repeated');
  a.clock.standsAtMs = Date.now();
  const repeats = await Promise.all(Array.from({ length: 20 }, () => create(a, 'repeated')));
  expect([a.faults.questions, new Set(repeats.map(({ text }) => text))]).toEqual([
    1,
    new Set([first.text]),
  ]);
  await authenticate(url);
  a.clock.standsAtMs += 4_999;
  expect([(await create(a, 'repeated')).status, a.faults.questions]).toEqual([202, 1]);
  a.clock.standsAtMs += 1;
  expect((await create(a, 'repeated')).json.status).toBe('AUTHORIZED');
});

test('both find at once that the shopper was there: one outcome', async () => {
  const { id, url } = await waiting('was-there');
  await authenticate(url);
  const both = await onBoth('was-there');
  expect(both.map(({ status, json }) => [status, json.status])).toEqual([
    [200, 'AUTHORIZED'],
    [200, 'AUTHORIZED'],
  ]);
  expect(both[0]?.text).toBe(both[1]?.text);
  expect(await typesOf(processes, id)).toEqual([
    'PaymentCreated',
    'PaymentAuthenticationRequested',
    'PaymentAuthorized',
  ]);
});

test('both find at once that the time is over: fenced once', async () => {
  const { a, b } = processes;
  const { id } = await waiting('over');
  for (const { clock } of [a, b]) clock.aheadMs = PAST_WAITING_MS;
  expect((await onBoth('over')).map(({ status }) => status)).toEqual([402, 402]);
  expect((await typesOf(processes, id)).slice(2)).toEqual(['PaymentFailed']);
  expect(await processes.ledger(id)).toEqual([]);
});

test('a clock that is ahead fences too early, but never what the shopper has authenticated', async () => {
  const { b } = processes;
  const early = await waiting('early');
  const inTime = await waiting('in-time');
  await authenticate(inTime.url);
  b.clock.aheadMs = PAST_WAITING_MS;
  expect((await create(b, 'early')).status).toBe(402);
  const late = await fetch(`${early.url}/authenticate`, { method: 'POST' });
  expect(late.status).toBe(409);
  expect((await create(b, 'in-time')).json.status).toBe('AUTHORIZED');
  expect(await processes.ledger(early.id)).toEqual([]);
});

test('a process that starts finds it waiting, and the outcome that no notice told of', async () => {
  const still = await waiting('still');
  const was = await waiting('was');
  await authenticate(was.url);
  const c = await processes.open();
  simulator?.onNotice?.(() => undefined);
  c.side.startSweep();
  await until('it has its outcome', async () => (await typesOf(processes, was.id)).length === 3);
  expect((await typesOf(processes, was.id)).at(-1)).toBe('PaymentAuthorized');
  expect(c.side.unresolved.list()).toEqual([]);
  expect((await typesOf(processes, still.id)).at(-1)).toBe('PaymentAuthenticationRequested');
});
