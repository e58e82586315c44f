/** A merchant's day over Stripe and its Dashboard, by chance from a printed seed: in the end both say the same. */
import { afterAll, expect, test } from '@jest/globals';
import {
  type Day,
  doneInDashboard,
  refundsOf,
  saidByStripe,
  saidHere,
  WEBHOOK_SECRET,
  workADay,
} from '../support/dashboard-day.ts';
import { openPaymentsIn } from '../support/ledger-and-log.ts';
import { timesOf } from '../support/long-run-share.ts';
import { newSeed, randomOf } from '../support/random.ts';
import { openOverStripe, reconcile } from '../support/stripe-service.ts';
import { until } from '../support/until.ts';

const PAYMENTS = timesOf(200, 30);
const seed = newSeed();
const over = await openOverStripe({
  STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
  RECOVERY_DELAYS_MS: '50,50,100,200,500,1000',
  RECONCILE_INTERVAL_MS: '1000',
});
afterAll(() => over[Symbol.asyncDispose]());
const day: Day = {
  ...{ service: over.service, double: over.double },
  ...{ random: randomOf(seed), sent: [], notices: [], paymentIds: new Set() },
};

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
  expect(await reconcile(day.service)).toMatchObject({ ok: true, differences: [], notCompared: 0 });
}, 300_000);
