/**
 * Several processes under load while the leading projector is killed, frozen and stopped: each GET is what
 * its writer was told, each webhook arrives, and no client waits. Prints how long each part was silent.
 */
import { describe, expect, test } from '@jest/globals';
import { describeUnless } from '../support/describe-driver.ts';
import { newestSince, paced } from '../support/paced-load.ts';
import { signToken } from '../support/service-in-process.ts';
import {
  noThreeProcesses,
  type ServiceProcess,
  standInEventStore,
  standInMongo,
  startThreeProcesses,
  type ThreeProcesses,
} from '../support/service-processes.ts';
import { HANDED_OVER_MS_MAX, TAKEN_OVER_MS_MAX } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';
import {
  ALLOW_LOOPBACK,
  allMessages,
  byPayment,
  firstOfEach,
  type Merchant,
  register,
  request,
  saleAndRefund,
} from '../support/webhook-merchant.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

const PER_SECOND = 5;
/** Of one endpoint, on their way or not saved when a leader ends: at least once allows these. */
const REPEATS_MAX = 16;

type Engines = Record<string, string>;

type State = { projection?: { state: string }; webhooks?: { state: string } };

const stateOf = async ({ url }: ServiceProcess): Promise<State> => {
  try {
    const response = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(1_000) });
    return ((await response.json()) as { engines: State }).engines;
  } catch {
    return {};
  }
};

const untilDelivers = (one: ServiceProcess, state: string): Promise<void> =>
  until(`its deliverer is ${state}`, async () => (await stateOf(one)).webhooks?.state === state);

/** The longest time without one of these moments, from the first to the end. */
const longestGap = (momentsMs: readonly number[], fromMs: number): number => {
  const all = [fromMs, ...momentsMs.filter((at) => at >= fromMs), performance.now()];
  return Math.max(...all.slice(1).map((at, n) => at - (all[n] ?? at)));
};

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

const CHANGES = [
  { how: 'stopped', signal: 'SIGTERM', silentMsMax: HANDED_OVER_MS_MAX },
  { how: 'killed', signal: 'SIGKILL', silentMsMax: TAKEN_OVER_MS_MAX },
  { how: 'frozen', signal: 'SIGSTOP', silentMsMax: TAKEN_OVER_MS_MAX },
] as const;

const merchantOf = async ({ url, env }: ThreeProcesses): Promise<Merchant> => ({
  url,
  token: await signToken({ merchant_id: 'm_several', sub: 'tester' }, env.JWT_SECRET ?? ''),
});

const surviveChanges = async (engines: Engines, what: string): Promise<void> => {
  await using receiver = await startReceiver();
  await using three = await startThreeProcesses(
    { ...engines, ...ALLOW_LOOPBACK },
    { asksReadiness: true },
  );
  const merchant = await merchantOf(three);
  const { secret } = await register(merchant, receiver.url);
  const arrivedMs: number[] = [];
  receiver.respond = (_received, response) => {
    arrivedMs.push(performance.now());
    response.writeHead(204).end();
  };
  const arrived = () => new Set(receiver.received.map(({ id }) => id)).size;
  let rejected = 0;
  using work = paced(PER_SECOND, async () => {
    const last = await saleAndRefund(merchant);
    if (last === undefined) {
      rejected += 1;
      return undefined;
    }
    const { paymentId, text } = last;
    const read = await request(merchant, 'GET', `/api/v1/payments/${paymentId}`);
    return read.text === text
      ? undefined
      : `${paymentId}: ${text.slice(0, 80)} then ${read.status} ${read.text.slice(0, 80)}`;
  });
  using lists = newestSince(() => request(merchant, 'GET', '/api/v1/payments?limit=1'));
  let [leader] = three.processes.projector as [ServiceProcess];
  await untilDelivers(leader, 'running');

  for (const { how, signal, silentMsMax } of CHANGES) {
    const next = await three.add('projector');
    await untilDelivers(next, 'standing-by');
    await work.atLeast(PER_SECOND);
    const repeatsBefore = receiver.received.length - arrived();
    const changedAtMs = performance.now();
    const slowestBeforeMs = work.slowestMs;
    work.slowestMs = 0;
    leader.kill(signal);
    await untilDelivers(next, 'running');
    const behind = (await allMessages(merchant)).length;
    await until('the messages of that time', () => arrived() >= behind);
    const silentMs = longestGap(arrivedMs, changedAtMs);
    const repeats = receiver.received.length - arrived() - repeatsBefore;
    process.stderr.write(
      `${what}, leader ${how}: webhooks silent for ${seconds(silentMs)}, lists for ${seconds(longestGap(lists.momentsMs, changedAtMs))}, slowest sale with refund and GET ${seconds(work.slowestMs)} (${seconds(slowestBeforeMs)} before), ${repeats} webhooks twice\n`,
    );
    // Where the machine has no time for sales either, nothing is there to be sent.
    expect(silentMs).toBeLessThan(silentMsMax + work.slowestMs);
    expect(repeats).toBeLessThanOrEqual(REPEATS_MAX);
    if (signal === 'SIGSTOP') {
      leader.kill('SIGCONT');
      await untilDelivers(leader, 'standing-by');
      leader.kill('SIGKILL');
    }
    await leader.exited;
    leader = next;
  }

  await work.end();
  await lists.end();
  expect(work.wrong).toEqual([]);
  const messages = await allMessages(merchant);
  await until('every message', () => arrived() >= messages.length);
  expect(byPayment(firstOfEach(receiver.received, secret))).toEqual(byPayment(messages));
  process.stderr.write(
    `${what}: ${work.done()} payments, ${rejected} rejected, ${messages.length} webhooks, ${receiver.received.length - messages.length} of them twice\n`,
  );
};

describe('several processes on stand-ins', () => {
  test('ADR-0038: a killed, a frozen and a stopped leader lose no webhook, and no GET is older than what was told', async () => {
    await using eventStore = await standInEventStore();
    await using readStore = await standInMongo();
    const engines = { EVENTSTOREDB_URL: eventStore.url, MONGODB_URL: readStore.url };
    await surviveChanges(engines, 'stand-ins');
  });
});

const missing = noThreeProcesses();

describeUnless(missing, 'several processes on engines', () => {
  test('the same on the MongoDB, EventStoreDB and Kafka that are set', () =>
    surviveChanges({}, 'engines'));
});
