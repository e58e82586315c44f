/**
 * Faults, races: two command processes on one event store, over a provider that loses answers,
 * with clocks apart, lost responses of the event store and both recoveries at work. Still one command
 * wins each exclusive step, refunds stay within the capture, and ledger and log agree in the end.
 */
import { describe, expect, test } from '@jest/globals';
import { startSweep } from '../../command-api/recovery/sweep.ts';
import type { LedgerEntry } from '../../providers/port.ts';
import { unresolvedOperations } from '../../shared/payment/state.ts';
import { type Random, randomOf } from '../support/random.ts';
import { type CommandResponse, idOf } from '../support/service-in-process.ts';
import {
  type CommandProcess,
  openTwoCommandProcesses,
  type TwoCommandProcesses,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const ROUNDS = Number(process.env.RACE_ROUNDS ?? 50);
const AT_ONCE = 64;
/** A call in flight elsewhere is waited for 3 s at most, well within the budget of a request. */
const HASTY = {
  RECOVERY_DELAYS_MS: '20,200,600000',
  PROVIDER_TIMEOUT_MS: '1000',
  REQUEST_BUDGET_MS: '8000',
};
const STATUSES = [200, 402, 409, 422, 503];

/** About one in `of` provider calls is lost, or its response is. */
const loseSome = ({ faults, store }: CommandProcess, random: Random, of: number): void => {
  for (let n = 0; n < AT_ONCE; n++) {
    if (random.chance(1 / of)) faults.next(random.chance(0.5) ? 'answer lost' : 'call lost');
  }
  store.loseResponses = random.between(0, 3);
};

const randomChange = (
  at: CommandProcess,
  id: string,
  random: Random,
  round: number,
): Promise<CommandResponse> => {
  const change = ['capture', 'void', 'refund', 'refund'][random.between(0, 3)] ?? 'refund';
  const amount = change === 'void' ? undefined : { amount: random.between(1, 400) };
  const key = random.chance(0.3) ? { key: `${round}-${change}-${amount?.amount}` } : {};
  return at.change(change, id, random.chance(0.1) ? undefined : amount, key);
};

/** Resolves every unresolved operation, as a later process would. */
const resolveAll = async (processes: TwoCommandProcesses): Promise<void> => {
  for (const { clock, store } of [processes.a, processes.b]) {
    clock.aheadMs = 10_000;
    store.loseResponses = 0;
  }
  const late = await processes.open();
  late.clock.aheadMs = 10_000;
  const { unresolved } = late.side;
  const sweep = startSweep({ ...processes, unresolved, logger: { warn: () => undefined } });
  await until('nothing is unresolved', async () => {
    await sweep.now();
    return (await processes.readModels.unresolved(1)).length === 0;
  });
  sweep.stop();
};

const KINDS = { create: 'AUTHORIZE', capture: 'CAPTURE', void: 'VOID', refund: 'REFUND' } as const;
const lineOf = ({ operationId, kind, amount, outcome }: LedgerEntry): string =>
  `${operationId} ${kind} ${amount} ${outcome}`;

/** What our events say the provider carried out; ledger and log are equal (M5). */
const linesOf = async (processes: TwoCommandProcesses, id: string): Promise<string[]> => {
  const state = await processes.state(id);
  expect(unresolvedOperations(state)).toEqual([]);
  return state.operations
    .filter(({ ended }) => ended?.outcome === 'APPROVED' || ended?.outcome === 'DECLINED')
    .map(({ operationId, kind, amount, ended }) => {
      const providerKind = kind === 'create' && state.captureNow ? 'SALE' : KINDS[kind];
      return `${operationId} ${providerKind} ${amount} ${ended?.outcome}`;
    });
};

const expectWhole = async (processes: TwoCommandProcesses, id: string): Promise<void> => {
  const ledger = await processes.ledger(id);
  expect(ledger.map(lineOf).sort()).toEqual((await linesOf(processes, id)).sort());
  const approved = (kind: string) =>
    ledger.filter((entry) => entry.kind === kind && entry.outcome === 'APPROVED');
  expect(approved('CAPTURE').length + approved('VOID').length).toBeLessThanOrEqual(1);
  const captured = [...approved('CAPTURE'), ...approved('SALE')][0]?.amount ?? 0;
  const refunded = approved('REFUND').reduce((sum, { amount }) => sum + amount, 0);
  expect(refunded).toBeLessThanOrEqual(captured);
};

describe(`faults, races: ${ROUNDS} rounds of ${AT_ONCE} at once, two processes`, () => {
  test('M2, M3, M5: captures, voids and refunds of one payment, with responses of provider and event store lost', async () => {
    await using processes = await openTwoCommandProcesses(HASTY);
    const random = randomOf();
    const faultless = await processes.open();
    const counts: Record<number, number> = {};
    for (let round = 0; round < ROUNDS; round++) {
      const { a, b } = processes;
      const id = idOf(await faultless.create({ captureNow: random.chance(0.6) }));
      b.clock.aheadMs = random.between(0, 4_000);
      for (const at of [a, b]) loseSome(at, random, 12);
      const responses = await Promise.all(
        Array.from({ length: AT_ONCE }, (_, n) => randomChange(n % 2 ? a : b, id, random, round)),
      );
      for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
      await resolveAll(processes);
      await expectWhole(processes, id);
    }
    expect(
      Object.keys(counts)
        .map(Number)
        .filter((status) => !STATUSES.includes(status)),
    ).toEqual([]);
    process.stdout.write(`races: ${ROUNDS} rounds, answers ${JSON.stringify(counts)}\n`);
  });
});
