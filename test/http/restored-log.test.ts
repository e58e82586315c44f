/**
 * gaps §17: the event log is put back to an older state while the provider's ledger keeps what
 * happened since. A merchant who repeats a key reaches the provider with the operation id that it
 * knows, gets the first outcome, and the log has it again.
 */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { startStandIn } from '../support/eventstoredb-stand-in.ts';
import {
  type CommandResponse,
  expectError,
  type InProcess,
  idOf,
  openInProcess,
  signToken,
  token,
} from '../support/in-process.ts';
import { shareOf } from '../support/long-run-share.ts';
import {
  acknowledge as acknowledgeAhead,
  backUp as backUpLog,
  putBack,
} from '../support/put-back.ts';
import { openOverStripe } from '../support/stripe-service.ts';
import { until } from '../support/until.ts';

let service: InProcess;

const backUp = (): void => backUpLog(service);
const restore = (): Promise<void> => putBack(service);
const acknowledge = (): Promise<CommandResponse> => acknowledgeAhead(service);

const restoreAndAcknowledge = async (): Promise<void> => {
  await restore();
  expect((await acknowledge()).json).toMatchObject({ acknowledged: true });
};

/** The response without what its events were stored at: id, status, sums, transaction ids. */
const outcomeOf = ({ status, json }: CommandResponse) => {
  const { paymentId, status: state, amount, capturedAmount, refundedAmount } = json;
  const transactions = json.transactions.map(({ id, type, amount: sum }) => ({ id, type, sum }));
  return { status, paymentId, state, amount, capturedAmount, refundedAmount, transactions };
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

  test.each([
    ['of one merchant', 'm_test', 'ops:admin'],
    ['without the scope', '*', 'audit:read'],
  ])('a token %s acknowledges nothing', async (_name, merchant, scope) => {
    expect((await acknowledgeAhead(service, merchant, scope)).status).toBe(403);
  });

  test('gaps §25: and neither does one without a sub, because it is recorded who did', async () => {
    const nameless = await signToken({ merchant_id: '*', scope: 'ops:admin' });
    const path = '/ops/v1/reconcile/acknowledge';
    const refused = await service.ask('POST', path, undefined, { token: nameless });
    expectError(refused, 403, 'FORBIDDEN', ['this command needs a token with sub']);
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

describe('the same where the event store is a server, whose file is put back', () => {
  test('a repeat gets its first outcome and is charged once', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'payments-events-'));
    const file = join(folder, 'events.jsonl');
    let server = await startStandIn({ file });
    const port = Number(/:(\d+)\?/.exec(server.url)?.[1]);
    await using onServer = await openInProcess({
      EVENTSTOREDB_URL: server.url,
      IDEMPOTENCY_SECRET: 'one secret of the tests, 32 bytes long at least',
      WEBHOOK_SECRET: 'one secret of the tests, 32 bytes long at least',
    });
    const send = () => onServer.create({ captureNow: true }, { key: 'k' });
    await onServer.create();
    copyFileSync(file, `${file}.backup`);
    const first = await send();
    const before = await onServer.ledger();
    await onServer.restart(async (dataDir) => {
      await server.close();
      copyFileSync(`${file}.backup`, file);
      for (const end of ['', '-wal', '-shm'])
        rmSync(join(dataDir, `read-models.sqlite${end}`), { force: true });
      server = await startStandIn({ file, port });
    });
    expect((await send()).status).toBe(503);
    expect((await acknowledgeAhead(onServer)).json).toMatchObject({
      acknowledged: true,
      operations: 1,
    });
    expect(outcomeOf(await send())).toEqual(outcomeOf(first));
    expect(await onServer.ledger()).toEqual(before);
    await server.close();
    rmSync(folder, { recursive: true });
  });
});

/** More of others are newer at Stripe than are looked through. */
const OTHERS = 2_100;

const SEARCHES = [
  ['the account has no search', false],
  ['search finds the newest of ours', true],
] as const;

test.each(shareOf(SEARCHES, 1))(
  `gaps §17: no money moves behind ${OTHERS} newer objects of others until it is acknowledged; %s`,
  async (_name, searches) => {
    await using over = await openOverStripe();
    const { double, service: paying } = over;
    const { intents, dashboard } = double.books;
    const charges = () =>
      [...intents.values()].filter(({ latest_charge: charge }) => charge !== null).length;
    const pay = (key: string) => paying.create({ captureNow: true }, { key });
    expect((await pay('before')).status).toBe(200);
    backUpLog(paying);
    expect((await pay('charged')).status).toBe(200);
    for (let made = 0; made < OTHERS; made += 1) dashboard.open();
    // A day later Stripe would not replay the request.
    double.prune();
    if (!searches) double.endSearch();
    await putBack(paying);

    const isCompared = async () => (await pay('new')).text.includes('--acknowledge');
    await until('Stripe is compared', isCompared);
    for (const key of ['charged', 'new']) {
      const refused = await pay(key);
      expect([refused.status, refused.json.error]).toEqual([503, 'SERVICE_UNAVAILABLE']);
      expect(refused.text).toContain('payments reconcile --acknowledge');
    }
    expect((await paying.ask('GET', '/api/v1/payments')).status).toBe(200);
    expect(charges()).toBe(2);

    expect((await acknowledgeAhead(paying)).status).toBe(200);
    expect((await pay('new')).status).toBe(200);
    expect(charges()).toBe(3);
  },
);
