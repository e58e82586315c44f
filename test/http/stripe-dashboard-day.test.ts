/** A merchant's day over Stripe and its Dashboard, by chance from a printed seed: in the end both say the same. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  type Day,
  doneInDashboard,
  refundsOf,
  saidByStripe,
  saidHere,
  WEBHOOK_SECRET,
  workADay,
} from '../support/dashboard-day.ts';
import { openInProcess, signToken } from '../support/in-process.ts';
import { openPaymentsIn } from '../support/ledger-and-log.ts';
import { timesOf } from '../support/long-run-share.ts';
import { newSeed, randomOf } from '../support/random.ts';
import { stripeDouble } from '../support/stripe-double/server.ts';
import { until } from '../support/until.ts';

const PAYMENTS = timesOf(200, 30);
const seed = newSeed();
let day: Day;
beforeAll(async () => {
  const double = await stripeDouble();
  const service = await openInProcess({
    PROVIDER: 'stripe',
    STRIPE_SECRET_KEY: 'sk_test_of_the_day',
    STRIPE_API_URL: double.url,
    STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
    STRIPE_CREATES_PER_SECOND: '0',
    RECOVERY_DELAYS_MS: '50,50,100,200,500,1000',
    RECONCILE_INTERVAL_MS: '1000',
  });
  day = { service, double, random: randomOf(seed), sent: [], notices: [], paymentIds: new Set() };
});
afterAll(async () => {
  await day.service[Symbol.asyncDispose]();
  await day.double.close();
});

test(`M5, M6: ${PAYMENTS} payments, changed here and in the Dashboard, seed ${seed}`, async () => {
  await workADay(day, PAYMENTS);
  await until('all is resolved', () => openPaymentsIn(day.service.dataDir).length === 0);
  let here = await saidHere(day);
  const stripe = saidByStripe(day);
  const isSame = async () => {
    here = await saidHere(day);
    return JSON.stringify([...here].sort()) === JSON.stringify([...stripe].sort());
  };
  // The schedule finds what no notice told.
  await until('the schedule has looked', isSame, 20_000).catch(() => undefined);
  expect(here).toEqual(stripe);
  const { acknowledged, made } = refundsOf(day);
  expect(acknowledged).toBe(made);
  const done = doneInDashboard(day);
  process.stderr.write(`a day of ${PAYMENTS} payments, seed ${seed}: ${JSON.stringify(done)}\n`);
  // In the long run each of them was met.
  expect(Math.min(...Object.values(done))).toBeGreaterThanOrEqual(timesOf(1, 0));
  const token = await signToken({ merchant_id: '*', sub: 'auditor', scope: 'audit:read' });
  const { json } = await day.service.ask('POST', '/audit/v1/reconcile', undefined, { token });
  expect(json).toMatchObject({ ok: true, differences: [], notCompared: 0 });
}, 300_000);
