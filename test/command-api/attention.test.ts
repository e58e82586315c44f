/** gaps §25: each reason is produced, listed with a command that can be run, and goes. */
import { execFileSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type {
  AttentionItem,
  AttentionReason,
} from '../../command-api/back-office/attention/contract.ts';
import { hashOf } from '../../shared/event-store/chain.ts';
import { checkpointAtStart } from '../../topics/checkpoint.ts';
import { runCli } from '../support/cli.ts';
import { backUp, putBack } from '../support/put-back.ts';
import {
  expectError,
  type InProcess,
  idOf,
  locatedId,
  NO_RETRIES,
  type OpenedOver,
  openInProcess,
  SECRET,
  signToken,
  token,
} from '../support/service-in-process.ts';
import { openRows } from '../support/tampering.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

// A disabled endpoint waits for the thread that sends, which has a thirtieth of a busy CPU.
const LIST = '/ops/v1/attention';
const DAY_MS = 86_400_000;

let service: InProcess;
const open = async (settings = {}, over: OpenedOver = {}): Promise<void> => {
  service = await openInProcess(settings, undefined, over);
};
afterEach(() => service[Symbol.asyncDispose]());

const list = async (query = '', merchant = '*') =>
  service.ask('GET', LIST + query, undefined, { token: await token(merchant, 'ops:admin') });
const items = async (merchant = '*', query = ''): Promise<AttentionItem[]> => {
  const { status, json } = await list(query, merchant);
  expect(status).toBe(200);
  return json.items as unknown as AttentionItem[];
};
const of = async (reason: AttentionReason, merchant = '*'): Promise<AttentionItem[]> =>
  (await items(merchant)).filter((item) => item.reason === reason);
const only = async (reason: AttentionReason): Promise<AttentionItem> => {
  const [item, ...others] = await of(reason);
  expect(others).toEqual([]);
  expect(item).toMatchObject({ id: expect.stringMatching(/^att_[0-9A-Z]{26}$/) });
  expect(Date.parse(item?.since ?? '')).toBeLessThanOrEqual(Date.now());
  return item as AttentionItem;
};
const untilGone = (reason: AttentionReason): Promise<void> =>
  until(`${reason} is gone`, async () => (await of(reason)).length === 0);

const cli = async (...args: string[]) =>
  runCli(args, { PAYMENTS_URL: await listening(), JWT_SECRET: SECRET, DATA_DIR: service.dataDir });
let address: { of: InProcess; url: string } | undefined;
const listening = async (): Promise<string> => {
  if (address?.of !== service) address = { of: service, url: await service.listen() };
  return address.url;
};
const restart = async (meanwhile?: (folder: string) => void): Promise<void> => {
  await service.restart(meanwhile);
  address = undefined;
};
/** The command can be run: wrong usage is exit code 2. */
const runNext = async ({ next }: AttentionItem) => {
  // As a person pastes it: the shell parts the words.
  const words = execFileSync('sh', ['-c', `printf '%s\\0' ${next}`]).toString();
  const [program, ...args] = words.split('\0').slice(0, -1);
  expect(program).toBe('payments');
  const ran = await cli(...args);
  expect([0, 1, 3]).toContain(ran.code);
  return ran;
};
const acknowledge = async (
  { id }: AttentionItem,
  body: object = { note: 'TICKET-1' },
  bearer = token('*', 'ops:admin'),
) => service.ask('POST', `${LIST}/${id}/acknowledge`, body, { token: await bearer });

const filled = temporaryFolder();
let paymentId: string;
let second: string;
beforeAll(async () => {
  await using filling = await openInProcess();
  paymentId = idOf(await filling.create());
  second = idOf(await filling.create());
  // A start looks at the last 100 events.
  await Promise.all(Array.from({ length: 55 }, () => filling.create()));
  await filling.restart((folder) => cpSync(folder, filled.path, { recursive: true }));
});
afterAll(filled.remove);
/** A service whose first payments no start looks at. */
const openFilled = () => open({}, { folder: filled.path });

type Row = ReturnType<typeof openRows>['rows'][number];
let whole: Row | undefined;

const editRow = (folder: string, isIt: (row: Row) => boolean, edit: (row: Row) => Row): void => {
  const log = openRows(join(folder, 'events.sqlite'));
  log.write(log.rows.map((row) => (isIt(row) ? edit(row) : row)));
  log.close();
};
/** Changes the stored text of a payment's second event. */
const change = (folder: string, paymentId: string, edit: (text: string) => string): void => {
  const isIt = ({ text }: Row) =>
    text.includes(`"payment-${paymentId}"`) && text.includes('"revision":1,');
  editRow(folder, isIt, (row) => {
    whole = row;
    const text = edit(row.text);
    return { ...row, text, hash: text.includes('Teleported') ? hashOf(text) : row.hash };
  });
};
const mend = (folder: string): void =>
  editRow(
    folder,
    ({ position }) => position === whole?.position,
    () => whole as Row,
  );
const teleported = (text: string) => text.replace('PaymentAuthorized', 'PaymentTeleported');
const dearer = (text: string) => text.replace('"amount":2500', '"amount":9500');

describe('an operation', () => {
  const lose = async (): Promise<string> => {
    service.faults.respondsToLookUps = false;
    service.faults.next('answer lost');
    return locatedId(await service.create());
  };

  test('UNRESOLVED is one that is old enough, until its outcome is recorded', async () => {
    await open({ RECOVERY_DELAYS_MS: '50' }, { unresolvedAfterMs: 0 });
    const paymentId = await lose();
    await until('it is listed', async () => (await of('UNRESOLVED')).length === 1);
    const item = await only('UNRESOLVED');
    expect(item).toMatchObject({ paymentId, subject: expect.stringMatching(/^op_/) });
    expect(item.what).toBe('The outcome of a create of 25.00 USD is not known.');
    expect(await of('UNRESOLVED', 'm_test')).toEqual([item]);
    expect(await items('m_other')).toEqual([]);
    await runNext(item);
    service.faults.respondsToLookUps = true;
    await service.change('capture', paymentId);
    await untilGone('UNRESOLVED');
  });

  test('RESOLUTION_REQUESTED waits for a second person; CONTRADICTED until the record agrees', async () => {
    await open({ RECOVERY_DELAYS_MS: '50,50,50,50,50,50,50,50,50,50,50,50' });
    const paymentId = await lose();
    const resolve = async (sub: string, outcome: string) => {
      const body = { outcome, evidence: `letter to ${sub}`, withoutFence: true };
      const bearer = await signToken({ merchant_id: '*', sub, scope: 'ops:resolve' });
      return service.ask('POST', `/ops/v1/payments/${paymentId}/resolve`, body, { token: bearer });
    };
    await until('it is unresolved', async () => (await resolve('jane', 'declined')).status === 202);
    // It is younger than 15 minutes.
    expect(await of('UNRESOLVED')).toEqual([]);
    const requested = await only('RESOLUTION_REQUESTED');
    expect(requested).toMatchObject({ paymentId, what: expect.stringContaining('jane') });
    const listed = await runNext(requested);
    expect(listed.stderr).toContain(`payments resolve ${paymentId} --outcome declined`);
    expect((await resolve('john', 'declined')).status).toBe(200);
    expect(await of('RESOLUTION_REQUESTED')).toEqual([]);

    service.faults.respondsToLookUps = true;
    await until('it is contradicted', async () => (await of('CONTRADICTED')).length === 1);
    const contradicted = await only('CONTRADICTED');
    expect(contradicted).toMatchObject({ paymentId, subject: requested.subject });
    await runNext(contradicted);
    expect((await resolve('jane', 'declined')).status).toBe(202);
    expect((await resolve('john', 'declined')).status).toBe(200);
    await untilGone('CONTRADICTED');
  });
});

describe('a payment', () => {
  test('UNREADABLE_EVENT by a reconciliation, PARKED_READ_MODEL by the projector, until it is whole and tried again', async () => {
    await openFilled();
    await restart((folder) => change(folder, paymentId, teleported));
    expect(await items()).toEqual([]);
    await cli('reconcile');
    expect(await only('UNREADABLE_EVENT')).toMatchObject({ paymentId });
    await restart((folder) => rmSync(join(folder, 'read-models.sqlite')));
    await until('it is parked', async () => (await of('PARKED_READ_MODEL')).length === 1);
    const parked = await only('PARKED_READ_MODEL');
    const unreadable = await only('UNREADABLE_EVENT');
    expect(parked).toMatchObject({ paymentId, subject: paymentId });
    expect(unreadable).toMatchObject({ paymentId, subject: paymentId });
    await runNext(unreadable);
    expect((await runNext(parked)).code).toBe(1);
    await restart(mend);
    await runNext(parked);
    await untilGone('PARKED_READ_MODEL');
    expect(await of('UNREADABLE_EVENT')).toEqual([]);
  });

  test('PARKED_TOPIC is what the relay has noted, or that its document is damaged, beside PROVIDER_MISCONFIGURED, until an operation is carried out', async () => {
    await open();
    const paymentId = idOf(await service.create());
    const since = new Date().toISOString();
    const note = { from: 1, to: 1, reason: 'is too large', since };
    const file = join(service.dataDir, 'relay-checkpoint.json');
    const save = (text: string) => writeFileSync(file, JSON.stringify({ version: 1, text }));
    const saveParked = (parked: object) =>
      save(JSON.stringify({ ...checkpointAtStart({ events: 1, state: 1, seals: 1 }), parked }));
    saveParked({ [paymentId]: note });
    const item = await only('PARKED_TOPIC');
    expect(item).toMatchObject({ paymentId, subject: paymentId, since });
    expect(await of('PARKED_TOPIC', 'm_test')).toEqual([item]);
    expect(await of('PARKED_TOPIC', 'm_other')).toEqual([]);
    await runNext(item);
    saveParked({});
    expect(await of('PARKED_TOPIC')).toEqual([]);

    for (const damage of [
      () => save('{"parked":'),
      () => save('{"parked":{"pay_1":1}}'),
      () => writeFileSync(file, '{"version":1,'),
    ]) {
      damage();
      expect(await only('PARKED_TOPIC')).toMatchObject({
        subject: 'log',
        what: "The relay's document cannot be read, so nothing is sent to the topics after a restart, and what is parked there is not listed.",
      });
    }
    expect(await items('m_test')).toEqual([]);
    await runNext(await only('PARKED_TOPIC'));
    service.faults.next({ outcome: 'NOT_SENT', reason: 'forbidden' });
    expect((await service.create()).status).toBe(503);
    expect((await items()).map(({ reason }) => reason).sort()).toEqual([
      'PARKED_TOPIC',
      'PROVIDER_MISCONFIGURED',
    ]);
    rmSync(file);
    await untilGone('PARKED_TOPIC');

    const rejected = await only('PROVIDER_MISCONFIGURED');
    expect(rejected).toMatchObject({
      subject: 'provider',
      what: 'The provider rejects the key for an operation: it lacks the permission; nothing was charged.',
    });
    await runNext(rejected);
    expect(await of('PROVIDER_MISCONFIGURED', 'm_test')).toEqual([]);
    expect((await service.create()).status).toBe(200);
    await untilGone('PROVIDER_MISCONFIGURED');
  });
});

describe('the log', () => {
  test('LOG_BROKEN stays over a restart, until it is acknowledged or a verification of as much finds it no more', async () => {
    const broken = async (): Promise<AttentionItem> => {
      await cli('verify', '--all');
      await until('it is noted', async () => (await of('LOG_BROKEN')).length === 1);
      return only('LOG_BROKEN');
    };
    await openFilled();
    await restart((folder) => change(folder, paymentId, dearer));
    const item = await broken();
    expect(item).toMatchObject({ subject: 'log', what: expect.stringContaining(paymentId) });
    expect((await acknowledge(item)).json).toMatchObject({ id: item.id, actor: 'tester' });
    expect(await of('LOG_BROKEN')).toEqual([]);
    await cli('verify', '--all');
    expect(await of('LOG_BROKEN')).toEqual([]);

    await restart((folder) => {
      mend(folder);
      change(folder, second, dearer);
    });
    const another = await broken();
    expect(another.id).not.toBe(item.id);
    await restart(mend);
    expect(await only('LOG_BROKEN')).toEqual(another);
    expect((await runNext(another)).code).toBe(0);
    await untilGone('LOG_BROKEN');
  });

  test('LOG_UNVERIFIED is a log that was not verified within twice the interval', async () => {
    await open({ VERIFY_INTERVAL_MS: String(DAY_MS) });
    await service.create();
    expect(await items()).toEqual([]);
    const lastRunMs = Date.now() - 3 * DAY_MS;
    const record = { lastOkMs: lastRunMs, lastRunMs };
    await restart((folder) =>
      writeFileSync(
        join(folder, 'log-verification.json'),
        JSON.stringify({ version: 1, text: JSON.stringify(record) }),
      ),
    );
    const item = await only('LOG_UNVERIFIED');
    expect(item).toMatchObject({ subject: 'log' });
    expect((await runNext(item)).code).toBe(0);
    await untilGone('LOG_UNVERIFIED');
  });
});

test('LEDGER_DIFFERS stays over a restart until acknowledged or compared again; PROVIDER_AHEAD until opened', async () => {
  await open();
  await service.create();
  backUp(service);
  await service.create();
  await putBack(service);
  await until('the ledger was compared', async () => (await of('PROVIDER_AHEAD')).length === 1);
  const ahead = await only('PROVIDER_AHEAD');
  expect(ahead).toMatchObject({ subject: 'provider' });
  await runNext(ahead);
  const differs = await only('LEDGER_DIFFERS');
  expect(differs).toMatchObject({ subject: 'ledger' });
  expect(differs.what).toMatch(
    /^Log and provider's ledger differ in 1 place, first MISSING_IN_LOG of pay_/,
  );

  expectError(await acknowledge(ahead), 422, 'BUSINESS_RULE_VIOLATION', expect.anything());
  await cli('reconcile', '--acknowledge');
  await untilGone('PROVIDER_AHEAD');
  await restart();
  expect(await only('LEDGER_DIFFERS')).toEqual(differs);

  expectError(await acknowledge(differs, {}), 400, 'INVALID_REQUEST', ['note is required']);
  expectError(await acknowledge(differs, { note: 'see ann@shop' }), 400, 'INVALID_REQUEST', [
    'note must not hold an @: no e-mail address may be kept',
  ]);
  const ledgerOnly = ['attention', '--reason', 'LEDGER_DIFFERS'];
  const asJson = await cli(...ledgerOnly, '--format', 'json');
  expect([asJson.code, JSON.parse(asJson.stdout)]).toEqual([3, [differs]]);
  const table = await cli(...ledgerOnly);
  expect(table.stdout).toMatch(/^SINCE +REASON +WHAT +NEXT +ID\n\S+ +LEDGER_DIFFERS .+\n$/);
  expect(table.stderr).toBe('payments: 1 item needs a person\n');
  const doctor = await cli('doctor');
  expect([doctor.code, doctor.stderr]).toEqual([3, 'payments: 1 item needs a person\n']);
  expect(doctor.stdout.endsWith(table.stdout)).toBe(true);
  const acknowledging = ['attention', '--acknowledge', differs.id];
  expect((await cli(...acknowledging)).code).toBe(2);
  const { code, stdout } = await cli(...acknowledging, '--note', 'TICKET-1', '--format', 'json');
  expect([code, JSON.parse(stdout)]).toMatchObject([
    0,
    { reason: 'LEDGER_DIFFERS', note: 'TICKET-1', actor: expect.stringMatching(/^cli/) },
  ]);
  expect(await cli('attention')).toMatchObject({ code: 0, stderr: 'Nothing needs a person.\n' });
  expect((await cli('doctor')).code).toBe(0);
  expect(await of('LEDGER_DIFFERS')).toEqual([]);
  expectError(await acknowledge(differs), 404, 'NOT_FOUND', expect.anything());
  await restart();
  await cli('reconcile');
  expect(await of('LEDGER_DIFFERS')).toEqual([]);

  // Another difference is another finding.
  backUp(service);
  await service.create();
  await putBack(service);
  address = undefined;
  await cli('reconcile');
  expect((await only('LEDGER_DIFFERS')).id).not.toBe(differs.id);
});

test('WEBHOOK_DISABLED is an endpoint that the service disabled, and not one that its merchant did', async () => {
  await open({ WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' });
  await using receiver = await startReceiver();
  receiver.respond = (_received, response) => response.writeHead(410).end();
  const merchant = "m'1; touch pwned; $(touch pwned) #";
  const mine = { token: await token(merchant) };
  const register = async (): Promise<string> => {
    const body = { url: receiver.url, eventTypes: ['payment.authorized'] };
    return String((await service.ask('POST', '/api/v1/webhook-endpoints', body, mine)).json.id);
  };
  const [gone, own] = [await register(), await register()];
  const status = { status: 'DISABLED' };
  await service.ask('PATCH', `/api/v1/webhook-endpoints/${own}`, status, mine);
  await service.create({}, mine);
  await until('it is disabled', async () => (await of('WEBHOOK_DISABLED')).length === 1);
  const item = await only('WEBHOOK_DISABLED');
  expect(item).toMatchObject({ subject: gone, what: expect.stringContaining('410') });
  expect(await items(merchant)).toEqual([item]);
  expect(item.next).toBe(
    `payments webhooks enable ${gone} --merchant 'm'\\''1; touch pwned; $(touch pwned) #'`,
  );
  expect(await items('m_other')).toEqual([]);
  receiver.respond = undefined;
  expect((await runNext(item)).code).toBe(0);
  await untilGone('WEBHOOK_DISABLED');
});

describe('the route', () => {
  test('needs ops:admin, lists in pages, and filters by reason', async () => {
    await open(NO_RETRIES, { unresolvedAfterMs: 0 });
    service.faults.respondsToLookUps = false;
    for (let n = 0; n < 3; n += 1) {
      service.faults.next('answer lost');
      await service.create();
    }
    await until('all are listed', async () => (await items()).length === 3);
    const all = await items();
    expect(all.map(({ since }) => since)).toEqual(all.map(({ since }) => since).sort());
    const page = (await list('?limit=2')).json;
    expect(page.items).toEqual(all.slice(0, 2));
    const { json: last } = await list(`?limit=2&cursor=${page.next}`);
    expect(last).toEqual({ items: all.slice(2) });
    expect(await items('*', '?reason=CONTRADICTED')).toEqual([]);
    expect(await items('*', '?reason=UNRESOLVED')).toEqual(all);

    expectError(await list('?reason=SOMETHING'), 400, 'INVALID_REQUEST', expect.anything());
    expectError(await list('?limit=0'), 400, 'INVALID_REQUEST', expect.anything());
    expectError(await list('?cursor=x'), 400, 'INVALID_REQUEST', [
      'cursor must be the next of a page',
    ]);
    const metrics = (await service.ask('GET', '/metrics', undefined, { token: null })).text;
    expect(metrics).toMatch(/^payments_attention\{reason="UNRESOLVED"\} 3$/m);
    expect(metrics).toMatch(/^payments_attention\{reason="LOG_BROKEN"\} 0$/m);
    expect(metrics).toMatch(/^payments_attention_oldest_seconds\{reason="UNRESOLVED"\} \d/m);
  });
});
