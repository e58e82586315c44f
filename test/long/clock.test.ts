/**
 * Clocks that jump, stand still and run back, in two processes on one event store. The order of a
 * payment's events is that of their revisions; times are only shown, and never run back within it.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { unresolvedOperations } from '../../shared/payment/state.ts';
import { type Entry, entriesOfEvents } from '../support/ledger-and-log.ts';
import { randomOf } from '../support/random.ts';
import { type CommandResponse, idOf } from '../support/service-in-process.ts';
import {
  type CommandProcess,
  openTwoCommandProcesses,
  type TwoCommandProcesses,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const SEQUENCES = 200;
const DAY_MS = 86_400_000;
const STEPS_MAX = 6;
const PROVIDER_TIMEOUT_MS = 300;
const SETTINGS = {
  RECOVERY_DELAYS_MS: '5,5,5,10,10,20,20,50,50,100,100,200,200,500,500',
  PROVIDER_TIMEOUT_MS: String(PROVIDER_TIMEOUT_MS),
};

const random = randomOf();
const seen = { operations: 0, moves: 0, recovered: 0 };
let processes: TwoCommandProcesses;

beforeAll(async () => {
  processes = await openTwoCommandProcesses(SETTINGS);
});
afterAll(() => processes[Symbol.asyncDispose]());

const now = ({ clock }: CommandProcess): number => clock.standsAtMs ?? Date.now() + clock.aheadMs;

const MOVES = ['a day on', 'a day back', 'stand', 'go on', 'run back'] as const;

const move = (at: CommandProcess): void => {
  const { clock } = at;
  switch (MOVES[random.between(0, MOVES.length - 1)]) {
    case 'a day on':
      clock.aheadMs += DAY_MS;
      break;
    case 'a day back':
      clock.aheadMs -= DAY_MS;
      break;
    case 'stand':
      clock.standsAtMs = now(at);
      break;
    case 'go on':
      clock.standsAtMs = undefined;
      break;
    case 'run back':
      // With each such move it finds it earlier than before.
      clock.standsAtMs = now(at) - random.between(1, 60_000);
  }
  seen.moves += 1;
};

const moveClocks = (): void => {
  for (const at of [processes.a, processes.b]) {
    if (random.chance(0.6)) move(at);
  }
};

const unresolved = async (id: string): Promise<boolean> =>
  unresolvedOperations(await processes.state(id)).length > 0;

/** Sends an operation, sometimes one whose outcome gets lost; waits until it is resolved. */
const operate = async (send: (at: CommandProcess) => Promise<CommandResponse>): Promise<string> => {
  const at = random.chance(0.5) ? processes.a : processes.b;
  const isLost = random.chance(0.15);
  if (isLost) at.faults.next('answer lost');
  at.faults.respondsToLookUps = !isLost;
  const response = await send(at);
  seen.operations += 1;
  expect(response.status).toBe(isLost ? 503 : 200);
  const id = isLost ? (String(response.headers.location).split('/').at(-1) ?? '') : idOf(response);
  if (!isLost) return id;
  moveClocks();
  await until('look-ups go on', () => at.faults.questions > 2);
  at.faults.questions = 0;
  at.faults.respondsToLookUps = true;
  moveClocks();
  await until('the operation is resolved', async () => !(await unresolved(id)));
  seen.recovered += 1;
  return id;
};

const nextOf = async (id: string): Promise<[change: string, body: object] | undefined> => {
  const state = await processes.state(id);
  if (state.status === 'AUTHORIZED') {
    if (random.chance(0.2)) return ['void', {}];
    return ['capture', { captureAmount: random.between(100, 2500) }];
  }
  return state.status === 'CAPTURED'
    ? ['refund', { refundAmount: random.between(1, 20) }]
    : undefined;
};

const expectInOrder = async (id: string): Promise<void> => {
  const events = await processes.events(id);
  expect(events.map(({ revision }) => revision)).toEqual([...events.keys()]);
  const times = events.map(({ time }) => time);
  expect(times).toEqual(times.toSorted());
  const { createdAt, updatedAt, transactions } = JSON.parse(await processes.body(id));
  expect([createdAt, updatedAt]).toEqual([times[0], times.at(-1)]);
  expect(updatedAt >= createdAt).toBe(true);
  const attempts = transactions.map((one: { createdAt: string }) => one.createdAt);
  expect(attempts).toEqual(attempts.toSorted());
};

const sequence = async (n: number): Promise<string> => {
  moveClocks();
  const key = `key-${n}`;
  const id = await operate((at) => at.create({ captureNow: random.chance(0.3) }, { key }));
  for (let step = 1; step < STEPS_MAX; step += 1) {
    moveClocks();
    const next = await nextOf(id);
    if (next === undefined) break;
    await operate((at) => at.change(next[0], id, next[1]));
  }
  await expectInOrder(id);
  return id;
};

test(`${SEQUENCES} sequences under clocks that go wrong keep the order of events, and ledger and log agree`, async () => {
  const ids: string[] = [];
  for (let n = 0; n < SEQUENCES; n += 1) ids.push(await sequence(n));
  const payments = new Map<
    string,
    { state: Awaited<ReturnType<TwoCommandProcesses['state']>>; body: string }
  >();
  for (const id of ids) {
    payments.set(id, { state: await processes.state(id), body: await processes.body(id) });
  }
  const ledger = (await processes.ledger()).map(
    ({ operationId, kind, paymentId, amount, outcome }): Entry =>
      `${operationId} ${kind} ${paymentId} ${amount} ${outcome}`,
  );
  expect(ledger.toSorted()).toEqual(entriesOfEvents(payments));
  await until('the read models are the folds', async () => {
    for (const [id, { body }] of payments) {
      if ((await processes.readModels.getAny(id))?.body !== body) return false;
    }
    return true;
  });
  expect(seen.recovered).toBeGreaterThan(SEQUENCES / 10);
  process.stderr.write(
    `clock: ${SEQUENCES} sequences, ${seen.operations} operations, ` +
      `${seen.moves} moves of a clock, ${seen.recovered} outcomes recovered, 0 out of order\n`,
  );
});

test.each([
  ['a day ahead', DAY_MS],
  ['a day behind', -DAY_MS],
])(
  'gaps §7: a process whose clock is %s resolves what a dead process left unresolved',
  async (_, aheadMs) => {
    const dead = await processes.open();
    dead.faults.respondsToLookUps = false;
    dead.faults.next('answer lost');
    const response = await dead.create();
    const id = String(response.headers.location).split('/').at(-1) ?? '';
    expect(response.status).toBe(503);
    dead.side.unresolved.stopAsking();
    const successor = await processes.open();
    successor.clock.aheadMs = aheadMs;
    successor.side.unresolved.track(id);
    await until('the create is resolved', async () => !(await unresolved(id)));
    expect((await processes.state(id)).status).toBe('AUTHORIZED');
  },
);
