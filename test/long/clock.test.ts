/**
 * Clocks that jump, stand still and run back, in two processes on one store. What happened first is
 * what has the lower revision; a time is only ever shown, and never runs back within a payment.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openOperations } from '../../shared/payment/state.ts';
import { type Entry, entriesOfEvents } from '../support/books.ts';
import { type Answer, idOf } from '../support/in-process.ts';
import { newSeed, randomOf } from '../support/random.ts';
import { openTwoRooms, type Room, type Rooms } from '../support/two-rooms.ts';
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
let rooms: Rooms;

beforeAll(async () => {
  rooms = await openTwoRooms(SETTINGS);
});
afterAll(() => rooms[Symbol.asyncDispose]());

const now = ({ clock }: Room): number => clock.standsAtMs ?? Date.now() + clock.aheadMs;

const MOVES = ['a day on', 'a day back', 'stand', 'go on', 'run back'] as const;

const move = (room: Room): void => {
  const { clock } = room;
  switch (MOVES[random.between(0, MOVES.length - 1)]) {
    case 'a day on':
      clock.aheadMs += DAY_MS;
      break;
    case 'a day back':
      clock.aheadMs -= DAY_MS;
      break;
    case 'stand':
      clock.standsAtMs = now(room);
      break;
    case 'go on':
      clock.standsAtMs = undefined;
      break;
    case 'run back':
      // With each such move it finds it earlier than before.
      clock.standsAtMs = now(room) - random.between(1, 60_000);
  }
  seen.moves += 1;
};

const moveClocks = (): void => {
  for (const room of [rooms.a, rooms.b]) {
    if (random.chance(0.6)) move(room);
  }
};

const unsettled = async (id: string): Promise<boolean> =>
  openOperations(await rooms.state(id)).length > 0;

/** Sends an operation, now and then one whose outcome gets lost; settled when it resolves. */
const carryOut = async (send: (room: Room) => Promise<Answer>): Promise<string> => {
  const room = random.chance(0.5) ? rooms.a : rooms.b;
  const isLost = random.chance(0.15);
  if (isLost) room.faults.next('answer lost');
  room.faults.answersQuestions = !isLost;
  const answer = await send(room);
  seen.operations += 1;
  expect(answer.status).toBe(isLost ? 503 : 200);
  const id = isLost ? (String(answer.headers.location).split('/').at(-1) ?? '') : idOf(answer);
  if (!isLost) return id;
  moveClocks();
  await until('its ladder climbs', () => room.faults.questions > 2);
  room.faults.questions = 0;
  room.faults.answersQuestions = true;
  moveClocks();
  await until('its ladder ends', async () => !(await unsettled(id)));
  seen.recovered += 1;
  return id;
};

const nextOf = async (id: string): Promise<[change: string, body: object] | undefined> => {
  const state = await rooms.state(id);
  if (state.status === 'AUTHORIZED') {
    if (random.chance(0.2)) return ['void', {}];
    return ['capture', { captureAmount: random.between(100, 2500) }];
  }
  return state.status === 'CAPTURED'
    ? ['refund', { refundAmount: random.between(1, 20) }]
    : undefined;
};

const expectInOrder = async (id: string): Promise<void> => {
  const events = await rooms.events(id);
  expect(events.map(({ revision }) => revision)).toEqual([...events.keys()]);
  const times = events.map(({ time }) => time);
  expect(times).toEqual(times.toSorted());
  const { createdAt, updatedAt, transactions } = JSON.parse(await rooms.body(id));
  expect([createdAt, updatedAt]).toEqual([times[0], times.at(-1)]);
  expect(updatedAt >= createdAt).toBe(true);
  const attempts = transactions.map((one: { createdAt: string }) => one.createdAt);
  expect(attempts).toEqual(attempts.toSorted());
};

const sequence = async (n: number): Promise<string> => {
  moveClocks();
  const key = `key-${n}`;
  const id = await carryOut((room) => room.create({ captureNow: random.chance(0.3) }, { key }));
  for (let step = 1; step < STEPS_MAX; step += 1) {
    moveClocks();
    const next = await nextOf(id);
    if (next === undefined) break;
    await carryOut((room) => room.change(next[0], id, next[1]));
  }
  await expectInOrder(id);
  return id;
};

test(`clock: ${SEQUENCES} sequences under clocks that go wrong (seed ${random.seed})`, async () => {
  const ids: string[] = [];
  for (let n = 0; n < SEQUENCES; n += 1) ids.push(await sequence(n));
  const payments = new Map<string, { state: Awaited<ReturnType<Rooms['state']>>; body: string }>();
  for (const id of ids) {
    payments.set(id, { state: await rooms.state(id), body: await rooms.body(id) });
  }
  const ledger = (await rooms.ledger()).map(
    ({ operationId, kind, paymentId, amount, outcome }): Entry =>
      `${operationId} ${kind} ${paymentId} ${amount} ${outcome}`,
  );
  expect(ledger.toSorted()).toEqual(entriesOfEvents(payments));
  await until('the views are the folds', async () => {
    for (const [id, { body }] of payments) {
      if ((await rooms.views.getAny(id))?.body !== body) return false;
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
])(
  'decisions §7: a process whose clock is %s ends what a dead one left open',
  async (_, aheadMs) => {
    const dead = await rooms.open();
    dead.faults.answersQuestions = false;
    dead.faults.next('answer lost');
    const answer = await dead.create();
    const id = String(answer.headers.location).split('/').at(-1) ?? '';
    expect(answer.status).toBe(503);
    dead.side.recovery.stopAsking();
    const successor = await rooms.open();
    successor.clock.aheadMs = aheadMs;
    successor.side.recovery.track(id);
    await until('it is settled', async () => !(await unsettled(id)), PAST_FLIGHT_MS);
    expect((await rooms.state(id)).status).toBe('AUTHORIZED');
  },
);
