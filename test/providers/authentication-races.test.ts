/** gaps §21: the shopper authenticates in the moment of the fence; the long run takes 200 of each driver. */
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { httpProvider } from '../../providers/http/provider.ts';
import type { Provider, ProviderOperation } from '../../providers/port.ts';
import { timesOf } from '../support/long-run-share.ts';
import { providerHere } from '../support/provider-here.ts';
import { authorize } from '../support/provider-operations.ts';
import { type Random, randomOf } from '../support/random.ts';
import { stripeDouble } from '../support/stripe-double/server.ts';
import { driverOver, executed, timesMovedIn } from '../support/stripe-fault-rounds.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { HANGS_MS } from '../support/time-bounds.ts';

/** A provider with the shopper's side of it. */
type Authenticating = {
  provider: Provider;
  /** A card that needs the shopper. */
  number: string;
  /** True where the provider took it. */
  authenticate(url: string): Promise<boolean>;
  /** How often the provider has carried the operation out. */
  moved(operation: ProviderOperation): number;
  /** A hold between the fence's look and its cancel is released by that cancel. */
  releasesHolds: boolean;
  close(): Promise<void>;
};

/** The simulator in its own server, as the service calls it. */
const overSimulator = async (): Promise<Authenticating> => {
  const folder = temporaryFolder();
  const simulator = await providerHere(join(folder.path, 'ledger.sqlite'), 'the-token');
  const times = { connectTimeoutMs: HANGS_MS, timeoutMs: HANGS_MS };
  const provider = httpProvider({ url: simulator.url, token: 'the-token', ...times });
  return {
    provider,
    number: '4000000000003220',
    authenticate: async (page) => {
      const pressed = await fetch(`${page}/authenticate`, { method: 'POST', redirect: 'manual' });
      return pressed.status === 303;
    },
    moved: ({ operationId }) =>
      simulator.simulation
        .list(0, 10_000)
        .entries.filter((one) => one.operationId === operationId && one.outcome === 'APPROVED')
        .length,
    releasesHolds: false,
    close: async () => {
      await provider.close();
      await simulator[Symbol.asyncDispose]();
      folder.remove();
    },
  };
};

const ACTS_MS_MAX = 5;

/** Stripe's driver over its double, which takes a moment for each cancel. */
const overStripe = async (random: Random): Promise<Authenticating> => {
  const double = await stripeDouble();
  double.actsAfterMs(() => random.between(0, ACTS_MS_MAX));
  const provider = driverOver(double.url);
  return {
    provider,
    number: '4000002760003184',
    authenticate: async (page) => {
      const [, intent = ''] = /client_secret=(.*)_secret/.exec(page) ?? [];
      return double.books.authenticate(intent, true).status === 200;
    },
    moved: (operation) => timesMovedIn(double.books.all(), operation),
    releasesHolds: true,
    close: async () => {
      await provider.close();
      await double.close();
    },
  };
};

type Race = { kind: string; isTaken: boolean; fenced: string; moved: number };

const SPAN_MS_MAX = 100;

/** One after the other; either may begin at any moment of the other. */
const raceShoppers = async (
  { provider, number, authenticate, moved }: Authenticating,
  random: Random,
  times: number,
): Promise<Race[]> => {
  const races: Race[] = [];
  let spanMs = ACTS_MS_MAX;
  for (let n = 0; n < times; n += 1) {
    const kind = n % 2 === 0 ? 'AUTHORIZE' : 'SALE';
    const authentication = { returnUrl: 'https://shop.example/back' };
    const operation = authorize(number, { kind, authentication });
    const { outcome: begun, reference } = await executed(provider, operation);
    if (begun.outcome !== 'ACTION_REQUIRED') throw new Error(begun.outcome);
    const requestedAt = new Date().toISOString();
    const question = { ...operation, reference, requestedAt, waitsUntil: requestedAt };
    const fence = async (): Promise<string> => {
      const from = performance.now();
      const { outcome } = await provider.fence(question);
      spanMs = Math.min(performance.now() - from, SPAN_MS_MAX);
      return outcome;
    };
    const ms = random.between(0, Math.ceil(spanMs * 2));
    const isShopperFirst = random.chance(0.25);
    const [isTaken, fenced] = await Promise.all([
      after(isShopperFirst ? 0 : ms).then(() => authenticate(begun.url)),
      after(isShopperFirst ? ms : 0).then(fence),
    ]);
    // One that could not cancel is asked about again, as recovery does.
    const known = fenced === 'UNKNOWN' ? await fence() : fenced;
    races.push({ kind, isTaken, fenced: known, moved: moved(operation) });
  }
  return races;
};

/** The races that ended both ways, or neither. */
const brokenRaces = ({ releasesHolds }: Authenticating, races: readonly Race[]): Race[] =>
  races.filter(({ kind, isTaken, fenced, moved }) => {
    if (fenced === 'APPROVED') return !isTaken || moved !== 1;
    const isReleased = releasesHolds && kind === 'AUTHORIZE';
    return fenced !== 'FENCED' || moved !== 0 || (isTaken && !isReleased);
  });

const TIMES = timesOf(200, 20);

test.each<[string, (random: Random) => Promise<Authenticating>]>([
  ['the simulator over HTTP', overSimulator],
  ['Stripe over its double', overStripe],
])('%s: the payment is approved or fenced, never both', async (name, open) => {
  const random = randomOf();
  const opened = await open(random);
  try {
    const races = await raceShoppers(opened, random, TIMES);
    expect([races.length, brokenRaces(opened, races)]).toEqual([TIMES, []]);
    const fences = races.filter(({ fenced }) => fenced === 'FENCED').length;
    process.stderr.write(`shoppers and fences, ${name}: ${TIMES - fences}:${fences}\n`);
    // Which orders a short run meets is chance.
    for (const won of [fences, TIMES - fences]) expect(won).toBeGreaterThan(timesOf(0, -1));
  } finally {
    await opened.close();
  }
});
