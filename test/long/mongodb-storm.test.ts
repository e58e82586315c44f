/**
 * V3, gaps §9: two processes of each kind under merchants at work, between which and their MongoDB
 * everything fails in an order of chance. No GET is older than a response, and no process stays without
 * MongoDB once it is there again.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { freePort } from '../support/free-port.ts';
import { type Random, randomOf } from '../support/random.ts';
import { metricOf } from '../support/service-client.ts';
import { signToken } from '../support/service-in-process.ts';
import {
  type ServiceProcess,
  standInMongo,
  startThreeProcesses,
  type ThreeProcesses,
} from '../support/service-processes.ts';
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';

/** How long a step stands at most before the next one, a short one and a long one by turns of chance. */
const SHORT_MS = 60;
const LONG_MS = 3000;
const DOWN_MS = 1500;
const STEPS_MAX = 12;

type Storm = {
  /** `MONGODB_URL` through one more relay. */
  relayed(): Promise<string>;
  /** Some steps in an order of chance; after them every relay is open and the server runs. */
  blow(random: Random): Promise<string[]>;
  [Symbol.asyncDispose](): Promise<void>;
};

/** Over a stand-in of its own, which loses everything when it is killed. */
const startStorm = async (): Promise<Storm> => {
  const port = await freePort();
  let server = await standInMongo(port);
  const relays: TcpProxy[] = [];

  const ofRelay = (relay: TcpProxy): Record<string, () => void> => ({
    freeze: relay.freeze,
    thaw: relay.thaw,
    lose: relay.blackhole,
    reset: relay.reset,
    shut: relay.shut,
    open: relay.open,
    end: () => {
      relay.shut();
      relay.open();
    },
  });
  const ofServer = (random: Random): Record<string, () => Promise<void>> => ({
    'kill the server': async () => {
      await server[Symbol.asyncDispose]();
      await wait(random.between(0, DOWN_MS));
      server = await standInMongo(port);
    },
    'freeze the server': async () => {
      server.process.kill('SIGSTOP');
      await wait(random.between(0, LONG_MS));
      server.process.kill('SIGCONT');
    },
  });
  const step = async (random: Random): Promise<string> => {
    const at = random.between(0, relays.length - 1);
    const all = Object.entries({ ...ofRelay(relays[at] as TcpProxy), ...ofServer(random) });
    const [name, act] = all[random.between(0, all.length - 1)] as (typeof all)[number];
    await act();
    await wait(random.between(0, random.chance(0.5) ? SHORT_MS : LONG_MS));
    return name.includes('server') ? name : `${name} ${at}`;
  };

  return {
    relayed: async () => {
      const relay = await tcpProxy('127.0.0.1', port);
      relays.push(relay);
      return `mongodb://127.0.0.1:${relay.port}/payments`;
    },
    blow: async (random) => {
      const trail: string[] = [];
      for (let left = random.between(1, STEPS_MAX); left > 0; left -= 1)
        trail.push(await step(random));
      for (const relay of relays) relay.thaw();
      return trail;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(relays.map((relay) => relay.close()));
      await server[Symbol.asyncDispose]();
    },
  };
};

const ROUNDS = 8;
const WRITERS = 4;
const READERS = 16;
const KINDS = ['projector', 'command-api', 'query-api'] as const;
const PAUSE_MS = 20;

type Health = { engines: { readModels?: { state: string } } };

const hasReadModels = async ({ url }: ServiceProcess): Promise<boolean> => {
  const response = await fetch(`${url}/health/ready`);
  const { engines } = (await response.json()) as Health;
  return engines.readModels?.state === 'up';
};

/** Merchants who create payments, and read each of them as it was answered, or later. */
const startMerchants = async ({ url, env }: ThreeProcesses, random: Random) => {
  const bearer = await signToken({ merchant_id: 'm_storm', sub: 'tester' }, env.JWT_SECRET);
  const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' };
  const base = `${url}/api/v1/payments`;
  const made: { paymentId: string; body: string }[] = [];
  const wrong: string[] = [];
  let running = true;
  let reads = 0;
  const write = async (): Promise<void> => {
    const body = JSON.stringify({ ...payment, amount: 1000, captureNow: true });
    const response = await fetch(base, { method: 'POST', headers, body });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`create: ${response.status} ${text}`);
    const { paymentId } = JSON.parse(text) as { paymentId: string };
    made.push({ paymentId, body: text });
  };
  const read = async (): Promise<void> => {
    const one = made[random.between(0, made.length - 1)];
    if (one === undefined) return void (await wait(PAUSE_MS));
    const response = await fetch(`${base}/${one.paymentId}`, { headers });
    const text = await response.text();
    reads += 1;
    if (text !== one.body) wrong.push(`${response.status} ${text}`);
  };
  const work = async (step: () => Promise<void>): Promise<void> => {
    while (running) await step();
  };
  const writers = Array.from({ length: WRITERS }, () => work(write));
  const readers = Array.from({ length: READERS }, () => work(read));
  const working = Promise.all([...writers, ...readers]);
  // `end` reports the failure of a worker.
  working.catch(() => undefined);
  return {
    end: async () => {
      running = false;
      await working;
      return { made: made.length, reads, wrong };
    },
  };
};

test('gaps §9: after a storm before MongoDB every process has it again, and no GET was older than a response', async () => {
  const random = randomOf();
  await using storm = await startStorm();
  await using three = await startThreeProcesses({ MONGODB_URL: await storm.relayed() });
  const { pathname } = new URL(three.env.MONGODB_URL ?? '');
  for (const kind of KINDS) {
    const url = new URL(await storm.relayed());
    url.pathname = pathname;
    three.env.MONGODB_URL = url.href;
    await three.add(kind);
  }
  const processes = KINDS.flatMap((kind) => three.processes[kind]);
  const merchants = await startMerchants(three, random);
  let slowestMs = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const trail = await storm.blow(random);
    const begun = performance.now();
    const back = Promise.all(
      processes.map((one, at) =>
        until(`process ${at} has MongoDB again`, () => hasReadModels(one)),
      ),
    );
    await back.catch((error: Error) => {
      throw new Error(`${trail.join(', ')}: ${error.message}`);
    });
    slowestMs = Math.max(slowestMs, performance.now() - begun);
  }
  const { made, reads, wrong } = await merchants.end();
  process.stderr.write(
    `storm before MongoDB: ${ROUNDS} rounds, back within ${Math.round(slowestMs)} ms, ${made} payments, ${reads} reads\n`,
  );
  expect(wrong).toEqual([]);
  await until('a projector has applied everything', async () => {
    const lags = three.processes.projector.map((one) =>
      metricOf(one, 'payments_projection_lag_events'),
    );
    return (await Promise.all(lags)).includes(0);
  });
});
