/**
 * gaps §17: the event log is put back to an older state while the provider's ledger keeps what
 * happened since. A merchant who repeats a key reaches the provider with the operation id that it
 * knows, gets the first outcome, and the log has it again.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import {
  acknowledge as acknowledgeAhead,
  backUp as backUpLog,
  putBack,
} from '../support/put-back.ts';
import {
  type CommandResponse,
  expectError,
  type InProcess,
  idOf,
  openInProcess,
  token,
} from '../support/service-in-process.ts';

let service: InProcess;

const backUp = (): void => backUpLog(service);
const restore = (): Promise<void> => putBack(service);
const acknowledge = (): Promise<CommandResponse> => acknowledgeAhead(service);

const restoreAndAcknowledge = async (): Promise<void> => {
  await restore();
  expect((await acknowledge()).json).toMatchObject({ acknowledged: true });
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
  const metric = async (): Promise<string | undefined> => {
    const { text } = await service.ask('GET', '/metrics');
    return /^payments_provider_ahead (\d)$/m.exec(text)?.[1];
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
    backUp();
    expect(await metric()).toBe('0');
    await service.change('capture', id);
    await service.create({ captureNow: true }, { key: 'k' });
    await restore();
    const calls = service.faults.calls.length;
    expectReadOnly(await service.create({}, { key: 'k' }));
    expectReadOnly(await service.create());
    for (const change of ['capture', 'void', 'refund'])
      expectReadOnly(await service.change(change, id));
    expect((await service.change('capture', 'pay_unknown')).status).toBe(404);
    expect(service.faults.calls).toHaveLength(calls);
    expect((await service.get(id)).json.status).toBe('AUTHORIZED');
    expect(await providerHealth()).toMatchObject({
      status: 200,
      state: 'ahead of the log',
      missingInLog: 2,
    });
    expect(await metric()).toBe('1');

    expect((await acknowledge()).json).toEqual({ acknowledged: true, operations: 2, cursor: '3' });
    expect(await metric()).toBe('0');
    expect(await providerHealth()).toMatchObject({ status: 200, state: 'up' });
    expect((await service.create({ captureNow: true }, { key: 'k' })).status).toBe(200);
    expect((await acknowledge()).json).toEqual({ acknowledged: false, operations: 0 });
  });

  test('who acknowledged is in the log, the next start asks only about later entries, and an older copy put back over it is asked about again', async () => {
    service = await openInProcess();
    backUp();
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
    await restore();
    expectReadOnly(await service.create());
  });
});
