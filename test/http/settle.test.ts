/**
 * Decision 0013: what is unresolved is listed, and a person ends what the provider will never
 * answer for, with evidence, and never against the provider's own word.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { AT_WORK } from '../../command-api/provider/port.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import {
  type Answer,
  type Asking,
  expectError,
  idOf,
  NO_LADDER,
  PAYMENTS,
  signToken,
} from '../support/in-process.ts';
import { openTwoRooms, type Room, type Rooms } from '../support/two-rooms.ts';
import { until } from '../support/until.ts';

let rooms: Rooms;
let ops: Asking;
let all: Asking;

const opsToken = (merchant: string) =>
  signToken({ merchant_id: merchant, sub: 'jane', scope: 'ops:admin' });

beforeAll(async () => {
  rooms = await openTwoRooms(NO_LADDER);
  ops = { token: await opsToken('m_test') };
  all = { token: await opsToken('*') };
});
beforeEach(() => {
  for (const { faults, clock } of [rooms.a, rooms.b]) {
    faults.answersQuestions = true;
    clock.aheadMs = 0;
  }
});
afterAll(() => rooms[Symbol.asyncDispose]());

const locationOf = ({ headers }: Answer): string =>
  String(headers.location).replace(`${PAYMENTS}/`, '');

/** A create, or a change, that the provider acts on or not, and never answers for again. */
const neverAnswered = async (
  send: (room: Room) => Promise<Answer> = (room) => room.create(),
  fault: 'answer lost' | 'call lost' = 'call lost',
): Promise<string> => {
  const { a } = rooms;
  a.faults.answersQuestions = false;
  a.faults.next(fault);
  const asked = a.faults.questions;
  const answer = await send(a);
  expect(answer.status).toBe(503);
  await until('recovery has asked', () => a.faults.questions > asked);
  return locationOf(answer);
};

const EVIDENCE = 'letter of the provider, case 4711';
const settle = (id: string, outcome: unknown, more: object = {}, asking = all, room = rooms.a) =>
  room.ask(
    'POST',
    `/ops/v1/payments/${id}/settle`,
    { outcome, evidence: EVIDENCE, ...more },
    asking,
  );
const expectRefused = (answer: Answer, why: unknown): void =>
  expectError(answer, 422, 'BUSINESS_RULE_VIOLATION', [why]);

describe('a person’s word is recorded as the outcome, with actor and evidence', () => {
  test.each([
    ['approved', 'AUTHORIZED', 'PaymentAuthorized'],
    ['declined', 'FAILED', 'PaymentFailed'],
  ])('a create: %s, now %s', async (outcome, status, type) => {
    const id = await neverAnswered();
    const answer = await settle(id, outcome);
    const [intent, ended] = await rooms.events(id);
    expect([answer.status, answer.json]).toEqual([
      200,
      {
        paymentId: id,
        operation: 'create',
        operationId: intent?.event.data.operationId,
        amountMinor: 2500,
        outcome: outcome.toUpperCase(),
        status,
        revision: 1,
      },
    ]);
    expect(ended).toMatchObject({
      event: { type, data: { settlement: { evidence: EVIDENCE } } },
      context: {
        actor: 'jane',
        requestId: answer.headers['request-id'],
        causationId: intent?.id,
      },
    });
    expect(rooms.a.side.recovery.list().map(({ paymentId }) => paymentId)).not.toContain(id);
  });

  test('a sale: both of its events say so', async () => {
    const id = await neverAnswered((room) => room.create({ captureNow: true }));
    expect((await settle(id, 'approved')).json).toMatchObject({ status: 'CAPTURED', revision: 2 });
    const [, ...ended] = await rooms.events(id);
    for (const { event } of ended) expect(event.data).toHaveProperty('settlement');
    expect(await rooms.state(id)).toMatchObject({ capturedAmount: 2500, refundedAmount: 0 });
  });

  test('a decline keeps the payment, and its key is not free: the word is the stored outcome', async () => {
    const id = idOf(await rooms.a.create({ captureNow: true }));
    const refund = (room: Room) => room.change('refund', id, undefined, { key: 'k' });
    await neverAnswered(refund);
    expect((await settle(id, 'declined')).json).toMatchObject({ status: 'CAPTURED' });
    const repeat = await refund(rooms.b);
    expect([repeat.status, repeat.headers['idempotent-replayed']]).toEqual([422, 'true']);
    expect(await rooms.ledger(id)).toHaveLength(1);
  });

  test('the payment’s body says nothing of the person', async () => {
    const id = await neverAnswered();
    await settle(id, 'approved');
    expect(await rooms.body(id)).not.toMatch(/jane|4711|settle|evidence/);
  });
});

describe('it is refused', () => {
  test('while the provider says that it is still at work, for a day', async () => {
    const { provider } = rooms.a.side;
    const { lookUp } = provider;
    const id = await neverAnswered();
    provider.lookUp = async () => ({ outcome: 'UNKNOWN', reason: AT_WORK });
    try {
      const answer = await settle(id, 'declined');
      expectRefused(answer, expect.stringContaining('still works on it'));
      expect(answer.headers).toMatchObject({ 'retry-after': '60' });
      rooms.a.clock.aheadMs = 86_400_000;
      expect((await settle(id, 'declined')).status).toBe(200);
    } finally {
      provider.lookUp = lookUp;
    }
  });

  test('where nothing is open', async () => {
    const id = idOf(await rooms.a.create());
    const why = 'nothing is open on this payment: every operation has its outcome';
    expectRefused(await settle(id, 'approved'), why);
    const open = await neverAnswered();
    expect((await settle(open, 'declined')).status).toBe(200);
    expectRefused(await settle(open, 'declined'), why);
  });

  test.each([
    ['answer lost', 'approved', 'AUTHORIZED'],
    ['call lost', 'never carried out', 'FAILED'],
  ] as const)(
    'where the provider answers itself (%s): %s is recorded',
    async (fault, word, status) => {
      const id = await neverAnswered((room) => room.create(), fault);
      rooms.a.faults.answersQuestions = true;
      expectRefused(
        await settle(id, 'declined'),
        `the provider has answered for the create itself, and that is recorded: ${word}`,
      );
      expect((await rooms.state(id)).status).toBe(status);
      const ended = (await rooms.events(id))[1];
      expect(ended?.context.actor).toBe('recovery');
      expect(ended?.event.data).not.toHaveProperty('settlement');
    },
  );

  test('while its call may still run in another process, with Retry-After', async () => {
    const { a, b } = rooms;
    const held = a.faults.holdNext();
    const creating = a.create();
    await held.begun;
    const paymentId = a.faults.calls.at(-1)?.paymentId ?? '';
    const answer = await settle(paymentId, 'declined', {}, all, b);
    expectRefused(
      answer,
      'its call to the provider may still run; try again when it must have ended',
    );
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(3);
    held.release();
    expect((await creating).status).toBe(200);
  });

  test('where several are open and none is named; then the one that is meant', async () => {
    const id = idOf(await rooms.a.create({ captureNow: true }));
    for (const refundAmount of [100, 200])
      await neverAnswered((room) => room.change('refund', id, { refundAmount }));
    const [first, second] = rooms.a.side.recovery.list().filter((o) => o.paymentId === id);
    expectRefused(
      await settle(id, 'approved'),
      expect.stringContaining(`${first?.operationId} (refund of 100), ${second?.operationId}`),
    );
    expectRefused(
      await settle(id, 'approved', { operationId: 'op_other' }),
      expect.stringContaining('that operation is not open'),
    );
    const settled = await settle(id, 'approved', { operationId: second?.operationId });
    expect(settled.json).toMatchObject({ amountMinor: 200, status: 'CAPTURED' });
    expect(rooms.a.side.recovery.list().filter((o) => o.paymentId === id)).toHaveLength(1);
  });

  test.each<[string, object, unknown]>([
    ['no outcome', { outcome: undefined }, 'outcome must be one of approved, declined'],
    ['another outcome', { outcome: 'maybe' }, 'outcome must be one of approved, declined'],
    ['no evidence', { evidence: ' ' }, 'evidence must be 1 to 1000 characters'],
    [
      'a card number in the evidence',
      { evidence: 'card 4242 4242-4242 4242' },
      'evidence must not hold a run of 12 digits or more: no card number may be kept',
    ],
    ['anything else', { x: 1 }, 'the body must hold outcome, evidence and at most operationId'],
  ])('malformed: %s', async (_name, body, why) => {
    expectError(await settle('pay_x', 'approved', body), 400, 'INVALID_REQUEST', [why]);
  });

  test('without the scope, and for another merchant’s payment', async () => {
    const id = await neverAnswered();
    const asOther = { token: await opsToken('m_other') };
    expect((await settle(id, 'declined', {}, {})).status).toBe(403);
    expectError(await settle(id, 'declined', {}, asOther), 404, 'PAYMENT_NOT_FOUND');
    expectError(await settle('pay_none', 'declined', {}, asOther), 404, 'PAYMENT_NOT_FOUND');
    expect((await settle(id, 'declined', {}, ops)).status).toBe(200);
  });
});

describe('GET /ops/v1/unsettled', () => {
  const list = async (room: Room, asking: Asking = all) =>
    (await room.ask('GET', '/ops/v1/unsettled', undefined, asking)).json as unknown as {
      unsettled: { paymentId: string; tries: number; nextTryAt: string | null }[];
    };

  test('shows what this process follows, and of other processes what the views list', async () => {
    const id = await neverAnswered();
    await until('the views have it', async () =>
      (await rooms.views.unsettled(100)).some(({ paymentId }) => paymentId === id),
    );
    const find = async (room: Room, asking?: Asking) =>
      (await list(room, asking)).unsettled.filter(({ paymentId }) => paymentId === id);
    const [intent] = await rooms.store.readStream(streamOf(id));
    const common = {
      paymentId: id,
      merchantId: 'm_test',
      operation: 'create',
      operationId: intent?.event.data.operationId,
      amountMinor: 2500,
      since: intent?.time,
    };
    await until('the first try', async () => (await find(rooms.a))[0]?.tries === 1);
    expect(await find(rooms.a)).toEqual([
      { ...common, tries: 1, nextTryAt: expect.stringContaining('T') },
    ]);
    // In flight for all the other one knows, so not unresolved yet.
    expect(await find(rooms.b)).toEqual([]);
    rooms.b.clock.aheadMs = 7_100;
    expect(await find(rooms.b)).toEqual([{ ...common, tries: 0, nextTryAt: null }]);
    expect(await find(rooms.a, ops)).toHaveLength(1);
    expect(await find(rooms.a, { token: await opsToken('m_other') })).toEqual([]);
  });

  test('needs the scope ops:admin', async () => {
    expect((await rooms.a.ask('GET', '/ops/v1/unsettled')).status).toBe(403);
  });
});

describe('faults, late answers: the log keeps what came first', () => {
  test('a call that answers other than what is recorded is said in the log', async () => {
    const { a, b } = rooms;
    const id = idOf(await a.create());
    const held = a.faults.holdNext();
    const capturing = a.change('capture', id);
    await held.begun;
    b.clock.aheadMs = 7_100;
    b.faults.answersQuestions = false;
    expect((await settle(id, 'declined', {}, all, b)).status).toBe(200);
    held.release();
    expect((await capturing).status).toBe(422);
    expect((await rooms.state(id)).status).toBe('AUTHORIZED');
    expect(a.lines).toContainEqual({
      level: 'error',
      message: 'the provider answered other than what is recorded; reconcile with its ledger',
      fields: { paymentId: id, operation: 'capture', recorded: 'DECLINED', answered: 'APPROVED' },
    });
  });
});
