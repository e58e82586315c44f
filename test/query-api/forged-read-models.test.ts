/** A writer of the read models' file changes nothing that a merchant or an auditor is shown. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  type CommandResponse,
  expectError,
  type InProcess,
  idOf,
  openInProcess,
  PAYMENTS,
  token,
} from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

/** Of each merchant one row is forged, and only that merchant's tests read it. */
const FORGED = {
  m_status: `status = 'VOIDED'`,
  m_body: `body = replace(body, '"capturedAmount":', '"capturedAmount":9')`,
  m_merchant: `merchant_id = 'm_thief'`,
  m_revision: 'revision = 99',
  m_first: `status = 'VOIDED'`,
  m_amount: `amount = 1, last4 = '0000'`,
  m_page: `status = 'AUTHORIZED', created_at = '2090-01-01T00:00:00.000Z', body = 'no JSON'`,
  m_search: `status = 'AUTHORIZED', created_at = '2090-01-01T00:00:00.000Z', body = 'no JSON'`,
};
type Merchant = keyof typeof FORGED;
const MERCHANTS = Object.keys(FORGED) as Merchant[];

const differencesOf = (service: InProcess) => service.metric('payments_read_model_differences');

describe('a forged row', () => {
  let service: InProcess;
  const forged = {} as Record<Merchant, { paymentId: string; body: string }>;

  beforeAll(async () => {
    service = await openInProcess();
    for (const merchant of MERCHANTS) {
      const own = { token: await token(merchant) };
      const created = await service.create({ captureNow: true }, own);
      forged[merchant] = { paymentId: idOf(created), body: created.text };
      await service.create({}, own);
    }
    await service.restart((dataDir) => {
      const db = new DatabaseSync(join(dataDir, 'read-models.sqlite'));
      for (const merchant of MERCHANTS) {
        const { paymentId } = forged[merchant];
        db.exec(`UPDATE payment SET ${FORGED[merchant]} WHERE payment_id = '${paymentId}'`);
      }
      db.close();
    });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  const list = async (query: string, merchant: string) =>
    (await service.ask('GET', `${PAYMENTS}${query}`, undefined, { token: await token(merchant) }))
      .text;
  const differences = () => differencesOf(service);

  test.each([
    ['a status', 'm_status'],
    ['a body', 'm_body'],
    ['another merchant', 'm_merchant'],
    ['a revision', 'm_revision'],
  ] as const)(
    '%s: GET shows the log, no list shows the row, and it is told',
    async (_, merchant) => {
      const { paymentId, body } = forged[merchant];
      const stranger = merchant === 'm_merchant' ? 'm_thief' : 'm_other';
      const before = await differences();
      expect(await list('', stranger)).not.toContain(paymentId);
      const theirs = { token: await token(stranger) };
      expect((await service.get(paymentId, theirs)).status).toBe(404);
      expect((await service.get(paymentId, { token: await token(merchant) })).text).toBe(body);
      expect(await list('?status=VOIDED', merchant)).not.toContain(paymentId);
      expect(await differences()).toBe(before + 1);
    },
  );

  test('a status: the list and the search of all merchants show the log at the first read', async () => {
    expect(await list('?status=VOIDED', 'm_first')).toBe('{"payments":[]}');
  });

  test('the first row of a page: what comes after it is found on the next page', async () => {
    const query = '?status=AUTHORIZED&limit=1';
    const first = JSON.parse(await list(query, 'm_page'));
    expect(first).toEqual({ payments: [], nextCursor: expect.any(String) });
    const second = JSON.parse(await list(`${query}&cursor=${first.nextCursor}`, 'm_page'));
    expect(second).toEqual({ payments: [expect.objectContaining({ status: 'AUTHORIZED' })] });

    const auditor = { token: await token('m_search', 'audit:read') };
    const search = async (more = '') =>
      (await service.ask('GET', `/audit/v1/payments${query}${more}`, undefined, auditor)).json;
    const found = await search();
    expect(found).toMatchObject({ payments: [], next: expect.any(String) });
    const { payments, next } = await search(`&cursor=${found.next}`);
    expect(payments).toMatchObject([{ status: 'AUTHORIZED' }]);
    expect(next).toBeNull();
  });

  test('an amount: the auditor finds what the log says', async () => {
    const { paymentId, body } = forged.m_amount;
    const auditor = { token: await token('*', 'audit:read') };
    const { json } = await service.ask('GET', '/audit/v1/payments', undefined, auditor);
    const payments = json.payments as { paymentId: string; amount: number; last4: string }[];
    expect(payments.find((one) => one.paymentId === paymentId)).toMatchObject({
      amount: JSON.parse(body).amount,
      last4: '4242',
    });
  });

  test('a rebuild makes lists whole, and ends every difference', async () => {
    const operator = { token: await token('*', 'ops:admin') };
    await service.ask('POST', '/ops/v1/projections/rebuild', undefined, operator);
    await until('nothing differs', async () => (await differences()) === 0);
    for (const merchant of ['m_status', 'm_body', 'm_merchant', 'm_revision'] as const)
      expect(await list('?status=CAPTURED', merchant)).toContain(forged[merchant].body);
  });
});

test('gaps §28: a row that no read meets is found within VERIFY_INTERVAL_MS, and no more once it is right', async () => {
  await using service = await openInProcess({ VERIFY_INTERVAL_MS: '200' });
  await service.create();
  const holds = (state: string, sql: string, differences: number) => {
    using db = new DatabaseSync(join(service.dataDir, 'read-models.sqlite'));
    db.exec(sql);
    return until(state, async () => (await differencesOf(service)) === differences);
  };
  await holds('it is found', 'UPDATE payment SET amount = amount + 1', 1);
  await holds('it is right', 'UPDATE payment SET amount = amount - 1', 0);
});

describe('gaps §28: read models that are not filled', () => {
  let service: InProcess;
  let made: CommandResponse;
  beforeAll(async () => {
    service = await openInProcess();
    made = await service.create();
  });
  afterAll(() => service[Symbol.asyncDispose]());

  const caughtUp = async (): Promise<boolean> =>
    (await service.ask('GET', '/health/ready')).text.includes('"caughtUp":true');
  const list = () => service.ask('GET', PAYMENTS);

  test.each<[string, (change: (dataDir: string) => void) => Promise<void>, string]>([
    ['of a start without them', (change) => service.restart(change), 'DROP TABLE payment'],
    [
      'of a file that was emptied while it is served',
      async (change) => change(service.dataDir),
      'DELETE FROM payment; UPDATE checkpoint SET position = NULL, hash = NULL',
    ],
  ])('%s: lists are 503, and health does not call them caught up', async (_, given, sql) => {
    await given((dataDir) => {
      service.readModels.hold();
      using db = new DatabaseSync(join(dataDir, 'read-models.sqlite'));
      db.exec(sql);
    });
    expect(await caughtUp()).toBe(false);
    const rejected = await list();
    expectError(rejected, 503, 'SERVICE_UNAVAILABLE', []);
    expect(rejected.headers).toMatchObject({ 'retry-after': '1' });
    const auditor = { token: await token('m_test', 'audit:read') };
    const search = await service.ask('GET', '/audit/v1/payments', undefined, auditor);
    expectError(search, 503, 'SERVICE_UNAVAILABLE', []);
    expect((await service.get(idOf(made))).text).toBe(made.text);
    service.readModels.release();
    await until('they are filled', async () => (await list()).status === 200);
    expect((await list()).text).toBe(`{"payments":[${made.text}]}`);
    await until('health says so', caughtUp);
  });
});
