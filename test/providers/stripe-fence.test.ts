/** The fence against what Stripe does meanwhile. A call beside its fence: fencing.cases.ts. */
import { expect, test } from '@jest/globals';
import type { ProviderOperation } from '../../providers/port.ts';
import { authorize, followUp } from '../support/provider-operations.ts';
import { createBooks } from '../support/stripe-double/books.ts';
import {
  approvedBy,
  askOnce,
  driverOver,
  executed,
  keepIt,
  overDouble,
  prepared,
  questionOf,
  STEPS_OF,
  stepsAt,
  TEST_ACCOUNT,
  timesMovedIn,
} from '../support/stripe-fault-rounds.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;
const over = overDouble();

const moved = (operation: ProviderOperation): number =>
  timesMovedIn(over.double.books.all(), operation);
const fenced = async (operation: ProviderOperation, reference?: string) =>
  (await over.provider.fence(questionOf(operation, reference))).outcome;
/** A refund that Stripe declined, and whose response was lost. */
const lostDecline = async () => {
  const refund = { ...(await prepared(over.provider, 'REFUND')), amount: 2001 };
  over.double.plan('refund', 'reset after acting');
  expect((await over.provider.execute(refund, keepIt)).outcome).toBe('UNKNOWN');
  return refund;
};
/** Opened, and its confirm never arrived. */
const neverConfirmed = async () => {
  const operation = authorize();
  over.double.plan('confirm', 'reset before acting');
  const { reference = '' } = await executed(over.provider, operation);
  return { operation, reference };
};

test.each(['SALE', 'AUTHORIZE', 'CAPTURE', 'VOID', 'REFUND'] as const)(
  'a %s that Stripe still works on is unknown until it acted, and is found then',
  async (kind) => {
    const operation = await prepared(over.provider, kind);
    const act = over.double.hold();
    let reference: string | undefined;
    const call = over.provider.execute(operation, async (opened) => {
      reference = opened;
    });
    const moving = STEPS_OF[kind].at(-1);
    await until('it is at Stripe', () => stepsAt(over.double).includes(moving));
    expect(await fenced(operation, reference)).toBe('UNKNOWN');
    act();
    expect((await call).outcome).toBe('APPROVED');
    expect([await fenced(operation, reference), moved(operation)]).toEqual(['APPROVED', 1]);
  },
);

/** In hours after the refund was requested. */
test.each<[string, boolean, [hours: number, outcome: string][]]>([
  [
    'an update that takes the key and gets a 500 is replayed',
    true,
    [
      [0, 'UNKNOWN'],
      [22, 'UNKNOWN'],
      [24.9, 'UNKNOWN'],
      [25, 'FENCED'],
    ],
  ],
  [
    'nothing is concluded from a key of 23 hours, nor from no trace before 25',
    false,
    [
      [23, 'UNKNOWN'],
      [24.9, 'UNKNOWN'],
      [25, 'FENCED'],
    ],
  ],
])('keys live a day: %s', async (_name, fails, hours) => {
  const question = questionOf(await prepared(over.provider, 'REFUND'));
  if (fails) over.double.plan('update', '500 before acting');
  for (const [age, outcome] of hours) {
    over.aheadMs = Date.parse(question.requestedAt) + age * HOUR_MS - Date.now();
    expect([age, (await over.provider.fence(question)).outcome]).toEqual([age, outcome]);
  }
  expect(stepsAt(over.double).includes('update')).toBe(fails);
});

test('with a clock four hours ahead a declined refund may end as fenced: no money either way', async () => {
  const question = questionOf(await lostDecline());
  over.aheadMs = 22 * HOUR_MS;
  const declined = { outcome: 'DECLINED', failureCode: 'LIMIT_EXCEEDED' };
  expect(await over.provider.fence(question)).toMatchObject(declined);
  over.aheadMs += 4 * HOUR_MS;
  expect((await over.provider.fence(question)).outcome).toBe('FENCED');
  expect(over.double.books.refunds).toEqual([]);
});

test('a replay in the moment in which Stripe prunes the key carries the refund out: it is found', async () => {
  const refund = await lostDecline();
  // The merchant's balance allows it meanwhile.
  const [intent] = over.double.books.intents.values();
  Object.assign(intent ?? {}, { amount_received: 2001 });
  const { received, prune } = over.double;
  received.push = (...requests) => {
    if (requests.some(({ step }) => step === 'refund')) prune();
    return Array.prototype.push.apply(received, requests);
  };
  expect(await fenced(refund)).toBe('UNKNOWN');
  expect(await askOnce(over.provider, questionOf(refund))).toBe('APPROVED');
  expect(moved(refund)).toBe(1);
});

test('a request of another form under the key, as of an earlier version, is never sent again: unknown', async () => {
  const refund = await lostDecline();
  expect(await fenced({ ...refund, paymentId: 'pay_in_another_form' })).toBe('UNKNOWN');
  expect(over.double.books.refunds).toEqual([]);
});

test('an account above its rate: nothing is sent or fenced there, and other accounts go on', async () => {
  const limited = { ...TEST_ACCOUNT, account: 'acct_1', name: 'acct_1' };
  const accounts = { installation: TEST_ACCOUNT, merchants: new Map([['m_limited', limited]]) };
  const several = driverOver(over.double.url, { accounts });
  const books = over.double.openAccount('acct_1', createBooks());
  const sale = authorize(undefined, { kind: 'SALE', merchantId: 'm_limited' });
  const { authorizationReference } = await approvedBy(several, sale);
  const refund = followUp('REFUND', sale, { authorizationReference });
  over.double.limitRates({ endpoint: 0, all: 0 }, 'acct_1');
  const reason = 'rate_limited';
  const notSent = { outcome: 'NOT_SENT', byProvider: true, reason, account: 'acct_1' };
  expect(await several.execute(refund, keepIt)).toEqual(notSent);
  const unknown = { outcome: 'UNKNOWN', reason };
  expect(await several.fence(questionOf(refund))).toMatchObject(unknown);
  expect((await several.execute(authorize(), keepIt)).outcome).toBe('APPROVED');
  over.double.limitRates({ endpoint: 25, all: 100 }, 'acct_1');
  expect((await several.fence(questionOf(refund))).outcome).toBe('FENCED');
  expect(books.refunds).toEqual([]);
  await several.close();
});

test('gaps §21: finds a shopper who fails in its midst declined, as the ledger has it, also when asked again', async () => {
  const authentication = { returnUrl: 'https://shop.example/back' };
  const operation = authorize('4000002760003184', { authentication });
  const { outcome: begun, reference = '' } = await executed(over.provider, operation);
  expect(begun.outcome).toBe('ACTION_REQUIRED');
  const waitsUntil = new Date().toISOString();
  const question = { ...questionOf(operation, reference), waitsUntil };
  const act = over.double.hold();
  const fence = over.provider.fence(question);
  await until('it cancels', () => stepsAt(over.double).at(-1) === 'cancel');
  over.double.books.authenticate(reference, false);
  act();
  const declined = { outcome: 'DECLINED', failureCode: 'AUTHENTICATION_REQUIRED' };
  expect(await fence).toMatchObject(declined);
  expect(over.double.books.intents.get(reference)?.status).toBe('canceled');
  expect(await over.provider.lookUp(question)).toMatchObject(declined);
  expect(await over.provider.fence(question)).toMatchObject(declined);
  const { entries } = await over.provider.ledger(null, 10);
  expect(entries).toMatchObject([{ operationId: operation.operationId, ...declined }]);
});

test.each([
  ['SALE', 0],
  ['SALE', -10],
  ['SALE', 10],
  ['AUTHORIZE', 0],
] as const)(
  'finds a %s whose reference was lost, without search, with a clock of ours that is %p minutes off, or was',
  async (kind, minutes) => {
    const operation = authorize(undefined, { kind });
    over.aheadMs = minutes * 60_000;
    await over.provider.execute(operation, keepIt);
    over.double.books.dashboard.open();
    over.double.endSearch();
    for (const atMs of [Date.now() + over.aheadMs, Date.now()]) {
      const question = questionOf(operation, undefined, atMs);
      expect((await over.provider.fence(question)).outcome).toBe('APPROVED');
    }
    expect(moved(operation)).toBe(1);
    expect(await fenced(authorize())).toBe('FENCED');
    over.double.plan('list', '500 before acting');
    expect(await fenced(authorize())).toBe('UNKNOWN');
  },
);

test('cancels again where Stripe failed: its stored 500 does not stand for a day', async () => {
  const { operation, reference } = await neverConfirmed();
  over.double.plan('cancel', '500 before acting');
  expect(await fenced(operation, reference)).toBe('UNKNOWN');
  expect(await fenced(operation, reference)).toBe('FENCED');
});

test('of a create names it before its cancel, and cancels nothing that it could not name', async () => {
  const { operation, reference } = await neverConfirmed();
  const status = () => over.double.books.intents.get(reference)?.status;
  for (const fault of ['500 before acting', 'reset after acting'] as const) {
    over.double.plan('update', fault);
    expect(await fenced(operation, reference)).toBe('UNKNOWN');
    expect(status()).toBe('requires_payment_method');
  }
  // Named and not canceled, as after the end of the process in between.
  over.double.received.length = 0;
  expect(await fenced(operation, reference)).toBe('FENCED');
  expect(stepsAt(over.double)).toEqual(['read', 'update', 'cancel', 'read']);
  expect(status()).toBe('canceled');
});

test.each<[string, string, (operationId: string) => string | undefined, 'FENCED' | 'APPROVED']>([
  ['our own fence', 'abandoned', (operationId) => operationId, 'FENCED'],
  ['a fence of an earlier version', 'abandoned', () => undefined, 'FENCED'],
  ['the Dashboard', 'abandoned', () => 'none', 'APPROVED'],
  ['the Dashboard after the fence of a capture', 'abandoned', () => 'op_capture', 'APPROVED'],
  ['Stripe', 'automatic', () => 'none', 'APPROVED'],
])('a hold that %s released (%s)', async (_who, cancellation_reason, nameOf, outcome) => {
  const { operation, reference } = await approvedBy(over.provider, authorize());
  const { operationId } = operation;
  const intent = over.double.books.intents.get(reference);
  // JSON leaves out a name that is undefined.
  const metadata = { ...intent?.metadata, fencedOperationId: nameOf(operationId) };
  Object.assign(intent ?? {}, { status: 'canceled', cancellation_reason, metadata });
  expect(await fenced(operation, reference)).toBe(outcome);
  const { entries } = await over.provider.ledger(null, 10);
  const isKept = outcome === 'APPROVED';
  expect(entries.some((one) => one.operationId === operationId)).toBe(isKept);
});
