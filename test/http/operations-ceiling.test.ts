/** A payment has at most MAX_OPERATIONS_PER_PAYMENT operations (gaps §18). */
import { afterAll, describe, expect, test } from '@jest/globals';
import {
  expectError,
  idOf,
  NO_RETRIES,
  openInProcess,
  timeless,
  token,
} from '../support/in-process.ts';

const REACHED = ['the payment has reached 3 operations'];

const service = await openInProcess({ ...NO_RETRIES, MAX_OPERATIONS_PER_PAYMENT: '3' });
const auditor = await token('*', 'audit:read');
afterAll(() => service[Symbol.asyncDispose]());

const refund = (paymentId: string, refundAmount: number, key?: string) =>
  service.change('refund', paymentId, { refundAmount }, key === undefined ? {} : { key });
const audit = async (paymentId: string, what: string) =>
  (
    await service.ask('GET', `/audit/v1/payments/${paymentId}/${what}`, undefined, {
      token: auditor,
    })
  ).json as unknown as Record<string, unknown[]>;

/** A sale and two refunds of 500: as many operations as it may have, and 1500 left. */
const atCeiling = async (): Promise<string> => {
  const paymentId = idOf(await service.create({ captureNow: true }));
  await refund(paymentId, 500);
  expect((await refund(paymentId, 500, 'second')).status).toBe(200);
  return paymentId;
};

describe('a payment that has all the operations it may have', () => {
  test('the next is 422 of its operation, before any intent, and the provider is not called', async () => {
    const paymentId = await atCeiling();
    const before = await audit(paymentId, 'events');
    for (let n = 0; n < 2; n += 1) {
      expectError(await refund(paymentId, 500, 'third'), 422, 'REFUND_NOT_ALLOWED', REACHED);
    }
    expect(await audit(paymentId, 'events')).toEqual(before);
    expect(await service.ledger(paymentId)).toHaveLength(3);
    expect((await service.get(paymentId)).json).toMatchObject({ refundableAmount: 1500 });
  });

  test('a repeat under the key of an operation that exists still gets its stored outcome', async () => {
    const paymentId = await atCeiling();
    const stored = await service.get(paymentId);
    const repeat = await refund(paymentId, 500, 'second');
    expect(repeat.headers['idempotent-replayed']).toBe('true');
    expect([repeat.status, repeat.text]).toEqual([200, stored.text]);
    expect(timeless(await refund(paymentId, 500, 'second'))).toEqual(timeless(repeat));
  });

  test('explain says the same, and names the operation that was the last', async () => {
    const paymentId = await atCeiling();
    const json = await audit(paymentId, 'explain?command=refund&amount=500');
    expect(json).toMatchObject({ allowed: false, code: 'REFUND_NOT_ALLOWED', details: REACHED });
    expect(json.forbiddenBy).toMatchObject([{ type: 'PaymentRefundRequested', revision: 5 }]);
  });
});
