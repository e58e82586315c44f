/** gaps §15: what the provider says of a payment later, as the simulator's cards cause it. */
import { describe, expect, test } from '@jest/globals';
import { TEST_CARDS } from '../../providers/simulator/test-cards.ts';
import { expectError, idOf, serviceOfTests } from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

const service = await serviceOfTests();

const cardThat = (behaviour: string): string => {
  const card = TEST_CARDS.find((one) => one.behaviour === behaviour);
  if (card === undefined) throw new Error(`no card ${behaviour}`);
  return card.number;
};
const shown = async (id: string) => (await service.get(id)).json;
const sold = async (behaviour: string): Promise<string> =>
  idOf(await service.create({ captureNow: true, number: cardThat(behaviour) }));

test('an authorization that ran out is VOIDED, and cannot be captured', async () => {
  const id = idOf(await service.create({ number: cardThat('AUTHORIZATION_EXPIRES') }));
  await until('it has run out', async () => (await shown(id)).status === 'VOIDED');
  expect((await shown(id)).transactions).toMatchObject([
    { type: 'AUTH', result: 'SUCCEEDED' },
    { type: 'VOID', amount: 2500, result: 'SUCCEEDED' },
  ]);
  expectError(await service.change('capture', id), 422, 'CAPTURE_NOT_ALLOWED', [
    'only an AUTHORIZED payment can be captured; this one is VOIDED',
  ]);
});

test('a refund that bounced is FAILED, and its amount is refundable again', async () => {
  const id = await sold('REFUND_FAILS');
  const refund = await service.change('refund', id, {}, { key: 'bounced' });
  expect([refund.status, refund.json.status]).toEqual([200, 'REFUNDED']);
  await until('it has bounced', async () => (await shown(id)).status === 'CAPTURED');
  expect(await shown(id)).toMatchObject({ refundedAmount: 0, refundableAmount: 2500 });
  expect((await shown(id)).transactions.at(-1)).toMatchObject({
    type: 'REFUND',
    result: 'FAILED',
    failure: { failureCode: 'PROCESSING_ERROR', providerFailureCode: 'refund_bounced' },
  });
  const repeated = await service.change('refund', id, {}, { key: 'bounced' });
  expect(repeated.text).toBe(refund.text);
  expect((await service.change('refund', id)).status).toBe(200);
});

test('a refund that was made elsewhere lowers what can be refunded', async () => {
  const id = await sold('REFUNDED_ELSEWHERE');
  await until('it is seen', async () => (await shown(id)).refundedAmount === 100);
  expect((await shown(id)).transactions.at(-1)).toMatchObject({ type: 'REFUND', amount: 100 });
  expectError(
    await service.change('refund', id, { refundAmount: 2401 }),
    422,
    'REFUND_NOT_ALLOWED',
    ['refundAmount must not exceed the 2400 left to refund'],
  );
  const rest = await service.change('refund', id);
  expect([rest.status, rest.json.status]).toEqual([200, 'REFUNDED']);
});

test('a capture that was made elsewhere can be refunded, and its rest is released', async () => {
  const id = idOf(await service.create({ number: cardThat('CAPTURED_ELSEWHERE') }));
  await until('it is seen', async () => (await shown(id)).status === 'CAPTURED');
  expect(await shown(id)).toMatchObject({ capturedAmount: 100, refundableAmount: 100 });
  const refund = await service.change('refund', id);
  expect([refund.status, refund.json.status]).toEqual([200, 'REFUNDED']);
});

test('a payment that was canceled elsewhere is VOIDED', async () => {
  const id = idOf(await service.create({ number: cardThat('VOIDED_ELSEWHERE') }));
  await until('it is seen', async () => (await shown(id)).status === 'VOIDED');
  expect((await shown(id)).transactions.at(-1)).toMatchObject({ type: 'VOID', amount: 2500 });
});

describe('a dispute', () => {
  test('stands in the answer, and nothing is refunded while it is open', async () => {
    const id = await sold('DISPUTED');
    await until('it is disputed', async () => (await shown(id)).disputes !== undefined);
    const { status, disputes } = await shown(id);
    expect([status, disputes]).toMatchObject([
      'CAPTURED',
      [{ amount: 2500, reason: 'fraudulent', status: 'OPEN' }],
    ]);
    expectError(await service.change('refund', id), 422, 'REFUND_NOT_ALLOWED', [
      'the payment is disputed',
    ]);
  });

  test.each([
    ['DISPUTE_WON', 'WON', 2500],
    ['DISPUTE_LOST', 'LOST', 0],
  ] as const)('%s: what is refundable afterwards', async (behaviour, status, refundable) => {
    const id = await sold(behaviour);
    await until('it is closed', async () =>
      JSON.stringify((await shown(id)).disputes ?? '').includes(status),
    );
    expect((await shown(id)).refundableAmount).toBe(refundable);
    expect((await service.change('refund', id)).status).toBe(refundable === 0 ? 422 : 200);
  });
});
