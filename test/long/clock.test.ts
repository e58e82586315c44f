/**
 * Clocks that jump, stand still and run back, in two processes on one store. What happened first is
 * what has the lower revision; a time is only ever shown, and never runs back within a payment.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { unresolvedOperations } from '../../shared/payment/state.ts';
import { type Entry, entriesOfEvents } from '../support/books.ts';
import { type CommandResponse, idOf } from '../support/in-process.ts';
import { newSeed, randomOf } from '../support/random.ts';
import {
  type Deps,
  openTwoCommandSides,
  type TwoCommandSides,
} from '../support/two-command-sides.ts';
import { until } from '../support/until.ts';

const SEQUENCES = 200;
const DAY_MS = 86_400_000;
const STEPS_MAX = 6;
const PROVIDER_TIMEOUT_MS = 300;
/** How long the call of a process that is gone is waited for, and a little. */
const PAST_FLIGHT_MS = PROVIDER_TIMEOUT_MS + 2_000 + 1_000;
const SETTINGS = {
  RECOVERY_DELAYS_MS: '5,5,5,10,10,20,20,50,50,100,100,200,200,500,500',
  PROVIDER_TIMEOUT_MS: String(PROVIDER_TIMEOUT_MS),
};

const random = randomOf(newSeed());
const seen = { operations: 0, moves: 0, recovered: 0 };
let sides: TwoCommandSides;

beforeAll(async () => {
  sides = await openTwoCommandSides(SETTINGS);
});
afterAll(() => sides[Symbol.asyncDispose]());

const now = ({ clock }: Deps): number => clock.standsAtMs ?? Date.now() + clock.aheadMs;

const MOVES = ['a day on', 'a day back', 'stand', 'go on', 'run back'] as const;

const move = (deps: Deps): void => {
  const { clock } = deps;
  switch (MOVES[random.between(0, MOVES.length - 1)]) {
    case 'a day on':
      clock.aheadMs += DAY_MS;
      break;
    case 'a day back':
      clock.aheadMs -= DAY_MS;
      break;
    case 'stand':
      clock.standsAtMs = now(deps);
      break;
    case 'go on':
      clock.standsAtMs = undefined;
      break;
    case 'run back':
      // With each such move it finds it earlier than before.
      clock.standsAtMs = now(deps) - random.between(1, 60_000);
  }
  seen.moves += 1;
};

const moveClocks = (): void => {
  for (const deps of [sides.a, sides.b]) {
    if (random.chance(0.6)) move(deps);
  }
};

const unresolved = async (id: string): Promise<boolean> =>
  unresolvedOperations(await sides.state(id)).length > 0;

/** Sends an operation, now and then one whose outcome gets lost; resolved when it resolves. */
const operate = async (send: (deps: Deps) => Promise<CommandResponse>): Promise<string> => {
  const deps = random.chance(0.5) ? sides.a : sides.b;
  const isLost = random.chance(0.15);
  if (isLost) deps.faults.next('answer lost');
  deps.faults.answersQuestions = !isLost;
  const response = await send(deps);
  seen.operations += 1;
  expect(response.status).toBe(isLost ? 503 : 200);
  const id = isLost ? (String(response.headers.location).split('/').at(-1) ?? '') : idOf(response);
  if (!isLost) return id;
  moveClocks();
  await until('its retry schedule climbs', () => deps.faults.questions > 2);
  deps.faults.questions = 0;
  deps.faults.answersQuestions = true;
  moveClocks();
  await until('its retry schedule ends', async () => !(await unresolved(id)));
  seen.recovered += 1;
  return id;
};

const nextOf = async (id: string): Promise<[change: string, body: object] | undefined> => {
  const state = await sides.state(id);
  if (state.status === 'AUTHORIZED') {
    if (random.chance(0.2)) return ['void', {}];
    return ['capture', { captureAmount: random.between(100, 2500) }];
  }
  return state.status === 'CAPTURED'
    ? ['refund', { refundAmount: random.between(1, 20) }]
    : undefined;
};

const expectInOrder = async (id: string): Promise<void> => {
  const events = await sides.events(id);
  expect(events.map(({ revision }) => revision)).toEqual([...events.keys()]);
  const times = events.map(({ time }) => time);
  expect(times).toEqual(times.toSorted());
  const { createdAt, updatedAt, transactions } = JSON.parse(await sides.body(id));
  expect([createdAt, updatedAt]).toEqual([times[0], times.at(-1)]);
  expect(updatedAt >= createdAt).toBe(true);
  const attempts = transactions.map((one: { createdAt: string }) => one.createdAt);
  expect(attempts).toEqual(attempts.toSorted());
};

const sequence = async (n: number): Promise<string> => {
  moveClocks();
  const key = `key-${n}`;
  const id = await operate((deps) => deps.create({ captureNow: random.chance(0.3) }, { key }));
  for (let step = 1; step < STEPS_MAX; step += 1) {
    moveClocks();
    const next = await nextOf(id);
    if (next === undefined) break;
    await operate((deps) => deps.change(next[0], id, next[1]));
  }
  await expectInOrder(id);
  return id;
};

test(`clock: ${SEQUENCES} sequences under clocks that go wrong (seed ${random.seed})`, async () => {
  const ids: string[] = [];
  for (let n = 0; n < SEQUENCES; n += 1) ids.push(await sequence(n));
  const payments = new Map<
    string,
    { state: Awaited<ReturnType<TwoCommandSides['state']>>; body: string }
  >();
  for (const id of ids) {
    payments.set(id, { state: await sides.state(id), body: await sides.body(id) });
  }
  const ledger = (await sides.ledger()).map(
    ({ operationId, kind, paymentId, amount, outcome }): Entry =>
      `${operationId} ${kind} ${paymentId} ${amount} ${outcome}`,
  );
  expect(ledger.toSorted()).toEqual(entriesOfEvents(payments));
  await until('the read models are the folds', async () => {
    for (const [id, { body }] of payments) {
      if ((await sides.readModels.getAny(id))?.body !== body) return false;
    }
    return true;
  });
  expect(seen.recovered).toBeGreaterThan(SEQUENCES / 10);
  process.stderr.write(
    `clock: seed ${random.seed}, ${SEQUENCES} sequences, ${seen.operations} operations, ` +
      `${seen.moves} moves of a clock, ${seen.recovered} outcomes recovered, 0 out of order\n`,
  );
}, 120_000);

test.each([
  ['a day ahead', DAY_MS],
  ['a day behind', -DAY_MS],
])('gaps §7: a process whose clock is %s ends what a dead one left open', async (_, aheadMs) => {
  const dead = await sides.open();
  dead.faults.answersQuestions = false;
  dead.faults.next('answer lost');
  const response = await dead.create();
  const id = String(response.headers.location).split('/').at(-1) ?? '';
  expect(response.status).toBe(503);
  dead.side.unresolved.stopAsking();
  const successor = await sides.open();
  successor.clock.aheadMs = aheadMs;
  successor.side.unresolved.track(id);
  await until('it is resolved', async () => !(await unresolved(id)), PAST_FLIGHT_MS);
  expect((await sides.state(id)).status).toBe('AUTHORIZED');
});
