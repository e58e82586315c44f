/** A rolling deploy, forward and back, of several processes under merchants who pay and refund. */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, expect, test } from '@jest/globals';
import sale from '../../examples/sale.json' with { type: 'json' };
import { RELEASE_BEFORE, releaseBefore } from '../support/release-before.ts';
import type { Body } from '../support/service-client.ts';
import { signToken } from '../support/service-in-process.ts';
import {
  ROOT,
  runCliProcess,
  standInMongo,
  startThreeProcesses,
  type ThreeProcesses,
} from '../support/service-processes.ts';
import { until } from '../support/until.ts';

const PAYMENTS = '/api/v1/payments';
const TRIES_MAX = 30;

/** A failure's advice came on purpose after the release before: bodies of the two differ by it alone. */
const withoutAdvice = (text: string): string => text.replaceAll(/,"advice":"[A-Z_]+"/g, '');

type Done = { path: string; key: string; body: object; text: string };

/** `url` gives the address of now. Any answer but 200, or 503 with `Retry-After`, ends the work. */
const keyedWriters = (url: () => string, token: string, count: number) => {
  let running = true;
  const done: Done[] = [];
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };

  const post = async (path: string, body: object, key: string): Promise<Response> => {
    for (let tries = 1; ; tries += 1) {
      const init = { method: 'POST', headers: { ...headers, 'idempotency-key': key } };
      const response = await fetch(url() + path, { ...init, body: JSON.stringify(body) });
      const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
      if (response.status === 200) return response;
      if (response.status !== 503 || !(seconds >= 0) || tries === TRIES_MAX)
        throw new Error(`${path}: ${response.status} ${await response.text()}`);
      await wait(seconds * 1_000);
    }
  };
  const get = async (path: string): Promise<string> => {
    for (let tries = 1; ; tries += 1) {
      const response = await fetch(url() + path, { headers });
      if (response.status !== 503 || tries === TRIES_MAX) return response.text();
      await wait(Number(response.headers.get('retry-after')) * 1_000);
    }
  };
  /** P4: what is read next is what was answered. */
  const step = async (path: string, body: object): Promise<Body> => {
    const key = randomUUID();
    const text = withoutAdvice(await (await post(path, body, key)).text());
    done.push({ path, key, body, text });
    const paid: Body = JSON.parse(text);
    const read = withoutAdvice(await get(`${PAYMENTS}/${paid.paymentId}`));
    if (read !== text) throw new Error(`answered ${text}\nread ${read}`);
    return paid;
  };
  const writer = async (): Promise<void> => {
    while (running) {
      const { paymentId } = await step(PAYMENTS, sale);
      const refund = { refundAmount: 500 };
      for (const _ of [1, 2]) await step(`${PAYMENTS}/${paymentId}/refund`, refund);
    }
  };
  const work = Promise.all(Array.from({ length: count }, writer));
  // `end` reports it.
  work.catch(() => undefined);
  return {
    atLeast: (more: number) => {
      const aim = done.length + more;
      return until(`${more} more operations`, () => done.length >= aim);
    },
    /** All that was acknowledged, each once more under its key: the bodies that were, and are. */
    end: async () => {
      running = false;
      await work;
      const again: string[] = [];
      for (const { path, body, key } of done)
        again.push(withoutAdvice(await (await post(path, body, key)).text()));
      return { before: done.map(({ text }) => text), again };
    },
  };
};

const before = releaseBefore();
afterAll(() => before.remove());

const FORWARD = ['projector', 'query-api', 'command-api'] as const;
const BACK = FORWARD.toReversed();

/** One process after the other: a new one first, then the stop of an old one. */
const deploy = async (
  three: ThreeProcesses,
  release: string,
  kinds: readonly (typeof FORWARD)[number][],
): Promise<void> => {
  for (const kind of kinds) {
    for (const old of [...three.processes[kind]]) {
      await three.add(kind, release);
      await three.retire(kind, old);
    }
  }
};

test(`gaps §9: ${RELEASE_BEFORE}, then this one, then that again: every acknowledged operation is there once, and only 503 with Retry-After came between`, async () => {
  await using mongo = await standInMongo();
  const settings = { MONGODB_URL: mongo.url };
  await using three = await startThreeProcesses(settings, { release: before.path });
  for (const kind of FORWARD) await three.add(kind, before.path);
  const secret = three.env.JWT_SECRET;
  const merchant = await signToken({ merchant_id: 'm_roll', sub: 'shop' }, secret);
  const writers = keyedWriters(() => three.url, merchant, 3);
  await writers.atLeast(20);
  await deploy(three, ROOT, FORWARD);
  await writers.atLeast(20);
  await deploy(three, before.path, BACK);
  await writers.atLeast(20);
  await deploy(three, ROOT, FORWARD);
  const { before: acknowledged, again } = await writers.end();
  expect(again).toEqual(acknowledged);

  const PAYMENTS_TOKEN = await signToken(
    { merchant_id: '*', sub: 'ann', scope: 'ops:admin audit:read' },
    secret,
  );
  const env = { PAYMENTS_URL: three.url, PAYMENTS_TOKEN };
  const { length } = acknowledged;
  const compared = `^log and provider agree: \\d+ operations, ${length} ledger entries`;
  const runs = await Promise.all(
    [['verify', '--all'], ['reconcile']].map((args) => runCliProcess(args, env)),
  );
  expect(runs.map(({ code, stdout }) => [code, stdout.split('\n')[0]])).toEqual([
    [0, expect.stringContaining('intact')],
    [0, expect.stringMatching(compared)],
  ]);
});
