/**
 * What one merchant's webhooks cost another's (gaps §20): a service in its own process, receivers that
 * hang, and as much load as merchants can make by registering, testing and paying. The messages of another
 * merchant arrive all the same, and its payments are as fast as they were.
 */
import { expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { startService } from '../support/service.ts';
import { ARRIVED_MS_MAX, CROWDED_MS_MAX } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';
import {
  ALLOW_LOOPBACK,
  type Merchant,
  merchantOf,
  percentile,
  register,
  request,
} from '../support/webhook-merchant.ts';
import { startReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts';

const SALES = 100;
const ROUNDS = 3;
const POSTS_SHARE = 0.99;
const CLIENTS = 8;
const TESTS_MIN = 2_000;
const MERCHANTS = 200;
const HANGING_MIN = 100;

const open = async () => {
  const service = await startService({ env: { ...ALLOW_LOOPBACK, LOG_LEVEL: 'warn' } });
  const receiver = await startReceiver();
  return {
    ...{ service, receiver },
    [Symbol.asyncDispose]: async () => {
      await receiver[Symbol.asyncDispose]();
      await service[Symbol.asyncDispose]();
    },
  };
};

/** Works on all of them, a few at a time. */
const byClients = async <T>(all: readonly T[], work: (one: T) => Promise<unknown>) => {
  const left = [...all];
  const client = async (): Promise<void> => {
    for (let one = left.pop(); one !== undefined; one = left.pop()) await work(one);
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
};

/** As many endpoints as a merchant may have. */
const registerAll = async (merchant: Merchant, url: string): Promise<string[]> => {
  const ids: string[] = [];
  while (ids.length < 10) ids.push((await register(merchant, url)).id);
  return ids;
};

const sell = async (merchant: Merchant): Promise<void> => {
  const sale = { ...payment, merchantReference: undefined, captureNow: true };
  expect((await request(merchant, 'POST', '/api/v1/payments', sale)).status).toBe(200);
};

type Fare = { postMs: number; arrivedMs: number };

/** A merchant with an endpoint that is well; `others` responds to the requests that are not for it. */
const openOther = async (
  { service, receiver }: Awaited<ReturnType<typeof open>>,
  others: NonNullable<WebhookReceiver['respond']>,
) => {
  const merchant = await merchantOf(service, 'm_other');
  await register(merchant, `${receiver.url}/other`);
  const agesMs = new Map<string, number>();
  receiver.respond = (received, response) => {
    if (!received.path.endsWith('/other')) return others(received, response);
    agesMs.set(received.id, Date.now() - Date.parse(received.json.timestamp));
    response.writeHead(204).end();
  };
  /** How long its sales take, and how old the oldest of their messages was when it arrived. */
  return async (): Promise<Fare> => {
    agesMs.clear();
    const postsMs: number[] = [];
    for (let sale = 0; sale < SALES; sale += 1) {
      const began = performance.now();
      await sell(merchant);
      postsMs.push(performance.now() - began);
    }
    await until('its messages', () => agesMs.size === SALES);
    const postMs = Math.round(percentile(postsMs, POSTS_SHARE));
    return { postMs, arrivedMs: Math.max(...agesMs.values()) };
  };
};

/** Where other work fills the machine all is slow, in some rounds; a merchant that is starved is so in each. */
const expectFair = async (alone: Fare, measure: () => Promise<Fare>): Promise<void> => {
  const rounds: Fare[] = [];
  while (rounds.length < ROUNDS) rounds.push(await measure());
  process.stderr.write(`webhooks: ${JSON.stringify({ alone, rounds })}\n`);
  const arrivedMs = Math.max(...rounds.map((round) => round.arrivedMs));
  expect(arrivedMs).toBeLessThan(Math.max(ARRIVED_MS_MAX, 2 * alone.arrivedMs));
  const postMs = Math.min(...rounds.map((round) => round.postMs));
  expect(postMs).toBeLessThan(Math.max(CROWDED_MS_MAX, 2 * alone.postMs));
};

test.each<[string, (n: number) => boolean]>([
  ['never answers', () => false],
  ['answers a quarter', (n) => n % 4 === 0],
])(
  'as many tests as a merchant can get, of a receiver that %s, delay no other merchant',
  async (_, hasResponse) => {
    await using opened = await open();
    const { service, receiver } = opened;
    let tested = 0;
    const measure = await openOther(opened, (_received, response) => {
      tested += 1;
      if (hasResponse(tested)) response.writeHead(204).end();
    });
    const merchant = await merchantOf(service, 'm_tests');
    const ids = await registerAll(merchant, `${receiver.url}/tested`);
    let requested = 0;
    let isTesting = false;
    let isOver = false;
    /** Reads its endpoints first: what so many requests cost whatever they are for. */
    const sendRequests = async (): Promise<void> => {
      while (!isOver) {
        requested += 1;
        const path = `/api/v1/webhook-endpoints/${ids[requested % ids.length]}`;
        if (isTesting) await request(merchant, 'POST', `${path}/test`);
        else await request(merchant, 'GET', path);
      }
    };
    const sending = Array.from({ length: CLIENTS }, sendRequests);
    try {
      const alone = await measure();
      isTesting = true;
      requested = 0;
      await until('it tests', () => requested >= TESTS_MIN);
      await expectFair(alone, measure);
    } finally {
      isOver = true;
      await Promise.all(sending);
    }
    expect(tested).toBeGreaterThan(0);
  },
);

test('many merchants whose endpoints hang delay no other merchant', async () => {
  await using opened = await open();
  const { service, receiver } = opened;
  let hanging = 0;
  const measure = await openOther(opened, () => {
    hanging += 1;
  });
  const alone = await measure();
  const names = Array.from({ length: MERCHANTS }, (_, n) => `m_hangs_${n}`);
  const merchants = await Promise.all(names.map((name) => merchantOf(service, name)));
  await byClients(merchants, (merchant) => registerAll(merchant, `${receiver.url}/hangs`));
  // The deliverer has caught up with the registrations then.
  await measure();
  await byClients(merchants, sell);
  await until('they hang', () => hanging >= HANGING_MIN);
  await expectFair(alone, measure);
});
