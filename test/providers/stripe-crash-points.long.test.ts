/**
 * `kill -9` through Stripe's driver: in the process before and after each call and append, and from
 * outside while a request is at Stripe, which then acts, does not act, or acts late.
 */
import { expect, test } from '@jest/globals';
import {
  AT_STRIPE,
  CRASH_POINTS,
  type CrashPoint,
  OPERATIONS,
  type Operation,
} from '../support/crash-points.ts';
import {
  arm,
  expectDead,
  expectMovedOnce,
  repeat,
  send,
  startDying,
  type UnderWay,
  underWay,
} from '../support/crash-rounds.ts';
import {
  entriesOfEvents,
  type LoggedPayment,
  openPaymentsIn,
  paymentsOfLog,
} from '../support/ledger-and-log.ts';
import { unresolvedIn } from '../support/service-client.ts';
import type { Service } from '../support/service-processes.ts';
import { type Step, type StripeDouble, stripeDouble } from '../support/stripe-double/server.ts';
import { driverOver, wasFenced } from '../support/stripe-fault-rounds.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

type Requested = (typeof OPERATIONS)[number];

/** The requests to Stripe, in order; the last one moves the money. Two of a create go side by side. */
const REQUESTS: Readonly<Record<Requested, readonly Step[]>> = {
  authorize: ['open', 'method', 'confirm'],
  sale: ['open', 'method', 'confirm'],
  capture: ['capture'],
  void: ['update', 'cancel'],
  refund: ['refund'],
};

/** A process that is killed from outside, while a request of its own is at Stripe. */
type StripePoint = { operation: Requested; step: Step; fault: (typeof AT_STRIPE)[number] };

const nameOf = ({ operation, step, fault }: StripePoint): string =>
  `${operation}: ${step} ${fault}`;

const STRIPE_POINTS: readonly StripePoint[] = OPERATIONS.flatMap((operation) =>
  REQUESTS[operation].flatMap((step) =>
    AT_STRIPE.map((fault): StripePoint => ({ operation, step, fault })),
  ),
);

/** The places in the process itself: what is Stripe's there are `append opened` and the calls. */
const PROCESS_POINTS: readonly CrashPoint[] = CRASH_POINTS.filter(
  (point) => !/read models|(before|after) confirm$/.test(point),
);

type World = { dataDir: string; double: StripeDouble; dead: UnderWay[] };

const settingsOf = ({ double }: World) => ({
  PROVIDER: 'stripe',
  STRIPE_SECRET_KEY: 'sk_test_of_the_service',
  STRIPE_API_URL: double.url,
  STRIPE_CREATES_PER_SECOND: '0',
  // Card numbers, so that the request that makes the payment method is there to die at.
  STRIPE_TEST_TOKENS: 'false',
  // Longer than it takes to have them all at Stripe: none times out before it is killed.
  PROVIDER_TIMEOUT_MS: '60000',
  REQUEST_BUDGET_MS: '90000',
});

const start = (world: World, point?: CrashPoint): Promise<Service> => {
  const crash = { CRASH_ARMED: 'later', ...(point && { CRASH_AT: point }) };
  return startDying(world.dataDir, { ...settingsOf(world), ...crash });
};

/** The response of its request gets lost, so that recovery has something to ask about. */
const loseOne = ({ double }: World, point: CrashPoint): void =>
  double.plan('confirm', point.endsWith('fence') ? 'reset before acting' : 'reset after acting');

/** What died is resolved by recovery alone, and the repeat has the outcome of the one operation. */
const expectRecovered = async (
  world: World,
  service: Service,
  dead: readonly UnderWay[],
): Promise<void> => {
  await until(
    `all is resolved after ${dead.map(({ point }) => point).join(', ')}`,
    async () => openPaymentsIn(world.dataDir).length === 0 && (await unresolvedIn(service)) === 0,
  );
  // What Stripe held back comes now, and before a repeat has used up what it would move.
  await world.double.actLate();
  for (const was of dead) await repeat(service, was);
  world.dead.push(...dead);
};

/** Recovers what died before, and dies at the point. */
const dieInside = async (
  world: World,
  point: CrashPoint,
  before: readonly UnderWay[],
): Promise<UnderWay> => {
  await using service = await start(world, point);
  await expectRecovered(world, service, before);
  const [operation] = point.split(': ') as [Operation];
  const was = await underWay(service, point, operation, `inside ${point}`.replaceAll(/\W/g, '-'));
  await arm(service);
  if (operation === 'recovery') loseOne(world, point);
  // It may have died with the response on its way: that is one of the points.
  await send(service, was).catch(() => undefined);
  await expectDead(service, point);
  return was;
};

/** Recovers what died before, and is killed while each of these requests is at Stripe. */
const dieAtStripe = async (
  world: World,
  points: readonly StripePoint[],
  before: readonly UnderWay[],
): Promise<UnderWay[]> => {
  const { double } = world;
  await using service = await start(world);
  await expectRecovered(world, service, before);
  const dead: UnderWay[] = [];
  const responses: Promise<unknown>[] = [];
  for (const point of points) {
    const name = nameOf(point);
    const was = await underWay(service, name, point.operation, name.replaceAll(/\W/g, '-'));
    const received = double.received.length;
    double.plan(point.step, point.fault);
    responses.push(send(service, was).catch(() => undefined));
    // Two requests of a create go side by side: the other one is not to meet the next point's fault.
    const steps: Step[] = point.step === 'open' ? ['open', 'method'] : [point.step];
    const isAtStripe = () => {
      const seen = double.received.slice(received).map(({ step }) => step);
      return steps.every((step) => seen.includes(step));
    };
    await until(`${name} is at Stripe`, isAtStripe);
    dead.push(was);
  }
  // So that the next process is seen to resolve them.
  const areShown = () => openPaymentsIn(world.dataDir).length === dead.length;
  await until('the read models show them all as unresolved', areShown);
  service.kill('SIGKILL');
  await Promise.all([...responses, service.exited]);
  return dead;
};

const entriesOfStripe = async ({ double }: World): Promise<string[]> => {
  const provider = driverOver(double.url);
  const entries: string[] = [];
  let after: string | null | undefined;
  while (after !== null) {
    const page = await provider.ledger(after ?? null, 100);
    for (const { operationId, kind, paymentId, amount, outcome } of page.entries) {
      entries.push(`${operationId} ${kind} ${paymentId} ${amount} ${outcome}`);
    }
    after = page.next;
  }
  await provider.close();
  return entries.sort();
};

/** Stripe's own books beside each payment: what was charged, captured, released and given back. */
const expectBooks = ({ double }: World, payments: ReadonlyMap<string, LoggedPayment>): void => {
  const { intents, refundedOf } = double.books;
  const charged = [...intents.values()].filter(
    (intent) => intent.latest_charge?.status === 'succeeded' && !wasFenced(intent),
  );
  const inBooks = charged
    .map(({ id, status, amount_received, metadata }) => [
      metadata.paymentId,
      status === 'canceled',
      amount_received,
      refundedOf(id),
    ])
    .sort();
  const inLog = [...payments]
    .map(([paymentId, { body }]) => ({ paymentId, ...JSON.parse(body) }))
    .filter(({ status }) => status !== 'FAILED')
    .map((shown) => [
      shown.paymentId,
      shown.status === 'VOIDED',
      shown.capturedAmount,
      shown.refundedAmount,
    ])
    .sort();
  expect(inBooks).toEqual(inLog);
};

const expectAllAgree = async (world: World, before: readonly UnderWay[]): Promise<void> => {
  await using service = await start(world);
  await expectRecovered(world, service, before);
  const authorization = `Bearer ${await service.token('*', 'audit:read')}`;
  const compared = await service.post('/audit/v1/reconcile', undefined, { authorization });
  expect(compared.json).toMatchObject({ ok: true, differences: [], notCompared: 0 });
  service.kill('SIGKILL');
  await service.exited;
  const payments = await paymentsOfLog(world.dataDir);
  expect(await entriesOfStripe(world)).toEqual(entriesOfEvents(payments));
  expectBooks(world, payments);
  expectMovedOnce(world.dead, payments);
};

test('M1-M6, L1: a process that dies anywhere between open, append, confirm and outcome moves money once', async () => {
  using folder = temporaryFolder();
  const world: World = { dataDir: folder.path, double: await stripeDouble(), dead: [] };
  try {
    let before: UnderWay[] = [];
    for (const point of PROCESS_POINTS) before = [await dieInside(world, point, before)];
    for (const fault of AT_STRIPE) {
      const points = STRIPE_POINTS.filter((point) => point.fault === fault);
      before = await dieAtStripe(world, points, before);
    }
    await expectAllAgree(world, before);
  } finally {
    await world.double.close();
  }
  const died = world.dead.length;
  process.stderr.write(`stripe crash points: died at ${died} points, 0 lost, 0 doubled\n`);
  expect(died).toBe(PROCESS_POINTS.length + STRIPE_POINTS.length);
  expect(died).toBeGreaterThanOrEqual(56);
});
