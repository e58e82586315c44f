/** gaps §13: whatever a scenario or a test card does, log and provider agree about it afterwards. */
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { SCENARIO_NAMES } from '../../cli/dev/scenarios.ts';
import { TEST_CARDS } from '../../provider-simulator/test-cards.ts';
import { runCli } from '../support/cli.ts';
import { type ServiceHere, startServiceHere } from '../support/service-here.ts';
import { until } from '../support/until.ts';

jest.setTimeout(120_000);

let service: ServiceHere;
beforeAll(async () => {
  service = await startServiceHere();
}, 120_000);
afterAll(() => service[Symbol.asyncDispose]());

const cli = (...args: string[]) =>
  runCli(args, { DATA_DIR: service.dataDir, PAYMENTS_URL: service.url, NO_COLOR: '1' });

const expectAgreement = async (): Promise<void> => {
  const { code, stdout, stderr } = await cli('reconcile');
  expect({ code, stdout, stderr }).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^log and provider agree/),
  });
};

test.each(SCENARIO_NAMES)('log and provider agree after payments trigger %s', async (name) => {
  expect((await cli('trigger', name)).code).toBe(0);
  await expectAgreement();
});

const PAYMENTS = '/api/v1/payments';

/** A payment by this card, as far as the card lets it go. */
const useCard = async (number: string): Promise<void> => {
  const card = { number, holderName: 'Ada', expiryMonth: '12', expiryYear: '2034' };
  const paymentMethod = { type: 'CARD', card };
  const { json } = await service.post(PAYMENTS, { amount: 900, currency: 'USD', paymentMethod });
  const id = json.paymentId ?? /pay_\w+/.exec(JSON.stringify(json.details))?.[0];
  const at = `${PAYMENTS}/${id}`;
  const isPending = async () => (await service.get(at)).json.status === 'PENDING';
  await until('its outcome is known', async () => !(await isPending()));
  await service.post(`${at}/capture`, {});
  await service.post(`${at}/refund`, { refundAmount: 300 });
};

test.each(TEST_CARDS)('they agree after a payment by $number: $outcome', async ({ number }) => {
  await useCard(number);
  await expectAgreement();
});
