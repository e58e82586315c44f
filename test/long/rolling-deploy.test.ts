/** A rolling deploy, forward and back, of several processes under merchants who pay and refund. */
import { afterAll, expect, test } from '@jest/globals';
import { signToken } from '../support/in-process.ts';
import { keyedWriters } from '../support/keyed-writers.ts';
import { RELEASE_BEFORE, releaseBefore } from '../support/release-before.ts';
import { ROOT, runCliProcess } from '../support/service.ts';
import { standInMongo } from '../support/stand-in-process.ts';
import { startThreeProcesses, type ThreeProcesses } from '../support/three-processes.ts';

const TEST_MS = 400_000;

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

test(
  `gaps §9: ${RELEASE_BEFORE}, then this one, then that again: every acknowledged operation is there once, and only 503 with Retry-After came between`,
  async () => {
    await using mongo = await standInMongo();
    await using three = await startThreeProcesses(
      { MONGODB_URL: mongo.url },
      {
        release: before.path,
      },
    );
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
  },
  TEST_MS,
);
