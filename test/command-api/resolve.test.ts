/**
 * gaps §16: what is unresolved is listed, and two persons resolve with evidence what the provider
 * does not answer for; where it does answer, its answer is recorded instead, also afterwards.
 */
import { describe, expect, test } from '@jest/globals';
import type { JWTPayload } from 'jose';
import { AT_WORK } from '../../providers/port.ts';
import {
  type Asking,
  type CommandResponse,
  expectError,
  idOf,
  locatedId,
  NO_RETRIES,
  signToken,
} from '../support/service-in-process.ts';
import {
  type CommandProcess,
  PAST_FLIGHT_MS,
  processesOfTests,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const opsToken = (merchant: string) =>
  signToken({ merchant_id: merchant, sub: 'jane', scope: 'ops:admin' });
const resolver = async (sub: string, merchant = '*'): Promise<Asking> => ({
  token: await signToken({ merchant_id: merchant, sub, scope: 'ops:resolve' }),
});

const processes = await processesOfTests(NO_RETRIES);
const ops = { token: await opsToken('m_test') };
const all = { token: await opsToken('*') };
const jane = await resolver('jane');
const john = await resolver('john');

/** Sends a command whose outcome gets lost, and whose look-ups get no answer; gives its payment. */
const leaveUnresolved = async (
  send: (at: CommandProcess) => Promise<CommandResponse> = (at) => at.create(),
  fault: 'answer lost' | 'call lost' = 'call lost',
): Promise<string> => {
  const { a } = processes;
  a.faults.respondsToLookUps = false;
  a.faults.next(fault);
  const before = a.faults.questions;
  const response = await send(a);
  expect(response.status).toBe(503);
  await until('recovery has looked it up', () => a.faults.questions > before);
  return locatedId(response);
};

const EVIDENCE = 'letter of the provider, case of May';
const REQUEST_EVIDENCE = 'call with the provider, ticket 12';
/** One person's word; declined without a fence, since the provider gives none here. */
const say = (id: string, outcome: unknown, more: object = {}, asking = john, at = processes.a) =>
  at.ask(
    'POST',
    `/ops/v1/payments/${id}/resolve`,
    {
      outcome,
      evidence: EVIDENCE,
      ...(outcome === 'declined' && { withoutFence: true }),
      ...more,
    },
    asking,
  );
/** Two persons' equal words: jane requests, john approves. */
const resolve = async (id: string, outcome: unknown, more: object = {}, at = processes.a) => {
  const requested = await say(id, outcome, { evidence: REQUEST_EVIDENCE, ...more }, jane, at);
  expect(requested.status).toBe(202);
  return say(id, outcome, more, john, at);
};
type Listed = {
  paymentId: string;
  state: string;
  attempts: number;
  nextAttemptAt: string | null;
};
const list = async (at: CommandProcess, asking: Asking = all) =>
  (await at.ask('GET', '/ops/v1/unresolved', undefined, asking)).json as unknown as {
    unresolved: Listed[];
    unconfirmed: Listed[];
  };
/** All that the list of a process has of a payment. */
const listed = async (id: string, at = processes.a): Promise<Listed[]> => {
  const { unresolved, unconfirmed } = await list(at);
  return [...unresolved, ...unconfirmed].filter(({ paymentId }) => paymentId === id);
};
const statesOf = async (id: string, at = processes.a): Promise<string[]> =>
  (await listed(id, at)).map(({ state }) => state);

const expectRejected = (response: CommandResponse, why: unknown): void =>
  expectError(response, 422, 'BUSINESS_RULE_VIOLATION', [why]);

describe('what two persons resolve is recorded as the outcome, with both of them', () => {
  test.each([
    ['approved', 'AUTHORIZED', 'PaymentAuthorized'],
    ['declined', 'FAILED', 'PaymentFailed'],
  ])('a create: %s, now %s', async (outcome, status, type) => {
    const id = await leaveUnresolved();
    const response = await resolve(id, outcome);
    const [intent, requested, ended] = await processes.events(id);
    expect(requested).toMatchObject({
      event: {
        type: 'PaymentResolutionRequested',
        data: { outcome: outcome.toUpperCase(), evidence: REQUEST_EVIDENCE, requestedBy: 'jane' },
      },
      context: { actor: 'jane', causationId: intent?.id },
    });
    expect([response.status, response.json]).toEqual([
      200,
      {
        paymentId: id,
        operation: 'create',
        operationId: Object(intent?.event.data).operationId,
        amountMinor: 2500,
        outcome: outcome.toUpperCase(),
        confirmed: false,
        status,
        revision: 2,
      },
    ]);
    const resolution = {
      evidence: EVIDENCE,
      requestedBy: 'jane',
      requestEvidence: REQUEST_EVIDENCE,
    };
    expect(ended).toMatchObject({
      event: { type, data: { resolution } },
      context: {
        actor: 'john',
        requestId: response.headers['request-id'],
        causationId: intent?.id,
      },
    });
    expect(await statesOf(id)).toEqual(['UNCONFIRMED']);
  });

  test('one person alone resolves nothing, however often, and waits in the list for another', async () => {
    const id = await leaveUnresolved();
    const requested = await say(id, 'declined', {}, jane);
    expect([requested.status, requested.json]).toMatchObject([
      202,
      {
        paymentId: id,
        operation: 'create',
        outcome: 'DECLINED',
        status: 'PENDING',
        request: { requestedBy: 'jane', evidence: EVIDENCE, withoutFence: true },
      },
    ]);
    expect((await say(id, 'declined', {}, jane)).status).toBe(202);
    expect(await processes.events(id)).toHaveLength(2);
    const [one] = await listed(id);
    expect(one).toMatchObject({ state: 'UNRESOLVED', request: { requestedBy: 'jane' } });
    expect((await processes.state(id)).status).toBe('PENDING');
  });

  test('gaps §16: the same person under two tokens is one, in whatever form the name is typed', async () => {
    const id = await leaveUnresolved();
    expect((await say(id, 'declined', {}, jane)).status).toBe(202);
    for (const sub of ['jane ', '\u00a0jane', 'ja\u200bne', '\ufeffjane\u2060'])
      expect((await say(id, 'declined', {}, await resolver(sub))).status).toBe(202);
    expect(await processes.events(id)).toHaveLength(2);
    expect((await say(id, 'declined', {}, john)).status).toBe(200);
  });

  test.each([
    ['no sub', undefined],
    ['an empty sub', ''],
    ['a sub of invisible characters', ' \u200b'],
    ['a sub that is a number', 7],
    ['a sub that is a list', ['ann']],
  ])('gaps §16: a token with %s can neither request nor approve', async (_name, sub) => {
    const id = await leaveUnresolved();
    const claims = { merchant_id: '*', scope: 'ops:resolve', ...(sub !== undefined && { sub }) };
    const nameless = { token: await signToken(claims as JWTPayload) };
    const expectNoPerson = async () =>
      expectError(await say(id, 'approved', {}, nameless), 403, 'FORBIDDEN', [
        'this command needs a token with sub',
      ]);
    await expectNoPerson();
    expect((await say(id, 'approved', {}, jane)).status).toBe(202);
    await expectNoPerson();
    expect((await processes.state(id)).status).toBe('PENDING');
  });

  test('gaps §16: evidence holds no e-mail address', async () => {
    const id = await leaveUnresolved();
    const mail = { evidence: 'mail of jane@example.com' };
    expectError(await say(id, 'declined', mail), 400, 'INVALID_REQUEST', [
      'evidence must not hold an e-mail address: events are kept for ever',
    ]);
    expect((await say(id, 'declined', { evidence: 'paid @ the counter' })).status).toBe(202);
  });

  test('after a day, and after another word, the approval is a request of its own', async () => {
    const id = await leaveUnresolved();
    expect((await say(id, 'declined', {}, jane)).status).toBe(202);
    processes.a.clock.aheadMs = 86_400_001;
    expect((await say(id, 'declined')).json).toMatchObject({ request: { requestedBy: 'john' } });
    expect((await say(id, 'approved', {}, jane)).json).toMatchObject({
      outcome: 'APPROVED',
      request: { requestedBy: 'jane' },
    });
    expect((await say(id, 'approved')).json).toMatchObject({ status: 'AUTHORIZED' });
  });

  test('declined needs a fence, or the words that there is none', async () => {
    const id = await leaveUnresolved();
    const why = expect.stringContaining('"withoutFence": true');
    expectRejected(await say(id, 'declined', { withoutFence: undefined }, jane), why);
    expectRejected(await say(id, 'declined', { withoutFence: false }, john), why);
    expect(await processes.events(id)).toHaveLength(1);
  });

  test('a sale resolved as approved: both of its events name the resolution', async () => {
    const id = await leaveUnresolved((at) => at.create({ captureNow: true }));
    expect((await resolve(id, 'approved')).json).toMatchObject({ status: 'CAPTURED', revision: 3 });
    const [, , ...ended] = await processes.events(id);
    for (const { event } of ended) expect(event.data).toHaveProperty('resolution');
    expect(await processes.state(id)).toMatchObject({ capturedAmount: 2500, refundedAmount: 0 });
  });

  test('a refund resolved as declined keeps its key: a repeat gets that stored outcome', async () => {
    const id = idOf(await processes.a.create({ captureNow: true }));
    const refund = (at: CommandProcess) => at.change('refund', id, undefined, { key: 'k' });
    await leaveUnresolved(refund);
    expect((await resolve(id, 'declined')).json).toMatchObject({ status: 'CAPTURED' });
    const repeat = await refund(processes.b);
    expect([repeat.status, repeat.headers['idempotent-replayed']]).toEqual([422, 'true']);
    expect(await processes.ledger(id)).toHaveLength(1);
  });

  test('the body of the payment names neither the person nor the evidence', async () => {
    const id = await leaveUnresolved();
    await resolve(id, 'approved');
    expect(await processes.body(id)).not.toMatch(/jane|john|letter|resolve|evidence/);
  });
});

describe('gaps §16: resolving by hand is rejected', () => {
  test('while the provider says that it still works on the operation, for a day', async () => {
    const { provider } = processes.a.side;
    const { lookUp } = provider;
    const id = await leaveUnresolved();
    provider.lookUp = async () => ({ outcome: 'UNKNOWN', reason: AT_WORK });
    try {
      const response = await say(id, 'declined');
      expectRejected(response, expect.stringContaining('still works on it'));
      expect(response.headers).toMatchObject({ 'retry-after': '60' });
      processes.a.clock.aheadMs = 86_400_000;
      expect((await resolve(id, 'declined')).status).toBe(200);
    } finally {
      provider.lookUp = lookUp;
    }
  });

  test('where nothing is unresolved', async () => {
    const id = idOf(await processes.a.create());
    const why = 'nothing is unresolved on this payment: every operation has its outcome';
    expectRejected(await say(id, 'approved'), why);
    const open = await leaveUnresolved();
    expect((await resolve(open, 'declined')).status).toBe(200);
    expectRejected(await say(open, 'declined'), why);
    expectError(await say('pay_none', 'declined'), 404, 'PAYMENT_NOT_FOUND');
  });

  test.each([
    ['answer lost', 'approved', 'AUTHORIZED'],
    ['call lost', 'never carried out', 'FAILED'],
  ] as const)(
    'where the provider answers itself (%s): %s is recorded',
    async (fault, word, status) => {
      const id = await leaveUnresolved((at) => at.create(), fault);
      processes.a.faults.respondsToLookUps = true;
      expectRejected(
        await say(id, 'declined'),
        `the provider has answered for the create itself, and that is recorded: ${word}`,
      );
      expect((await processes.state(id)).status).toBe(status);
      const ended = (await processes.events(id))[1];
      expect(ended?.context.actor).toBe('recovery');
      expect(ended?.event.data).not.toHaveProperty('resolution');
    },
  );

  test('while its call may still run in another process, with Retry-After', async () => {
    const { a, b } = processes;
    const held = await a.faults.hold(() => a.create());
    const paymentId = a.faults.calls.at(-1)?.paymentId ?? '';
    const [intent] = await processes.events(paymentId);
    // However long this machine takes, 7 s of the call are left by b's clock.
    b.clock.standsAtMs = Date.parse(intent?.time ?? '');
    const response = await say(paymentId, 'declined', {}, john, b);
    expectRejected(
      response,
      'its call to the provider may still run; try again when it must have ended',
    );
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(3);
    held.release();
    expect((await held.response).status).toBe(200);
  });

  test('where several operations are unresolved and none is named; a named one is resolved', async () => {
    const id = idOf(await processes.a.create({ captureNow: true }));
    for (const refundAmount of [100, 200])
      await leaveUnresolved((at) => at.change('refund', id, { refundAmount }));
    const [first, second] = processes.a.side.unresolved.list().filter((o) => o.paymentId === id);
    expectRejected(
      await say(id, 'approved'),
      expect.stringContaining(`${first?.operationId} (refund of 100), ${second?.operationId}`),
    );
    expectRejected(
      await say(id, 'approved', { operationId: 'op_other' }),
      expect.stringContaining('that operation is not unresolved'),
    );
    const resolved = await resolve(id, 'approved', { operationId: second?.operationId });
    expect(resolved.json).toMatchObject({ amountMinor: 200, status: 'CAPTURED' });
    expect(await statesOf(id)).toEqual(['UNRESOLVED', 'UNCONFIRMED']);
  });

  test.each<[string, object, unknown]>([
    ['no outcome', { outcome: undefined }, 'outcome is required'],
    ['another outcome', { outcome: 'maybe' }, 'outcome must be one of approved, declined'],
    ['no evidence', { evidence: undefined }, 'evidence is required'],
    ['empty evidence', { evidence: '' }, 'evidence is required'],
    ['white evidence', { evidence: ' ' }, 'evidence must be 1 to 1000 characters'],
    [
      'a card number in the evidence',
      { evidence: 'card 4242 4242-4242 4242' },
      'evidence must not hold a run of 12 digits or more: no card number may be kept',
    ],
    ['a fence that is no boolean', { withoutFence: 'no' }, 'withoutFence must be true or false'],
    [
      'anything else',
      { x: 1 },
      'the body must hold outcome, evidence and at most operationId and withoutFence',
    ],
  ])('malformed: %s', async (_name, body, why) => {
    expectError(await say('pay_x', 'approved', body), 400, 'INVALID_REQUEST', [why]);
  });
});

describe('gaps §16: GET /ops/v1/unresolved', () => {
  test('lists what this process recovers, and of other processes what the read models list', async () => {
    const id = await leaveUnresolved();
    await until('the read models have it', async () =>
      (await processes.readModels.unresolved(100)).some(({ paymentId }) => paymentId === id),
    );
    const find = async (at: CommandProcess, asking?: Asking) =>
      (await list(at, asking)).unresolved.filter(({ paymentId }) => paymentId === id);
    const [intent] = await processes.events(id);
    const common = {
      state: 'UNRESOLVED',
      paymentId: id,
      merchantId: 'm_test',
      operation: 'create',
      operationId: Object(intent?.event.data).operationId,
      amountMinor: 2500,
      currency: 'USD',
      since: intent?.time,
    };
    await until('the first try', async () => (await find(processes.a))[0]?.attempts === 1);
    expect(await find(processes.a)).toEqual([
      { ...common, attempts: 1, nextAttemptAt: expect.stringContaining('T') },
    ]);
    // The call may still run for all that b knows, so the payment is not unresolved there yet.
    const intentAtMs = Date.parse(intent?.time ?? '');
    processes.b.clock.standsAtMs = intentAtMs;
    expect(await find(processes.b)).toEqual([]);
    processes.b.clock.standsAtMs = intentAtMs + PAST_FLIGHT_MS;
    expect(await find(processes.b)).toEqual([{ ...common, attempts: 0, nextAttemptAt: null }]);
    expect(await find(processes.a, ops)).toHaveLength(1);
    expect(await find(processes.a, { token: await opsToken('m_other') })).toEqual([]);
  });
});

describe('faults, late responses: the event log keeps the outcome that came first', () => {
  test("a call whose outcome differs from the recorded one is reported in the service's log", async () => {
    const { a, b } = processes;
    const id = idOf(await a.create());
    const held = await a.faults.hold(() => a.change('capture', id));
    b.clock.aheadMs = PAST_FLIGHT_MS;
    b.faults.respondsToLookUps = false;
    expect((await resolve(id, 'declined', {}, b)).status).toBe(200);
    held.release();
    expect((await held.response).status).toBe(422);
    expect((await processes.state(id)).status).toBe('AUTHORIZED');
    expect(a.lines).toContainEqual({
      level: 'error',
      message:
        'the provider reported another outcome than the recorded one; reconcile with its ledger',
      fields: { paymentId: id, operation: 'capture', recorded: 'DECLINED', provider: 'APPROVED' },
    });
  });
});
