/** gaps §15, §28: each look for what was made elsewhere begins where the last one that was told all began. */
import { afterAll, expect, test } from '@jest/globals';
import type { KnownDispute, MadeElsewhere } from '../../providers/port.ts';
import { minor } from '../../shared/payment/transitions.ts';
import { idOf, locatedId } from '../support/service-in-process.ts';
import { authorizedAt, openTwoCommandProcesses, warmUp } from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;
let said: MadeElsewhere = { outcome: 'FOUND', made: [] };
let disputes: KnownDispute[] = [];
let isLedgerRead = true;
const looks: { hoursAgo: number }[] = [];
const nowMs = (): number => Date.now() + processes.a.clock.aheadMs;
const processes = await openTwoCommandProcesses({ RECONCILE_INTERVAL_MS: '250' }, (own) => ({
  ...own,
  madeElsewhere: async (sinceMs) => {
    looks.push({ hoursAgo: Math.round((nowMs() - sinceMs) / HOUR_MS) });
    return said;
  },
  disputes: async () => disputes,
  ledger: (...range) =>
    isLedgerRead ? own.ledger(...range) : Promise.reject(new Error('out of reach')),
}));
const passing = setInterval(() => {
  processes.a.clock.aheadMs += 50;
}, 50);
afterAll(() => {
  clearInterval(passing);
  return processes[Symbol.asyncDispose]();
});

/** The time that the next look but one begins at: the next one may have begun already. */
const hoursAgo = async (): Promise<number | undefined> => {
  const before = looks.length;
  await until('it has looked twice', () => looks.length >= before + 2);
  return looks.at(-1)?.hoursAgo;
};

test('it is a day back at first, and goes on once each account and each payment was told', async () => {
  const { a } = processes;
  await warmUp(a);
  const paymentId = await authorizedAt(a);
  await a.side.start();
  await until('it has looked', () => looks.length > 0);
  expect(looks[0]).toEqual({ hoursAgo: 24 });
  expect(await hoursAgo()).toBe(0);

  said = { outcome: 'UNKNOWN', reason: 'status', made: [] };
  await hoursAgo();
  a.clock.aheadMs = 2 * HOUR_MS;
  expect(await hoursAgo()).toBe(2);
  expect(a.lines.map(({ message }) => message)).toContain(
    'captures, cancels and refunds made elsewhere could not all be looked for; the next look begins where this one did',
  );

  said = { outcome: 'FOUND', made: [{ paymentId }, { paymentId }, { paymentId: 'pay_of_others' }] };
  a.faults.respondsToLookUps = false;
  expect(await hoursAgo()).toBe(2);
  expect((await processes.state(paymentId)).status).toBe('AUTHORIZED');

  const captured = { kind: 'CAPTURE_OBSERVED', reference: 'ref_1', amount: minor(700) } as const;
  a.faults.later.set(paymentId, [captured]);
  a.faults.respondsToLookUps = true;
  expect(await hoursAgo()).toBe(0);
  expect(await processes.body(paymentId)).toContain('"capturedAmount":700');
  const questions = a.faults.questions;
  expect(await hoursAgo()).toBe(0);
  expect(a.faults.questions).toBe(questions);
});

test('a payment that recovery still asks about is asked about by a later look', async () => {
  const { a } = processes;
  a.faults.respondsToLookUps = false;
  a.faults.next('answer lost');
  const paymentId = locatedId(await a.create());
  said = { outcome: 'FOUND', made: [{ paymentId }] };
  await hoursAgo();
  a.clock.aheadMs += 2 * HOUR_MS;
  expect(await hoursAgo()).toBe(2);

  const captured = { kind: 'CAPTURE_OBSERVED', reference: 'ref_2', amount: minor(800) } as const;
  a.faults.later.set(paymentId, [captured]);
  a.faults.respondsToLookUps = true;
  const isKnown = async () => (await processes.state(paymentId)).status !== 'PENDING';
  await until('recovery has the outcome', isKnown);
  expect(await hoursAgo()).toBe(0);
  expect(await processes.body(paymentId)).toContain('"capturedAmount":800');
});

test('it is never more than a day back, nor does a clock that was ahead hide anything', async () => {
  const { a } = processes;
  said = { outcome: 'UNKNOWN', reason: 'forbidden', made: [] };
  await hoursAgo();
  a.clock.aheadMs = 80 * HOUR_MS;
  expect(await hoursAgo()).toBe(24);
  said = { outcome: 'FOUND', made: [] };
  expect(await hoursAgo()).toBe(0);
  said = { outcome: 'UNKNOWN', reason: 'status', made: [] };
  a.clock.aheadMs = 40 * HOUR_MS;
  expect(await hoursAgo()).toBe(24);
});

test('a refund and a dispute are recorded by a look, also where no ledger can be compared', async () => {
  const { a } = processes;
  isLedgerRead = false;
  const paymentId = idOf(await a.create({ captureNow: true }));
  const dispute = {
    kind: 'DISPUTE',
    disputeId: 'dp_1',
    amount: minor(900),
    reason: 'fraudulent',
    status: 'OPEN',
  } as const;
  const refund = { kind: 'REFUND_OBSERVED', refundId: 're_1', amount: minor(300) } as const;
  a.faults.later.set(paymentId, [refund]);
  said = { outcome: 'FOUND', made: [{ paymentId, refundId: refund.refundId }] };
  const shows = async (text: string) => (await processes.body(paymentId)).includes(text);
  await until('the refund is recorded', () => shows('"refundedAmount":300'));
  const { questions } = a.faults;
  await hoursAgo();
  expect(a.faults.questions).toBe(questions);
  a.faults.later.set(paymentId, [refund, dispute]);
  disputes = [{ ...dispute, paymentId, currency: 'USD' }];
  await until('the dispute is recorded', () => shows('"status":"OPEN"'));
});
