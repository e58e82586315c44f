/**
 * ADR-0013: what is unresolved is listed, and a person resolves with evidence what the provider
 * will never answer for; where the provider does answer, its answer is recorded instead.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { AT_WORK } from '../../command-api/provider/port.ts';
import {
  type Asking,
  type CommandResponse,
  expectError,
  idOf,
  locatedId,
  NO_RETRIES,
  signToken,
} from '../support/in-process.ts';
import {
  type CommandProcess,
  openTwoCommandProcesses,
  PAST_FLIGHT_MS,
  type TwoCommandProcesses,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

let processes: TwoCommandProcesses;
let ops: Asking;
let all: Asking;

const opsToken = (merchant: string) =>
  signToken({ merchant_id: merchant, sub: 'jane', scope: 'ops:admin' });

beforeAll(async () => {
  processes = await openTwoCommandProcesses(NO_RETRIES);
  ops = { token: await opsToken('m_test') };
  all = { token: await opsToken('*') };
});
beforeEach(() => processes.calm());
afterAll(() => processes[Symbol.asyncDispose]());

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

const EVIDENCE = 'letter of the provider, case 4711';
const resolve = (id: string, outcome: unknown, more: object = {}, asking = all, at = processes.a) =>
  at.ask(
    'POST',
    `/ops/v1/payments/${id}/resolve`,
    { outcome, evidence: EVIDENCE, ...more },
    asking,
  );
const expectRejected = (response: CommandResponse, why: unknown): void =>
  expectError(response, 422, 'BUSINESS_RULE_VIOLATION', [why]);

describe('ADR-0013: what a person resolves is recorded as the outcome, with actor and evidence', () => {
  test.each([
    ['approved', 'AUTHORIZED', 'PaymentAuthorized'],
    ['declined', 'FAILED', 'PaymentFailed'],
  ])('a create: %s, now %s', async (outcome, status, type) => {
    const id = await leaveUnresolved();
    const response = await resolve(id, outcome);
    const [intent, ended] = await processes.events(id);
    expect([response.status, response.json]).toEqual([
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
      event: { type, data: { resolution: { evidence: EVIDENCE } } },
      context: {
        actor: 'jane',
        requestId: response.headers['request-id'],
        causationId: intent?.id,
      },
    });
    expect(processes.a.side.unresolved.list().map(({ paymentId }) => paymentId)).not.toContain(id);
  });

  test('a sale resolved as approved: both of its events name the resolution', async () => {
    const id = await leaveUnresolved((at) => at.create({ captureNow: true }));
    expect((await resolve(id, 'approved')).json).toMatchObject({ status: 'CAPTURED', revision: 2 });
    const [, ...ended] = await processes.events(id);
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
    expect(await processes.body(id)).not.toMatch(/jane|4711|resolve|evidence/);
  });
});

describe('ADR-0013: resolving by hand is rejected', () => {
  test('while the provider says that it still works on the operation, for a day', async () => {
    const { provider } = processes.a.side;
    const { lookUp } = provider;
    const id = await leaveUnresolved();
    provider.lookUp = async () => ({ outcome: 'UNKNOWN', reason: AT_WORK });
    try {
      const response = await resolve(id, 'declined');
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
    expectRejected(await resolve(id, 'approved'), why);
    const open = await leaveUnresolved();
    expect((await resolve(open, 'declined')).status).toBe(200);
    expectRejected(await resolve(open, 'declined'), why);
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
        await resolve(id, 'declined'),
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
    const held = a.faults.holdNext();
    const creating = a.create();
    await held.begun;
    const paymentId = a.faults.calls.at(-1)?.paymentId ?? '';
    const [intent] = await processes.events(paymentId);
    // However long this machine takes, 7 s of the call are left by b's clock.
    b.clock.standsAtMs = Date.parse(intent?.time ?? '');
    const response = await resolve(paymentId, 'declined', {}, all, b);
    expectRejected(
      response,
      'its call to the provider may still run; try again when it must have ended',
    );
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(3);
    held.release();
    expect((await creating).status).toBe(200);
  });

  test('where several operations are unresolved and none is named; a named one is resolved', async () => {
    const id = idOf(await processes.a.create({ captureNow: true }));
    for (const refundAmount of [100, 200])
      await leaveUnresolved((at) => at.change('refund', id, { refundAmount }));
    const [first, second] = processes.a.side.unresolved.list().filter((o) => o.paymentId === id);
    expectRejected(
      await resolve(id, 'approved'),
      expect.stringContaining(`${first?.operationId} (refund of 100), ${second?.operationId}`),
    );
    expectRejected(
      await resolve(id, 'approved', { operationId: 'op_other' }),
      expect.stringContaining('that operation is not unresolved'),
    );
    const resolved = await resolve(id, 'approved', { operationId: second?.operationId });
    expect(resolved.json).toMatchObject({ amountMinor: 200, status: 'CAPTURED' });
    expect(processes.a.side.unresolved.list().filter((o) => o.paymentId === id)).toHaveLength(1);
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
    expectError(await resolve('pay_x', 'approved', body), 400, 'INVALID_REQUEST', [why]);
  });

  test('without the scope, and for another merchant’s payment', async () => {
    const id = await leaveUnresolved();
    const asOther = { token: await opsToken('m_other') };
    expect((await resolve(id, 'declined', {}, {})).status).toBe(403);
    expectError(await resolve(id, 'declined', {}, asOther), 404, 'PAYMENT_NOT_FOUND');
    expectError(await resolve('pay_none', 'declined', {}, asOther), 404, 'PAYMENT_NOT_FOUND');
    expect((await resolve(id, 'declined', {}, ops)).status).toBe(200);
  });
});

describe('ADR-0013: GET /ops/v1/unresolved', () => {
  const list = async (at: CommandProcess, asking: Asking = all) =>
    (await at.ask('GET', '/ops/v1/unresolved', undefined, asking)).json as unknown as {
      unresolved: { paymentId: string; attempts: number; nextAttemptAt: string | null }[];
    };

  test('lists what this process recovers, and of other processes what the read models list', async () => {
    const id = await leaveUnresolved();
    await until('the read models have it', async () =>
      (await processes.readModels.unresolved(100)).some(({ paymentId }) => paymentId === id),
    );
    const find = async (at: CommandProcess, asking?: Asking) =>
      (await list(at, asking)).unresolved.filter(({ paymentId }) => paymentId === id);
    const [intent] = await processes.events(id);
    const common = {
      paymentId: id,
      merchantId: 'm_test',
      operation: 'create',
      operationId: intent?.event.data.operationId,
      amountMinor: 2500,
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

  test('needs the scope ops:admin', async () => {
    expect((await processes.a.ask('GET', '/ops/v1/unresolved')).status).toBe(403);
  });
});

describe('faults, late responses: the event log keeps the outcome that came first', () => {
  test("a call whose outcome differs from the recorded one is reported in the service's log", async () => {
    const { a, b } = processes;
    const id = idOf(await a.create());
    const held = a.faults.holdNext();
    const capturing = a.change('capture', id);
    await held.begun;
    b.clock.aheadMs = PAST_FLIGHT_MS;
    b.faults.respondsToLookUps = false;
    expect((await resolve(id, 'declined', {}, all, b)).status).toBe(200);
    held.release();
    expect((await capturing).status).toBe(422);
    expect((await processes.state(id)).status).toBe('AUTHORIZED');
    expect(a.lines).toContainEqual({
      level: 'error',
      message: 'the provider answered other than what is recorded; reconcile with its ledger',
      fields: { paymentId: id, operation: 'capture', recorded: 'DECLINED', provider: 'APPROVED' },
    });
  });
});
