/** F16: whoever can write the read models' file changes nothing that a merchant or an auditor is shown. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type InProcess, idOf, openInProcess, PAYMENTS, token } from '../support/in-process.ts';

describe('F16: a forged row', () => {
  let service: InProcess;
  let paymentId: string;
  let body: string;

  beforeEach(async () => {
    service = await openInProcess();
    const created = await service.create({ captureNow: true });
    paymentId = idOf(created);
    body = created.text;
    await service.create();
  });
  afterEach(() => service[Symbol.asyncDispose]());

  const forge = (sql: string): Promise<void> =>
    service.restart((dataDir) => {
      const db = new DatabaseSync(join(dataDir, 'read-models.sqlite'));
      db.exec(`UPDATE payment SET ${sql} WHERE payment_id = '${paymentId}'`);
      db.close();
    });
  const list = async (query: string, merchant = 'm_test') =>
    (await service.ask('GET', `${PAYMENTS}${query}`, undefined, { token: await token(merchant) }))
      .text;

  test.each([
    ['a status', `status = 'VOIDED'`],
    ['a body', `body = replace(body, '"capturedAmount":', '"capturedAmount":9')`],
    ['another merchant', `merchant_id = 'm_other'`],
    ['a revision', 'revision = 99'],
  ])('%s: GET and the list show the log, and the row is written anew', async (_, sql) => {
    await forge(sql);
    const other = await token('m_other');
    // The forged row first: reading it is what makes it whole again.
    expect(await list('', 'm_other')).not.toContain(paymentId);
    expect((await service.get(paymentId, { token: other })).status).toBe(404);
    expect((await service.get(paymentId)).text).toBe(body);
    expect(await list('?status=CAPTURED')).toContain(body);
    expect(await list('?status=VOIDED')).not.toContain(paymentId);
    const { text } = await service.ask('GET', '/metrics');
    expect(text).toMatch(/^payments_read_model_differences 1$/m);
  });

  test('a status: the list and the search of all merchants show the log at the first read', async () => {
    await forge(`status = 'VOIDED'`);
    expect(await list('?status=VOIDED')).toBe('{"payments":[]}');
  });

  test('an amount: the auditor finds what the log says', async () => {
    await forge(`amount = 1, last4 = '0000'`);
    const auditor = { token: await token('*', 'audit:read') };
    const { json } = await service.ask('GET', '/audit/v1/payments', undefined, auditor);
    const payments = json.payments as { paymentId: string; amount: number; last4: string }[];
    expect(payments.find((one) => one.paymentId === paymentId)).toMatchObject({
      amount: JSON.parse(body).amount,
      last4: '4242',
    });
  });
});
