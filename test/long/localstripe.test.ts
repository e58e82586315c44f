/**
 * Stripe's driver with books behind the double that others wrote: localstripe. The double adds what
 * localstripe lacks (test/support/stripe-double/localstripe.ts).
 */
import { expect, test } from '@jest/globals';
import { describeDriver } from '../support/describe-driver.ts';
import { openInProcess, signToken } from '../support/in-process.ts';
import { localstripeBooks } from '../support/stripe-double/localstripe.ts';
import { doubleOf } from '../support/stripe-double/server.ts';
import { ALL_CASES, outcomesThatLie, runFaultCases } from '../support/stripe-fault-rounds.ts';

const url = process.env.LOCALSTRIPE_URL ?? '';
const skip = url === '' ? 'LOCALSTRIPE_URL is not set (npm run engines -- up)' : undefined;
const start = () => doubleOf(localstripeBooks(url));

const byToken = (token: string, fields: object = {}) => ({
  ...fields,
  paymentMethod: { type: 'CARD', card: { token, holderName: 'Jane Doe' } },
});

describeDriver("Stripe's driver", { name: 'over localstripe', skip }, () => {
  test('every fault on every request of every operation: what is known is what localstripe did', async () => {
    const findings = await runFaultCases(ALL_CASES, 12, start);
    expect(findings).toHaveLength(ALL_CASES.length);
    expect(outcomesThatLie(findings)).toEqual([]);
    const known = Object.groupBy(findings, (finding) => finding.known);
    const counts = Object.entries(known).map(([name, of]) => `${of?.length} ${name}`);
    process.stderr.write(`localstripe: ${findings.length} faults, ${counts.join(', ')}\n`);
    expect(known.APPROVED?.length).toBeGreaterThan(20);
    expect(known.FENCED?.length).toBeGreaterThan(10);
  }, 300_000);

  test('the story with tokens, and a comparison of all of it afterwards', async () => {
    const double = await start();
    await using service = await openInProcess({
      PROVIDER: 'stripe',
      STRIPE_SECRET_KEY: 'sk_test_of_the_service',
      STRIPE_API_URL: double.url,
      STRIPE_CREATES_PER_SECOND: '0',
      RECOVERY_DELAYS_MS: '50,50,100,200',
    });
    const { paymentId } = (await service.create(byToken('pm_card_visa'))).json;
    const seen = [
      await service.change('capture', paymentId, { captureAmount: 1000 }),
      await service.change('refund', paymentId, { refundAmount: 300 }),
      await service.change('refund', paymentId, { refundAmount: 5000 }),
      await service.change('refund', paymentId),
      await service.create(byToken('pm_card_visa', { captureNow: true })),
      await service.create(byToken('pm_card_visa_chargeDeclined')),
      await service.create(byToken('pm_card_authenticationRequired')),
    ];
    expect(seen.map(({ status, json }) => [status, json.status ?? json.error])).toEqual([
      [200, 'CAPTURED'],
      [200, 'CAPTURED'],
      [422, 'REFUND_NOT_ALLOWED'],
      [200, 'REFUNDED'],
      [200, 'CAPTURED'],
      [402, 'FAILED'],
      [402, 'FAILED'],
    ]);
    expect(seen.at(-1)?.json.failure.failureCode).toBe('AUTHENTICATION_REQUIRED');
    const held = (await service.create(byToken('pm_card_visa'))).json;
    expect((await service.change('void', held.paymentId)).json.status).toBe('VOIDED');

    const { intents, refunds } = await double.books.all();
    const own = intents.filter(({ metadata }) => metadata.paymentId === paymentId);
    expect(own).toMatchObject([{ status: 'succeeded', amount_received: 1000 }]);
    expect(refunds.map(({ amount }) => amount)).toEqual([300, 700]);

    const token = await signToken({ merchant_id: '*', sub: 'auditor', scope: 'audit:read' });
    const compared = await service.ask('POST', '/audit/v1/reconcile', undefined, { token });
    expect(compared.json).toMatchObject({ ok: true, differences: [] });
    await double.close();
  }, 60_000);
});
