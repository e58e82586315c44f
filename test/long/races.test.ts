/**
 * Faults, races: two command processes on one event store, over a provider that loses answers,
 * with clocks apart, store answers lost and recoveries sweeping at once. Whatever happens: one
 * winner per exclusive step, refunds within what was captured, and both books equal in the end.
 */
import { describe, expect, test } from '@jest/globals';
import type { LedgerEntry } from '../../command-api/provider/port.ts';
import { startSweep } from '../../command-api/recovery/sweep.ts';
import { paymentOf } from '../../shared/payment/payment-events.ts';
import { openOperations } from '../../shared/payment/state.ts';
import { type Answer, idOf } from '../support/in-process.ts';
import { newSeed, type Random, randomOf } from '../support/random.ts';
import { openTwoRooms, type Room, type Rooms } from '../support/two-rooms.ts';
import { until } from '../support/until.ts';

const ROUNDS = Number(process.env.RACE_ROUNDS ?? 50);
const SEED = newSeed();
const TEST_MS = 600_000;
const AT_ONCE = 64;
/** A call elsewhere is waited for 3 s at most, well within a request. */
const HASTY = {
  RECOVERY_DELAYS_MS: '20,200,600000',
  PROVIDER_TIMEOUT_MS: '1000',
  REQUEST_BUDGET_MS: '8000',
};
const STATUSES = [200, 402, 409, 422, 503];

/** One in `of` calls is lost on its way, or its answer is. */
const loseSome = ({ faults, store }: Room, random: Random, of: number): void => {
  for (let n = 0; n < AT_ONCE; n++) {
    if (random.chance(1 / of)) faults.next(random.chance(0.5) ? 'answer lost' : 'call lost');
  }
  store.loseAnswers = random.between(0, 3);
};

const randomChange = (room: Room, id: string, random: Random, round: number): Promise<Answer> => {
  const change = ['capture', 'void', 'refund', 'refund'][random.between(0, 3)] ?? 'refund';
  const amount = change === 'void' ? undefined : { amount: random.between(1, 400) };
  const key = random.chance(0.3) ? { key: `${round}-${change}-${amount?.amount}` } : {};
  return room.change(change, id, random.chance(0.1) ? undefined : amount, key);
};

/** Ends everything that is open, as any later process would. */
const settleAll = async (rooms: Rooms): Promise<void> => {
  for (const { clock, store } of [rooms.a, rooms.b]) {
    clock.aheadMs = 10_000;
    store.loseAnswers = 0;
  }
  const late = await rooms.open();
  late.clock.aheadMs = 10_000;
  const recovery = late.side.recovery;
  const sweep = startSweep({ ...rooms, recovery, logger: { warn: () => undefined } });
  await until(
    'nothing is open',
    async () => {
      await sweep.now();
      return (await rooms.views.unsettled(1)).length === 0;
    },
    60_000,
  );
  sweep.stop();
};

const KINDS = { create: 'AUTHORIZE', capture: 'CAPTURE', void: 'VOID', refund: 'REFUND' } as const;
const lineOf = ({ operationId, kind, amount, outcome }: LedgerEntry): string =>
  `${operationId} ${kind} ${amount} ${outcome}`;

/** What our events say the provider carried out; both books are equal (M5). */
const linesOf = async (rooms: Rooms, id: string): Promise<string[]> => {
  const state = await rooms.state(id);
  if (state.status === 'NONE') throw new Error('no such payment');
  expect(openOperations(state)).toEqual([]);
  return state.operations
    .filter(({ outcome }) => outcome?.result === 'APPROVED' || outcome?.result === 'DECLINED')
    .map(({ operationId, kind, amount, outcome }) => {
      const asked = kind === 'create' && state.captureNow ? 'SALE' : KINDS[kind];
      return `${operationId} ${asked} ${amount} ${outcome?.result}`;
    });
};

const expectWhole = async (rooms: Rooms, id: string): Promise<void> => {
  const ledger = await rooms.ledger(id);
  expect(ledger.map(lineOf).sort()).toEqual((await linesOf(rooms, id)).sort());
  const approved = (kind: string) =>
    ledger.filter((entry) => entry.kind === kind && entry.outcome === 'APPROVED');
  expect(approved('CAPTURE').length + approved('VOID').length).toBeLessThanOrEqual(1);
  const taken = [...approved('CAPTURE'), ...approved('SALE')][0]?.amount ?? 0;
  const givenBack = approved('REFUND').reduce((sum, { amount }) => sum + amount, 0);
  expect(givenBack).toBeLessThanOrEqual(taken);
};

describe(`faults, races: ${ROUNDS} rounds of ${AT_ONCE} at once, two processes (TEST_SEED=${SEED})`, () => {
  test(
    'captures, voids and refunds of one payment, answers lost on every side',
    async () => {
      await using rooms = await openTwoRooms(HASTY);
      const random = randomOf(SEED);
      const quiet = await rooms.open();
      const counts: Record<number, number> = {};
      for (let round = 0; round < ROUNDS; round++) {
        const { a, b } = rooms;
        const id = idOf(await quiet.create({ captureNow: random.chance(0.6) }));
        b.clock.aheadMs = random.between(0, 4_000);
        for (const room of [a, b]) loseSome(room, random, 12);
        const answers = await Promise.all(
          Array.from({ length: AT_ONCE }, (_, n) => randomChange(n % 2 ? a : b, id, random, round)),
        );
        for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
        await settleAll(rooms);
        await expectWhole(rooms, id);
      }
      expect(
        Object.keys(counts)
          .map(Number)
          .filter((status) => !STATUSES.includes(status)),
      ).toEqual([]);
      process.stdout.write(`races: ${ROUNDS} rounds, answers ${JSON.stringify(counts)}\n`);
    },
    TEST_MS,
  );

  test(
    'creates under one key and under one unique reference: one charge for each',
    async () => {
      await using rooms = await openTwoRooms({
        ...HASTY,
        MERCHANT_REFERENCE: 'unique',
      });
      const random = randomOf(SEED + 1);
      for (let round = 0; round < ROUNDS; round++) {
        const { a, b } = rooms;
        b.clock.aheadMs = random.between(0, 4_000);
        for (const room of [a, b]) loseSome(room, random, 20);
        const before = (await rooms.ledger()).length;
        const merchantReference = `order-${round}`;
        const withKey = random.chance(0.5);
        await Promise.all(
          Array.from({ length: AT_ONCE }, (_, n) =>
            (n % 2 ? a : b).create(
              { merchantReference, amount: withKey ? 100 : 1 + (n % 3) },
              withKey ? { key: `key-${round}` } : {},
            ),
          ),
        );
        await settleAll(rooms);
        const charged = (await rooms.ledger()).slice(before);
        expect(charged.length).toBeLessThanOrEqual(1);
        for (const { paymentId } of charged) await expectWhole(rooms, paymentId);
      }
      const streams = new Set(
        (await rooms.store.readAll(null, 100_000)).map(({ stream }) => stream),
      );
      for (const stream of streams) {
        const id = paymentOf(stream);
        if (id !== undefined) await expectWhole(rooms, id);
      }
    },
    TEST_MS,
  );
});
