/**
 * The hourly look at authorizations: where no notice comes, an old one is asked about (gaps §15), and the
 * merchant of one that ends in 48 h is told once (gaps §24).
 */
import { describe, expect, test } from '@jest/globals';
import { TEST_CARDS } from '../../providers/simulator/test-cards.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { messageTypeOf } from '../../webhooks/message.ts';
import { manualClock } from '../support/manual-clock.ts';
import { idOf } from '../support/service-in-process.ts';
import {
  type CommandProcess,
  kindsOf,
  processesOfTests,
  typesOf,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** The first round comes after a minute, each other after an hour, and what the jitter adds to it. */
const FIRST_ROUND_MS = 75_000;
const ROUND_MS = 75 * 60_000;

const withoutNotices = { onNotice: () => undefined };
const processes = await processesOfTests({}, (own) => ({ ...own, ...withoutNotices }));

test('an old authorization is asked about once it is old enough, and one that fails is asked about an hour later', async () => {
  const { a, readModels } = processes;
  const number = TEST_CARDS.find((card) => card.behaviour === 'AUTHORIZATION_EXPIRES')?.number;
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1) ids.push(idOf(await a.create({ number })));
  const [, failing = ''] = ids;
  await until('the read models list all three', async () => {
    const { documents } = await readModels.search({ status: 'AUTHORIZED' }, 10);
    return documents.length === 3;
  });
  const statuses = async () =>
    Promise.all(ids.map(async (id) => (await processes.state(id)).status));

  const clock = manualClock();
  const passes = async (ms: number) => {
    await clock.advance(ms);
    await until('the round is over', () => clock.timers() === 1);
  };
  a.side.watchAuthorizations(clock.startTimer);
  await passes(FIRST_ROUND_MS);
  // None is a week old.
  expect([a.faults.questions, await statuses()]).toEqual([
    0,
    ['AUTHORIZED', 'AUTHORIZED', 'AUTHORIZED'],
  ]);

  a.clock.aheadMs = 8 * DAY_MS;
  a.store.beforeAppend = async (stream) => {
    if (stream === streamOf(failing)) throw new Error('the disk is full');
  };
  await passes(ROUND_MS);
  expect(await statuses()).toEqual(['VOIDED', 'AUTHORIZED', 'VOIDED']);

  a.store.beforeAppend = undefined;
  await passes(ROUND_MS);
  expect(await statuses()).toEqual(['VOIDED', 'VOIDED', 'VOIDED']);

  // The read models say so as well: no round asks about them again.
  await until('no authorization is listed', async () => {
    const { documents } = await readModels.search({ status: 'AUTHORIZED' }, 10);
    return documents.length === 0;
  });
  const before = a.faults.questions;
  await passes(ROUND_MS);
  expect(a.faults.questions).toBe(before);
});

/** The webhook messages of a payment, oldest first. */
const messagesOf = async (paymentId: string) =>
  (await processes.events(paymentId)).flatMap(
    ({ event }) => messageTypeOf(event, { captureNow: false }) ?? [],
  );

const roundsOf = (at: CommandProcess) => {
  const clock = manualClock();
  at.side.watchAuthorizations(clock.startTimer);
  return async (leftMs: number) => {
    at.clock.aheadMs = 7 * DAY_MS - leftMs;
    await clock.advance(ROUND_MS);
    await until('the round is over', () => clock.timers() === 1);
  };
};

const AUTHORIZED = ['payment.created', 'payment.authorized'];
const NOTICED = [...AUTHORIZED, 'payment.authorization_expiring'];

describe('gaps §24: an authorization that ends in 48 h', () => {
  test('it is told once, also after a restart; a capture or a void in between cancels it', async () => {
    const { readModels } = processes;
    const a = await processes.open();
    const [held, taken, given] = [
      idOf(await a.create()),
      idOf(await a.create()),
      idOf(await a.create()),
    ] as const;
    await until('the read models list all three', async () => {
      const { documents } = await readModels.search({ status: 'AUTHORIZED' }, 10);
      return documents.length === 3;
    });
    const round = roundsOf(a);
    await round(49 * HOUR_MS);
    expect(await messagesOf(held)).toEqual(AUTHORIZED);

    const before = await processes.body(held);
    expect((await a.change('capture', taken)).status).toBe(200);
    expect((await a.change('void', given)).status).toBe(200);
    await round(47 * HOUR_MS);
    expect(await messagesOf(held)).toEqual(NOTICED);
    expect(await messagesOf(taken)).toEqual([...AUTHORIZED, 'payment.captured']);
    expect(await messagesOf(given)).toEqual([...AUTHORIZED, 'payment.voided']);
    // GET shows it as it was, and the provider was asked for nothing.
    expect([await processes.body(held), await kindsOf(processes, held)]).toEqual([
      before,
      ['AUTHORIZE'],
    ]);
    const [notice] = (await processes.events(held)).slice(-1);
    const { authorizationExpiresAt } = JSON.parse(before);
    expect(notice).toMatchObject({
      context: { actor: 'service' },
      event: { data: { amount: JSON.parse(before).amount, expiresAt: authorizationExpiresAt } },
    });

    await round(46 * HOUR_MS);
    const restarted = roundsOf(await processes.open());
    await restarted(45 * HOUR_MS);
    expect(await messagesOf(held)).toEqual(NOTICED);
    // It can still be captured.
    expect((await a.change('capture', held)).status).toBe(200);
    expect(await typesOf(processes, held)).toEqual([
      'PaymentCreated',
      'PaymentAuthorized',
      'PaymentAuthorizationExpiring',
      'PaymentCaptureRequested',
      'PaymentCaptured',
    ]);
  });

  test('what has ended already is not told', async () => {
    const { b, readModels } = processes;
    const late = idOf(await b.create());
    await until('the read models list it', async () => {
      const { documents } = await readModels.search({ text: late }, 1);
      return documents.length === 1;
    });
    await roundsOf(b)(-HOUR_MS);
    expect(await messagesOf(late)).toEqual(AUTHORIZED);
  });
});
