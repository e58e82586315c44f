/**
 * gaps §21: the process dies on the road of a payment whose shopper is wanted, over the simulator or
 * over Stripe's double. The shopper comes in time, or not at all; money moves once, or never.
 */
import { expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { AT_STRIPE, CRASH_POINTS, type CrashPoint } from '../support/crash-points.ts';
import { arm, expectDead, startDying } from '../support/crash-rounds.ts';
import {
  entriesOfLedger,
  expectLedgerMatchesLog,
  paymentsOfLog,
} from '../support/ledger-and-log.ts';
import { shareOf } from '../support/long-run-share.ts';
import { unresolvedIn } from '../support/service-client.ts';
import type { Service } from '../support/service-processes.ts';
import { type StripeDouble, stripeDouble } from '../support/stripe-double/server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

type Over = 'simulator' | 'stripe';
type AtStripe = (typeof AT_STRIPE)[number];
type Death = {
  over: Over;
  /** Where each process dies, one after the other; or what Stripe does with the confirm meanwhile. */
  points: readonly CrashPoint[] | AtStripe;
  comes: boolean;
};

const startsWith = (operation: string) =>
  CRASH_POINTS.filter((point) => point.startsWith(operation));
const isOfStripe = (point: CrashPoint) => point.endsWith('append opened');
const ROAD = startsWith('sale: ').filter((point) => !/(before|after) confirm$/.test(point));
const END = startsWith('recovery: ').filter((point) => !point.endsWith('fence'));
const FENCE = startsWith('recovery: ').filter((point) => !point.endsWith('look up'));

const OVERS: readonly Over[] = ['simulator', 'stripe'];

/** Every await on the way to the shopper, from there to the outcome, and of the fence. */
const DEATHS: readonly Death[] = [
  ...OVERS.flatMap((over): Death[] => [
    ...ROAD.filter((point) => over === 'stripe' || !isOfStripe(point)).map((point) => ({
      over,
      points: [point],
      comes: true,
    })),
    // What the first one did not record, the second one dies at.
    ...END.map((point): Death => ({ over, points: ['sale: after provider', point], comes: true })),
    ...END.map((point): Death => ({ over, points: [point], comes: true })),
    ...FENCE.map((point): Death => ({ over, points: [point], comes: false })),
  ]),
  ...AT_STRIPE.map((points): Death => ({ over: 'stripe', points, comes: true })),
];

const nameOf = ({ over, points, comes }: Death): string =>
  `${over}, ${comes ? 'in time' : 'too late'}: ${[points].flat().join(', then ')}`;

const PAYMENTS = '/api/v1/payments';
const KEY = { 'idempotency-key': 'dies-while-waiting' };
const authentication = { returnUrl: 'https://shop.example/back' };
const CARDS = {
  simulator: { ...payment.paymentMethod.card, number: '4000000000003220', authentication },
  stripe: { token: 'pm_card_authenticationRequired', holderName: 'Jane Doe', authentication },
};

type World = { death: Death; dataDir: string; double: StripeDouble };

const send = (service: Service, { death }: World) =>
  service.post(
    PAYMENTS,
    { ...payment, captureNow: true, paymentMethod: { type: 'CARD', card: CARDS[death.over] } },
    KEY,
  );

const start = ({ death, dataDir, double }: World, env: NodeJS.ProcessEnv): Promise<Service> =>
  startDying(dataDir, {
    ...(death.comes ? {} : { AUTHENTICATION_TIMEOUT_MS: '1500' }),
    ...(death.over === 'stripe' && {
      PROVIDER: 'stripe',
      STRIPE_SECRET_KEY: 'sk_test_of_the_service',
      STRIPE_API_URL: double.url,
    }),
    ...env,
  });

/** The shopper at the address; false where the provider takes it no more. */
const comes = async ({ death, double }: World, url: string): Promise<boolean> => {
  if (death.over === 'simulator') {
    const pressed = await fetch(`${url}/authenticate`, { method: 'POST', redirect: 'manual' });
    return pressed.status === 303;
  }
  const [, intent = ''] = /client_secret=(.*)_secret/.exec(url) ?? [];
  return double.books.authenticate(intent, true).status === 200;
};

const urlIn = (json: object): string =>
  String((json as { nextAction?: { url?: string } }).nextAction?.url);

/** Dies at a point of the create itself, or of what recovery does once the shopper came or did not. */
const dieFirst = async (world: World, point: CrashPoint): Promise<void> => {
  await using service = await start(world, { CRASH_AT: point, CRASH_ARMED: 'later' });
  const isRecovery = point.startsWith('recovery: ');
  const first = isRecovery ? await send(service, world) : undefined;
  await arm(service);
  if (first !== undefined && world.death.comes) await comes(world, urlIn(first.json));
  // It may have died with the response on its way: that is one of the points.
  if (first === undefined || world.death.comes) await send(service, world).catch(() => undefined);
  await expectDead(service, point);
};

const dieAtStripe = async (world: World, fault: AtStripe): Promise<void> => {
  await using service = await start(world, {});
  world.double.plan('confirm', fault);
  const response = send(service, world).catch(() => undefined);
  const isAtStripe = () => world.double.received.some(({ step }) => step === 'confirm');
  await until('the confirm is at Stripe', isAtStripe);
  service.kill('SIGKILL');
  await Promise.all([response, service.exited]);
};

const die = async (world: World): Promise<void> => {
  const { points } = world.death;
  if (typeof points === 'string') return dieAtStripe(world, points);
  const [first, ...others] = points;
  if (first !== undefined) await dieFirst(world, first);
  for (const point of others) {
    // Recovery asks at its start: it may be dead before it is ready.
    const service = await start(world, { CRASH_AT: point }).catch(() => undefined);
    if (service !== undefined) await expectDead(service, point);
  }
};

/** The repeat leads the shopper there, and once the shopper was, it has the one outcome. */
const expectInTime = async (world: World, service: Service): Promise<void> => {
  const seen = new Set<number>();
  await until('its repeat has the outcome', async () => {
    const { status, json } = await send(service, world);
    seen.add(status);
    if (status === 202) await comes(world, urlIn(json));
    // What Stripe held back comes when the payment was fenced already.
    if (status === 202) await world.double.actLate();
    return status === 200 && json.status === 'CAPTURED';
  });
  expect([...seen].filter((status) => ![200, 202, 503].includes(status))).toEqual([]);
};

const expectTooLate = async (world: World, service: Service): Promise<void> => {
  await until('its repeat is declined', async () => (await send(service, world)).status === 402);
  const { json } = await send(service, world);
  expect(json.failure).toMatchObject({ failureCode: 'AUTHENTICATION_REQUIRED' });
};

/** How often the provider moved money. */
const chargesOf = async ({ death, double, dataDir }: World): Promise<number> => {
  if (death.over === 'simulator') {
    await expectLedgerMatchesLog(dataDir);
    return (await entriesOfLedger(dataDir)).length;
  }
  return [...double.books.intents.values()].filter(
    ({ latest_charge: charge }) => charge?.status === 'succeeded',
  ).length;
};

const surviveDeath = async (death: Death): Promise<void> => {
  using folder = temporaryFolder();
  const world: World = { death, dataDir: folder.path, double: await stripeDouble() };
  try {
    await die(world);
    await using alive = await start(world, {});
    await (death.comes ? expectInTime : expectTooLate)(world, alive);
    await until('nothing is unresolved', async () => (await unresolvedIn(alive)) === 0);
    alive.kill('SIGTERM');
    await alive.exited;
    const ends = [...(await paymentsOfLog(folder.path)).values()].map(({ state }) => state.status);
    const moved = ends.filter((status) => status === 'CAPTURED').length;
    const times = death.comes ? 1 : 0;
    expect([ends.includes('PENDING'), moved, await chargesOf(world)]).toEqual([
      false,
      times,
      times,
    ]);
  } finally {
    await world.double.close();
  }
};

const FIRST = 'stripe, in time: sale: after provider';
const deaths = DEATHS.toSorted((one) => (nameOf(one) === FIRST ? -1 : 0));

test.each(shareOf(deaths, 1).map((death) => [nameOf(death), death] as const))(
  'gaps §21: dead at %s: money moves once where the shopper comes, else never',
  async (_name, death) => surviveDeath(death),
);
