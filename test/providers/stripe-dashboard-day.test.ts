/** A merchant's day over Stripe and its Dashboard, by chance: in the end both say the same. */
import { afterAll, expect, test } from '@jest/globals';
import { openPaymentsIn } from '../support/ledger-and-log.ts';
import { timesOf } from '../support/long-run-share.ts';
import { type Random, randomOf } from '../support/random.ts';
import {
  type CommandResponse,
  type InProcess,
  locatedId,
  PAYMENTS,
  payment,
} from '../support/service-in-process.ts';
import type { Intent } from '../support/stripe-double/books.ts';
import type { Step, StripeDouble } from '../support/stripe-double/server.ts';
import { wasFenced } from '../support/stripe-fault-rounds.ts';
import { openOverStripe, reconcile } from '../support/stripe-service.ts';
import { stripeSignature } from '../support/stripe-signature.ts';
import { until } from '../support/until.ts';

const WEBHOOK_SECRET = 'whsec_of_the_day';
const AT_ONCE = 6;
const HANDS_MAX = 16;
const ACTS_MS_MAX = 5;
const FAULT_SHARE = 0.06;
const CARDS = ['pm_card_visa', 'pm_card_mastercard', 'pm_card_visa_chargeDeclined'];

/** A request of the merchant, with its last response. */
type Sent = { path: string; body: object; key: string; response: CommandResponse };

type Day = {
  service: InProcess;
  double: StripeDouble;
  random: Random;
  sent: Sent[];
  paymentIds: Set<string>;
  /** What Stripe has not delivered yet. */
  notices: object[];
};

const oneOf = <T>({ random }: Day, all: readonly T[]): T =>
  all[random.between(0, all.length - 1)] as T;

const request = async (day: Day, path: string, body: object): Promise<CommandResponse> => {
  const key = crypto.randomUUID();
  const response = await day.service.ask('POST', path, body, { key });
  day.sent.push({ path, body, key, response });
  return response;
};

const idOfCreated = (created: CommandResponse): string =>
  created.json.paymentId ?? locatedId(created);

const loseSomeResponses = (day: Day, steps: readonly Step[]): void => {
  if (day.random.chance(FAULT_SHARE))
    day.double.plan(oneOf(day, steps), oneOf(day, ['reset after acting', 'reset before acting']));
};

type Hand = (day: Day, intent: Intent) => Promise<unknown>;
const ofMerchant =
  (change: 'capture' | 'void' | 'refund', bodyOf: (day: Day, intent: Intent) => object): Hand =>
  (day, intent) => {
    loseSomeResponses(day, [change === 'void' ? 'cancel' : change]);
    day.notices.push(intent);
    const path = `${PAYMENTS}/${intent.metadata.paymentId}/${change}`;
    return request(day, path, bodyOf(day, intent));
  };
const part = ({ random }: Day, of: number): number => random.between(1, Math.max(1, of));

/** By hand at Stripe: what it leads to is told by a notice of its own. */
const inDashboard =
  (act: (day: Day, intent: Intent) => void): Hand =>
  async (day, intent) => {
    act(day, intent);
    day.notices.push(intent);
  };

const HANDS: readonly Hand[] = [
  ofMerchant('capture', () => ({})),
  ofMerchant('capture', (day, { amount }) => ({ captureAmount: part(day, amount) })),
  ofMerchant('void', () => ({})),
  ofMerchant('refund', () => ({})),
  ofMerchant('refund', (day, { amount }) => ({ refundAmount: part(day, amount / 2) })),
  inDashboard(({ double }, { id }) => void double.books.dashboard.capture(id)),
  inDashboard((day, { id, amount }) => {
    day.double.books.dashboard.capture(id, part(day, amount));
  }),
  inDashboard((day, { id }) => {
    const reason = oneOf(day, ['duplicate', 'fraudulent', 'abandoned']);
    day.double.books.dashboard.cancel(id, reason);
  }),
  inDashboard((day, { id, amount }) => {
    day.double.books.dashboard.refund(id, part(day, amount / 2));
  }),
];

const deliver = async (day: Day, object: object): Promise<number> => {
  const body = JSON.stringify({ id: 'evt_1', type: 'any', data: { object } });
  const { status } = await day.service.ask('POST', '/webhooks/stripe', body, {
    token: null,
    headers: { 'stripe-signature': stripeSignature(body, WEBHOOK_SECRET) },
  });
  return status;
};

/** One of the waiting notices, in any order: lost, delivered, or delivered twice. */
const deliverOne = async (day: Day): Promise<void> => {
  const { notices, random } = day;
  const [notice] = notices.splice(random.between(0, notices.length - 1), 1);
  if (notice === undefined || random.chance(0.3)) return;
  for (let times = random.chance(0.3) ? 2 : 1; times > 0; times -= 1)
    if ((await deliver(day, notice)) === 503) notices.push(notice);
};

const workOnOne = async (day: Day): Promise<void> => {
  loseSomeResponses(day, ['confirm']);
  const card = { token: oneOf(day, CARDS), holderName: 'Jane Doe' };
  const fields = { captureNow: day.random.chance(0.3), paymentMethod: { type: 'CARD', card } };
  const created = await request(day, PAYMENTS, payment(fields));
  const paymentId = idOfCreated(created);
  day.paymentIds.add(paymentId);
  const intent = [...day.double.books.intents.values()].find(
    ({ metadata }) => metadata.paymentId === paymentId,
  );
  if (intent?.latest_charge?.status !== 'succeeded') return;
  for (let left = day.random.between(1, HANDS_MAX); left > 0; left -= 1) {
    const hands = [oneOf(day, HANDS), ...(day.random.chance(0.3) ? [oneOf(day, HANDS)] : [])];
    await Promise.all(hands.map((hand) => hand(day, intent)));
    if (day.random.chance(0.5)) await deliverOne(day);
  }
};

/** So many payments, a few at a time; in the end each request that was 503 has been sent again. */
const workADay = async (day: Day, payments: number): Promise<void> => {
  day.double.actsAfterMs(() => day.random.between(0, ACTS_MS_MAX));
  let left = payments;
  const work = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await workOnOne(day);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  while (day.notices.length > 0) await deliverOne(day);
  for (const sent of day.sent) {
    const { path, body, key } = sent;
    await until(`${path} has an outcome`, async () => {
      if (sent.response.status === 503)
        sent.response = await day.service.ask('POST', path, body, { key });
      return sent.response.status !== 503;
    });
    // Of what was fenced the repeat is a payment of its own.
    if (path === PAYMENTS) day.paymentIds.add(idOfCreated(sent.response));
  }
};

/** What became of each payment, by Stripe's own objects. */
const saidByStripe = ({ double: { books } }: Day): Map<string, object> =>
  new Map(
    [...books.intents.values()].map((intent) => {
      const { id, status, amount_received, latest_charge: charge, metadata } = intent;
      const isKept = charge?.status === 'succeeded' && !wasFenced(intent);
      const said = {
        wasApproved: isKept,
        isVoided: isKept && status === 'canceled',
        captured: amount_received,
        refunded: books.refundedOf(id),
      };
      return [metadata.paymentId ?? '', said];
    }),
  );

/** The same of each payment that a request was for, as its merchant gets it. */
const saidHere = async ({ service, paymentIds }: Day): Promise<Map<string, object>> => {
  const said = new Map<string, object>();
  for (const paymentId of paymentIds) {
    const { json } = await service.get(paymentId);
    said.set(paymentId, {
      wasApproved: json.status !== 'FAILED' && json.status !== 'PENDING',
      isVoided: json.status === 'VOIDED',
      captured: json.capturedAmount,
      refunded: json.refundedAmount,
    });
  }
  return said;
};

/** The refunds that merchants were told of, and those that Stripe has under our operations. */
const refundsOf = ({ sent, double: { books } }: Day) => ({
  acknowledged: sent.filter(
    ({ path, response }) => path.endsWith('/refund') && response.status === 200,
  ).length,
  made: books.refunds.filter(({ metadata }) => metadata.operationId).length,
});

const COUNT = timesOf(200, 16);
const over = await openOverStripe({
  STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
  RECOVERY_DELAYS_MS: '50,50,100,200,500,1000',
  RECONCILE_INTERVAL_MS: '1000',
});
afterAll(() => over[Symbol.asyncDispose]());
const day: Day = {
  ...{ service: over.service, double: over.double },
  ...{ random: randomOf(), sent: [], notices: [], paymentIds: new Set() },
};

test(`M5, M6: ${COUNT} payments, changed here and in the Dashboard`, async () => {
  await workADay(day, COUNT);
  await until('all is resolved', () => openPaymentsIn(day.service.dataDir).length === 0);
  let here = await saidHere(day);
  const stripe = saidByStripe(day);
  const isSame = async () => {
    here = await saidHere(day);
    return JSON.stringify([...here].sort()) === JSON.stringify([...stripe].sort());
  };
  await reconcile(day.service);
  await until('the schedule has looked', isSame, 20_000).catch(() => undefined);
  expect(here).toEqual(stripe);
  const { acknowledged, made } = refundsOf(day);
  expect(acknowledged).toBe(made);
  expect(await reconcile(day.service)).toMatchObject({ ok: true, differences: [], notCompared: 0 });
});
