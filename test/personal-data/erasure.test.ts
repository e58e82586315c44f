/**
 * gaps §19, end to end: texts of a person that exist nowhere else are sent in every sealed field, and every byte
 * that the service keeps is searched for them, before an erasure and after it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { MASTER_KEY_FILE } from '../../personal-data/open.ts';
import type { MaskedCard } from '../../shared/payment/fields.ts';
import { takeApart } from '../../shared/payment/response.ts';
import { runCli } from '../support/cli.ts';
import { everyDetail, textsIn } from '../support/every-detail.ts';
import {
  type InProcess,
  openInProcess,
  PAYMENTS,
  payment,
  SECRET,
  signToken,
} from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Of each place another, none a part of another. */
const canary = (place: string): string => `Čanary ${place} ý`;
const details = everyDetail(canary);
const HOLDER = canary('holder');
const REASON = canary('reason');
const EMAIL = String(details.consumer?.email);
const { group } = takeApart({ card: { holderName: HOLDER } as MaskedCard, details });
/** Two letters of a country are in any file by chance. */
const canaries = [...textsIn(group), REASON].filter((text) => text.length > 2);
const BODY = payment({ captureNow: true, ...details });
const { card } = (BODY as { paymentMethod: { card: object } }).paymentMethod;
Object.assign(card, { holderName: HOLDER });

/** As the bytes of a file could hold a text: UTF-8, UTF-16, base64 at each offset, escaped, in an address. */
const formsOf = (text: string): Buffer[] => {
  const bytes = Buffer.from(text);
  const inBase64 = [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .slice(4, -4),
  );
  const escaped = text.replace(
    /[^\x20-\x7e]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  const texts = [...inBase64, escaped, encodeURIComponent(text)];
  return [bytes, Buffer.from(text, 'utf16le'), ...texts.map((one) => Buffer.from(one))];
};

const filesIn = (folder: string): [string, Buffer][] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => [name, readFileSync(join(parentPath, name))]);

const found = (places: readonly [string, Buffer][]): string[] =>
  canaries.flatMap((text) =>
    formsOf(text).flatMap((form) =>
      places.filter(([, bytes]) => bytes.includes(form)).map(([name]) => `${text} in ${name}`),
    ),
  );

let service: InProcess;
let id: string;
let first: string;
const backups = temporaryFolder();

const asOperator = (sub: string, scope = 'ops:erase') =>
  signToken({ merchant_id: 'm_test', sub, scope });
const order = { reason: 'CONSUMER_REQUEST', ticket: 'DPO-17' };
const erase = async (sub: string, body: object = order, paymentId = id) =>
  service.ask('POST', `/ops/v1/payments/${paymentId}/erase`, body, {
    token: await asOperator(sub),
  });

/** What is kept and sent without the merchant's own answers: files, backup, export, log, audit. */
const kept = async (): Promise<[string, Buffer][]> => {
  const auditor = await asOperator('auditor', 'audit:read');
  const read = async (path: string) => {
    const { status, text } = await service.ask('GET', path, undefined, { token: auditor });
    expect([path, status]).toEqual([path, 200]);
    return [path, Buffer.from(text)] as [string, Buffer];
  };
  const copy = join(backups.path, String(Math.random()));
  const env = { DATA_DIR: service.dataDir, JWT_SECRET: SECRET };
  expect(await runCli(['backup', copy], env)).toMatchObject({ code: 0 });
  return [
    ...filesIn(service.dataDir),
    ...filesIn(copy),
    await read('/audit/v1/export'),
    await read('/audit/v1/events'),
    await read(`/audit/v1/payments/${id}/events`),
    await read(`/audit/v1/payments/${id}/state?revision=0`),
    await read('/audit/v1/payments'),
  ];
};

beforeAll(async () => {
  service = await openInProcess({ ERASURE_HOLD_DAYS: '0', LOG_LEVEL: 'trace' });
  const response = await service.ask('POST', PAYMENTS, BODY, { key: 'canary' });
  expect([response.status, response.json.details]).toEqual([200, undefined]);
  id = response.json.paymentId;
  first = response.text;
  expect((await service.change('refund', id, { amount: 100, reason: REASON })).status).toBe(200);
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  backups.remove();
});

test('before an erasure a text of a person is in the answers to its merchant alone', async () => {
  expect(found(await kept())).toEqual([]);
  const shown = canaries.filter((text) => !/previousFailures|reason|2019/.test(text));
  for (const text of shown) expect(first).toContain(JSON.stringify(text));
  const got = await service.get(id);
  for (const text of shown) expect(got.text).toContain(JSON.stringify(text));
  const repeat = await service.ask('POST', PAYMENTS, BODY, { key: 'canary' });
  expect([repeat.status, repeat.text]).toEqual([200, first]);
});

test('an auditor sees it with the scope audit:personal, of a sealed text that it is sealed', async () => {
  const see = async (scope: string) =>
    service.ask('GET', `/audit/v1/payments/${id}/events`, undefined, {
      token: await asOperator('auditor', scope),
    });
  const opened = (await see('audit:read audit:personal')).text;
  for (const text of canaries) expect(opened).toContain(JSON.stringify(text));
  const { events } = (await see('audit:read')).json as unknown as { events: { data: object }[] };
  expect(events[0]?.data).toMatchObject({ personal: { sealed: true } });
  expect(events[3]?.data).toMatchObject({ reason: { sealed: true } });
});

describe('after an erasure by two persons', () => {
  let receipt: string;
  const erasedBody = (text: string): void => {
    const { paymentMethod, productItems, personalData, ...body } = JSON.parse(text);
    expect(paymentMethod.card).toMatchObject({ holderName: 'ERASED', last4: '4242' });
    expect(productItems).toEqual([{ ...details.productItems?.[0], name: 'ERASED' }]);
    expect(personalData).toEqual({ erased: true, erasedAt: expect.any(String) });
    for (const gone of ['consumer', 'billing', 'shipping', 'descriptor'])
      expect(body).not.toHaveProperty(gone);
  };

  test('the first person requests it, and stays the only one however often', async () => {
    for (const _ of [1, 2]) {
      const first = await erase('jane');
      expect([first.status, first.json]).toMatchObject([202, { requestedBy: 'jane' }]);
    }
    expect((await service.get(id)).text).toContain(HOLDER);
  });

  test('of twenty approvals at once one erases, and all answer that it is done', async () => {
    receipt = (
      await service.ask('GET', '/audit/v1/export', undefined, {
        token: await asOperator('auditor', 'audit:read'),
      })
    ).text;
    const approvals = await Promise.all(Array.from({ length: 20 }, () => erase('ann')));
    expect(new Set(approvals.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(approvals[0]).toMatchObject({ status: 200, json: { erasedAt: expect.any(String) } });
    const log = await service.ask('GET', `/audit/v1/payments/${id}/events`, undefined, {
      token: await asOperator('auditor', 'audit:read'),
    });
    const erased = log.text.match(/"type":"PaymentPersonalDataErased"/g);
    expect(erased).toHaveLength(1);
    expect(log.text).toContain('"personal":{"erased":true');
  });

  test('GET, list, repeat and the state of before show ERASED, its money as it was', async () => {
    const got = await service.get(id);
    erasedBody(got.text);
    expect(got.json).toMatchObject({ status: 'CAPTURED', capturedAmount: 2500 });
    expect((await service.ask('GET', PAYMENTS)).text).toBe(`{"payments":[${got.text}]}`);
    erasedBody((await service.ask('POST', PAYMENTS, BODY, { key: 'canary' })).text);
    const state = await service.ask('GET', `/audit/v1/payments/${id}/state?revision=0`, undefined, {
      token: await asOperator('auditor', 'audit:read audit:personal'),
    });
    erasedBody(JSON.stringify(state.json.payment));
  });

  test('the log verifies, and what was exported before is its beginning', async () => {
    const auditor = { token: await asOperator('auditor', 'audit:read') };
    const verified = await service.ask(
      'GET',
      `/audit/v1/payments/${id}/verify`,
      undefined,
      auditor,
    );
    expect(verified.json).toMatchObject({ ok: true });
    const now = (await service.ask('GET', '/audit/v1/export', undefined, auditor)).text;
    const lines = receipt.split('\n').slice(0, 4);
    expect(now.split('\n').slice(0, 4)).toEqual(lines);
  });

  test('a refund goes on, and an erased payment cannot be held', async () => {
    expect((await service.change('refund', id, { amount: 100 })).status).toBe(200);
    const held = await service.ask(
      'PUT',
      `/ops/v1/payments/${id}/erase/hold`,
      { ticket: 'CASE-1' },
      { token: await asOperator('jane') },
    );
    expect(held.status).toBe(422);
    expect((await erase('jane')).status).toBe(200);
  });

  test('no text is left, also after a restart and with the keys of the folder', async () => {
    await service.restart();
    expect(found(await kept())).toEqual([]);
    erasedBody((await service.get(id)).text);
    expect(readdirSync(service.dataDir)).toContain(MASTER_KEY_FILE);
  });
});

test('a person is found by the address in any case, never by another one, and the address is not recorded', async () => {
  const other = await service.create({ consumer: { firstName: 'J', email: EMAIL.toUpperCase() } });
  const search = async (email: string) =>
    service.ask('POST', '/ops/v1/people/search', { email }, { token: await asOperator('jane') });
  expect((await search(` ${EMAIL.toLowerCase()}`)).json).toEqual({
    payments: [other.json.paymentId],
  });
  expect((await search('x@example.com')).json).toEqual({ payments: [] });
  const log = await service.ask('GET', '/audit/v1/events?limit=1000', undefined, {
    token: await signToken({ merchant_id: '*', sub: 'auditor', scope: 'audit:read' }),
  });
  expect(log.text).toContain('"action":"PEOPLE"');
  expect(log.text.toLowerCase()).not.toContain(EMAIL.toLowerCase());
});

test('a hold keeps the texts until it is released, and needs the scope', async () => {
  const { paymentId } = (await service.create({ captureNow: true })).json;
  const path = `/ops/v1/payments/${paymentId}/erase/hold`;
  const jane = { token: await asOperator('jane') };
  const held = await service.ask('PUT', path, { ticket: 'CASE-4711' }, jane);
  expect([held.status, held.json]).toEqual([200, { paymentId, heldBy: 'CASE-4711' }]);
  const refused = await erase('ann', order, paymentId);
  expect(refused.json.details).toEqual(['the payment is held: CASE-4711']);
  const admin = { token: await asOperator('jane', 'ops:admin') };
  expect((await service.ask('DELETE', path, undefined, admin)).status).toBe(403);
  expect((await service.ask('DELETE', path, undefined, jane)).json).toEqual({ paymentId });
  expect((await erase('ann', order, paymentId)).status).toBe(202);
  const other = await signToken({ merchant_id: 'm_other', sub: 'eve', scope: 'ops:erase' });
  expect((await service.ask('PUT', path, { ticket: 'x' }, { token: other })).status).toBe(404);
});
