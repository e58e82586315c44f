/** docs/providers/stripe.md, "A trial without Stripe": its steps, with a crash in the middle. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import sale from '../../examples/token.json' with { type: 'json' };
import { freePort } from '../support/free-port.ts';
import { openPaymentsIn } from '../support/ledger-and-log.ts';
import {
  cleanEnv,
  LAUNCHER,
  NODE,
  ROOT,
  runCliProcess,
  startService,
} from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { succeeds, until } from '../support/until.ts';

const PAYMENTS = '/api/v1/payments';
const SLOW_MS = 1_500;
const card = { ...sale.paymentMethod.card, token: 'pm_card_visa' };
const payment = { ...sale, captureNow: false, paymentMethod: { type: 'CARD', card } };
const folder = temporaryFolder();
let double: ChildProcess;
let address = '';

beforeAll(async () => {
  const env = { ...cleanEnv(), PORT: String(await freePort()), SLOW_MS: String(SLOW_MS) };
  double = spawn(NODE, [LAUNCHER, 'test/support/stripe-double/main.ts'], { cwd: ROOT, env });
  let said = '';
  double.stdout?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  await until('the double listens', () => said.includes('STRIPE_API_URL='));
  address = /STRIPE_API_URL=(\S+)/.exec(said)?.[1] ?? '';
  writeFileSync(join(folder.path, 'stripe.key'), 'sk_test_of_a_trial\n', { mode: 0o600 });
});
afterAll(async () => {
  double.kill();
  await once(double, 'close');
  folder.remove();
});

const settings = async () => ({
  PROVIDER: 'stripe',
  STRIPE_SECRET_KEY_FILE: join(folder.path, 'stripe.key'),
  STRIPE_API_URL: address,
  PORT: String(await freePort()),
});

describe('a trial of Stripe', () => {
  test('the story with a token, kill -9 while Stripe is at work, and a comparison that agrees', async () => {
    const dataDir = join(folder.path, 'data');
    const first = await startService({ dataDir, env: await settings() });
    const { paymentId } = (await first.post(PAYMENTS, payment)).json;
    expect((await first.get(`${PAYMENTS}/${paymentId}`)).json.status).toBe('AUTHORIZED');
    const lost = first.post(`${PAYMENTS}/${paymentId}/capture`, { captureAmount: 1500 });
    const isDone = succeeds(lost);
    await until('the capture is under way', () => openPaymentsIn(dataDir).length === 1);
    first.kill('SIGKILL');
    await first.exited;
    expect(await isDone).toBe(false);

    const env = await settings();
    await using next = await startService({ dataDir, env });
    await until(
      'the capture has its outcome',
      async () => (await next.get(`${PAYMENTS}/${paymentId}`)).json.transactions.length > 1,
    );
    const { status } = (await next.get(`${PAYMENTS}/${paymentId}`)).json;
    // It was under way: carried out, or fenced and free to be sent again.
    if (status === 'AUTHORIZED')
      await next.post(`${PAYMENTS}/${paymentId}/capture`, { captureAmount: 1500 });
    const refund = await next.post(`${PAYMENTS}/${paymentId}/refund`, { refundAmount: 500 });
    const sums = { capturedAmount: 1500, refundedAmount: 500 };
    expect(refund.json).toMatchObject({ status: 'CAPTURED', ...sums });
    const compared = await runCliProcess(['reconcile'], { ...env, DATA_DIR: dataDir });
    const agree = expect.stringContaining('log and provider agree');
    expect(compared).toMatchObject({ code: 0, stdout: agree });
  });
});
