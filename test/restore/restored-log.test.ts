/**
 * gaps §7, §17: the event log is put back to an older state while the provider's ledger keeps what happened
 * since. A merchant who repeats a key reaches the provider with the operation id that it knows and gets the
 * first outcome. A call that was not sent proves nothing about such an id: the log that was lost may have
 * sent it, so its outcome stays unknown until the provider says it.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { NotSent } from '../../providers/port.ts';
import { shareOf } from '../support/long-run-share.ts';
import { acknowledge, backUp, putBack } from '../support/put-back.ts';
import {
  type CommandResponse,
  expectError,
  type InProcess,
  idOf,
  locatedId,
  NO_RETRIES,
  openInProcess,
  signToken,
  token,
} from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

let service: InProcess;

const restoreAndAcknowledge = async (): Promise<void> => {
  await putBack(service);
  expect((await acknowledge(service)).json).toMatchObject({ acknowledged: true });
};

describe('a service whose log was not put back', () => {
  beforeAll(async () => {
    service = await openInProcess();
  });
  afterAll(() => service[Symbol.asyncDispose]());

  test('no further attempt is made while the provider does not fence the one before', async () => {
    const send = () => service.create({}, { key: 'k' });
    service.faults.next('not sent');
    const failed = await send();
    service.faults.respondsToLookUps = false;
    const again = await send();
    expect([again.status, again.headers.location]).toEqual([503, failed.headers.location]);
    expect(service.faults.calls).toHaveLength(1);
    service.faults.respondsToLookUps = true;
    expect((await send()).status).toBe(200);
    expect(await service.ledger()).toHaveLength(1);
  });

  test('and none is fenced where the rules refuse the next one', async () => {
    const id = idOf(await service.create());
    const send = () => service.change('void', id, undefined, { key: 'k' });
    service.faults.next('not sent');
    expect((await send()).status).toBe(503);
    expect((await service.change('void', id)).status).toBe(200);
    service.faults.respondsToLookUps = false;
    const refused = await send();
    service.faults.respondsToLookUps = true;
    expectError(refused, 422, 'VOID_NOT_ALLOWED', [
      'only an AUTHORIZED payment can be voided; this one is VOIDED',
    ]);
  });

  test('an operation id is another one for each payment, route and attempt, and random without a key', async () => {
    const before = service.faults.calls.length;
    const payments = [idOf(await service.create()), idOf(await service.create())];
    for (const id of payments) {
      for (const change of ['capture', 'refund'] as const) {
        service.faults.next('not sent');
        await service.change(change, id, { amount: 5 }, { key: 'k' });
        await service.change(change, id, { amount: 5 }, { key: 'k' });
      }
    }
    const ids = service.faults.calls.slice(before).map(({ operationId }) => operationId);
    expect(ids).toHaveLength(10);
    expect(new Set(ids).size).toBe(10);
    for (const operationId of ids) expect(operationId).toMatch(/^op_[0-9A-HJKMNP-TV-Z]{26}$/);
  });
});

describe('a service whose provider is ahead of its log', () => {
  afterEach(() => service[Symbol.asyncDispose]());

  const providerHealth = async () => {
    const { status, json } = await service.ask('GET', '/health/ready');
    return { status, ...(json.engines as { provider: object }).provider };
  };
  const expectReadOnly = (response: CommandResponse): void => {
    expectError(response, 503, 'SERVICE_UNAVAILABLE', [
      expect.stringContaining('the provider holds operations that the event log does not'),
      'an operator opens the service with payments reconcile --acknowledge',
    ]);
    expect(response.headers).toMatchObject({ 'retry-after': '30' });
  };

  test('serves reads alone until an operator acknowledges it, and says so', async () => {
    service = await openInProcess();
    const id = idOf(await service.create());
    backUp(service);
    expect(await service.metric('payments_provider_ahead')).toBe(0);
    await service.change('capture', id);
    await service.create({ captureNow: true }, { key: 'k' });
    await putBack(service);
    const calls = service.faults.calls.length;
    expectReadOnly(await service.create({}, { key: 'k' }));
    expectReadOnly(await service.create());
    for (const change of ['capture', 'void', 'refund'])
      expectReadOnly(await service.change(change, id));
    expect((await service.change('capture', 'pay_unknown')).status).toBe(404);
    expect(service.faults.calls).toHaveLength(calls);
    expect((await service.get(id)).json.status).toBe('AUTHORIZED');
    const ahead = { state: 'ahead of the log', missingInLog: 2 };
    expect(await providerHealth()).toMatchObject({ status: 200, ...ahead });
    expect(await service.metric('payments_provider_ahead')).toBe(1);

    const { json } = await acknowledge(service);
    expect(json).toEqual({ acknowledged: true, operations: 2, cursor: '3' });
    expect(await service.metric('payments_provider_ahead')).toBe(0);
    expect(await providerHealth()).toMatchObject({ status: 200, state: 'up' });
    expect((await service.create({ captureNow: true }, { key: 'k' })).status).toBe(200);
    expect((await acknowledge(service)).json).toEqual({ acknowledged: false, operations: 0 });
  });

  test('who acknowledged is in the log, the next start asks only about later entries, and an older copy put back over it is asked about again', async () => {
    service = await openInProcess();
    backUp(service);
    await service.create();
    await restoreAndAcknowledge();
    await service.restart();
    expect((await service.create()).status).toBe(200);
    const auditor = { token: await token('*', 'audit:read') };
    const { json } = await service.ask('GET', '/audit/v1/events', undefined, auditor);
    const events = json.events as { type: string; actor: string; data: object }[];
    expect(events.filter(({ type }) => type === 'ProviderAheadAcknowledged')).toMatchObject([
      { actor: 'tester', data: { cursor: '1', operations: 1 } },
    ]);
    await putBack(service);
    expectReadOnly(await service.create());
  });
});

const sale = (key = 'order', fields: object = {}) =>
  service.create({ captureNow: true, amount: 6543, ...fields }, { key });
/** What each command of the tests sends, on a payment that both logs have. */
const COMMANDS = {
  create: () => sale(),
  refund: (id: string) => service.change('refund', id, { refundAmount: 4000 }, { key: 'k' }),
  capture: (id: string) => service.change('capture', id, undefined, { key: 'k' }),
  void: (id: string) => service.change('void', id, undefined, { key: 'k' }),
};
type Command = keyof typeof COMMANDS;

/** A payment for the command, a backup, the command under a key, and the log put back before it. */
const lose = async (
  command: Command,
  restore = restoreAndAcknowledge,
): Promise<{ send: () => Promise<CommandResponse>; id: string; first: CommandResponse }> => {
  const created = command === 'refund' ? sale('other') : service.create({ amount: 6543 });
  const id = idOf(await created);
  backUp(service);
  const send = () => COMMANDS[command](id);
  const first = await send();
  expect(first.status).toBe(200);
  await restore();
  return { send, id: command === 'create' ? idOf(first) : id, first };
};

const expectUnknown = (response: CommandResponse, id: string): void =>
  expectError(response, 503, 'PROVIDER_UNAVAILABLE', [
    `paymentId ${id}`,
    'the outcome at the provider is not known yet; it is looked up and recorded on the payment',
  ]);

const approvals = async (): Promise<string[]> =>
  (await service.ledger())
    .filter(({ outcome }) => outcome === 'APPROVED')
    .map(({ kind, amount }) => `${kind} ${amount}`);

const REASONS: NotSent[] = [
  { outcome: 'NOT_SENT' },
  ...(
    [
      'unreachable',
      'unauthorized',
      'forbidden',
      'rate_limited',
      'misconfigured',
      'not_opened',
      'too_late',
    ] as const
  ).map((reason) => ({ outcome: 'NOT_SENT' as const, byProvider: true as const, reason })),
];

describe('a command under a key after a restore', () => {
  afterEach(() => service[Symbol.asyncDispose]());

  describe('a repeat under a key in a log that was put back and acknowledged', () => {
    test.each(shareOf(Object.keys(COMMANDS) as Command[], 1))(
      'a %s that was not sent, for whatever reason, gets the outcome that the provider knows',
      async (command) => {
        service = await openInProcess(NO_RETRIES);
        const { send, id, first } = await lose(command);
        const before = await approvals();
        for (const reason of shareOf(REASONS, 2)) {
          await putBack(service);
          await acknowledge(service);
          service.faults.respondsToLookUps = false;
          service.faults.next(reason);
          expectUnknown(await send(), id);
          expect((await service.get(id)).json.status).not.toBe('FAILED');
          service.faults.respondsToLookUps = true;
          expect((await send()).json.transactions.map((one) => one.id)).toEqual(
            first.json.transactions.map((one) => one.id),
          );
        }
        expect(await approvals()).toEqual(before);
      },
    );

    test('a reference that must be unique keeps a second key from charging the order again', async () => {
      service = await openInProcess({ ...NO_RETRIES, MERCHANT_REFERENCE: 'unique' });
      const order = { merchantReference: 'order-4711' };
      backUp(service);
      await sale('one', order);
      await restoreAndAcknowledge();
      service.faults.away = true;
      expect((await sale('one', order)).status).toBe(503);
      service.faults.away = false;
      const other = await sale('two', order);
      expect([other.status, await approvals()]).toEqual([200, ['SALE 6543']]);
    });

    test('a request without a key was never sent before: nothing was charged', async () => {
      service = await openInProcess(NO_RETRIES);
      await lose('create');
      service.faults.next('not sent');
      const response = await service.create();
      expect(response.json.details[1]).toBe(
        'the provider did not carry it out: nothing was charged',
      );
    });
  });

  describe('a log that could not be compared with the ledger at its start', () => {
    test.each(shareOf(Object.keys(COMMANDS) as Command[], 1))(
      'a %s under a key that was not sent stays unknown, until the ledger shows what the provider holds',
      async (command) => {
        service = await openInProcess(NO_RETRIES);
        const away = async () => {
          service.faults.away = true;
          await putBack(service);
        };
        const { send, id } = await lose(command, away);
        expectUnknown(await send(), id);
        service.faults.away = false;
        const before = await approvals();
        // The ledger holds what the log does not: an operator has to open the service.
        const ahead = await send();
        if (ahead.status === 503) {
          expect(ahead.json.error).toBe('SERVICE_UNAVAILABLE');
          await acknowledge(service);
        }
        expect((await send()).status).toBe(200);
        expect(await approvals()).toEqual(before);
      },
    );

    test('what is known to be level again says at once that nothing was charged', async () => {
      service = await openInProcess(NO_RETRIES);
      service.faults.away = true;
      await service.restart();
      expect((await sale('one')).json.details[1]).toContain('not known yet');
      service.faults.away = false;
      await until('the ledger is compared', async () => (await service.create()).status === 200);
      service.faults.next('not sent');
      expect((await sale('two')).json.details[1]).toContain('nothing was charged');
    });
  });

  describe('a call under a key that meets the fence of a log that was lost', () => {
    test.each(shareOf(['create', 'capture', 'refund'] as const, 1))(
      'a %s goes on to the attempt that was carried out, in the same request',
      async (command) => {
        service = await openInProcess(NO_RETRIES);
        const created = command === 'refund' ? sale('other') : service.create({ amount: 6543 });
        const id = idOf(await created);
        backUp(service);
        const send = () => COMMANDS[command](id);
        for (let n = 0; n < 3; n += 1) {
          service.faults.next('not sent');
          expect((await send()).status).toBe(503);
        }
        const first = await send();
        const before = await approvals();
        await restoreAndAcknowledge();
        const repeated = await send();
        expect([repeated.status, repeated.json.paymentId]).toEqual([200, first.json.paymentId]);
        expect(await approvals()).toEqual(before);
      },
    );

    test('a provider that fences whatever it is sent gets a bounded number of attempts', async () => {
      service = await openInProcess(NO_RETRIES);
      await lose('create');
      const calls = service.faults.calls.length;
      for (let n = 0; n < 40; n += 1)
        service.faults.next({ outcome: 'NOT_SENT', byProvider: true, reason: 'fenced' });
      expect((await sale('another')).json.details[1]).toContain('nothing was charged');
      expect(service.faults.calls.length - calls).toBe(16);
      service.faults.forget();
    });
  });

  describe('what was recorded as never sent, and was carried out', () => {
    const wronglyRecorded = async (): Promise<string> => {
      service = await openInProcess(NO_RETRIES);
      service.faults.next('not sent');
      const id = locatedId(await sale());
      const [call] = service.faults.calls;
      if (call !== undefined) await service.faults.arriveLate(call);
      return id;
    };
    const listed = async (): Promise<object[]> => {
      const asking = { token: await token('*', 'ops:admin') };
      const { json } = await service.ask('GET', '/ops/v1/unresolved', undefined, asking);
      return json.unresolved as object[];
    };
    const resolve = async (id: string, sub: string): Promise<number> => {
      const asking = { token: await signToken({ merchant_id: '*', sub, scope: 'ops:resolve' }) };
      const body = { outcome: 'declined', evidence: 'refunded at the provider, re_4711' };
      const path = `/ops/v1/payments/${id}/resolve`;
      return (await service.ask('POST', path, { ...body, withoutFence: true }, asking)).status;
    };

    test('a repeat of its key says so, two operators end it, and only then another attempt is made', async () => {
      const id = await wronglyRecorded();
      for (let n = 0; n < 2; n += 1)
        expectError(await sale(), 503, 'PROVIDER_UNAVAILABLE', [
          `paymentId ${id}`,
          'the provider carried it out although it is recorded as never sent: an operator has to resolve it; do not send it again under another key',
        ]);
      expect(await listed()).toMatchObject([{ paymentId: id, state: 'CONTRADICTED' }]);
      expect(await service.metric('payments_contradicted')).toBe(1);
      await service.restart();
      await until('it is listed again', async () => (await listed()).length === 1);
      expect([await resolve(id, 'ann'), await resolve(id, 'ann')]).toEqual([202, 202]);
      expect(await resolve(id, 'bob')).toBe(200);
      expect(await listed()).toEqual([]);
      expect((await sale()).status).toBe(200);
      expect(await approvals()).toEqual(['SALE 6543', 'SALE 6543']);
      expect(await service.metric('payments_contradicted')).toBe(0);
    });

    test('a reconciliation finds it as well', async () => {
      const id = await wronglyRecorded();
      const asking = { token: await token('*', 'audit:read') };
      const { text } = await service.ask('POST', '/audit/v1/reconcile', undefined, asking);
      expect(text).toContain('NEVER_SENT_IN_LOG');
      expect(await listed()).toMatchObject([{ paymentId: id, state: 'CONTRADICTED' }]);
    });
  });
});
