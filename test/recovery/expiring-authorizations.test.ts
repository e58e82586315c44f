/** gaps §24: 48 h before an authorization ends its merchant is told once, and nothing else happens. */
import { afterAll, expect, test } from '@jest/globals';
import { messageTypeOf } from '../../shared/webhooks/message.ts';
import { idOf } from '../support/in-process.ts';
import { manualClock } from '../support/manual-clock.ts';
import {
  type CommandProcess,
  kindsOf,
  openTwoCommandProcesses,
  typesOf,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;
/** An hour, and what the jitter adds to it. */
const ROUND_MS = 75 * 60_000;
const DAYS_MS = 24 * HOUR_MS;

const processes = await openTwoCommandProcesses();
afterAll(() => processes[Symbol.asyncDispose]());

/** The webhook messages of a payment, oldest first. */
const messagesOf = async (paymentId: string) =>
  (await processes.events(paymentId)).flatMap(
    ({ event }) => messageTypeOf(event, { captureNow: false }) ?? [],
  );

const roundsOf = (at: CommandProcess) => {
  const clock = manualClock();
  at.side.watchAuthorizations(clock.startTimer);
  return async (leftMs: number) => {
    at.clock.aheadMs = 7 * DAYS_MS - leftMs;
    await clock.advance(ROUND_MS);
    await until('the round is over', () => clock.timers() === 1);
  };
};

const AUTHORIZED = ['payment.created', 'payment.authorized'];
const NOTICED = [...AUTHORIZED, 'payment.authorization_expiring'];

test('it is told once, also after a restart; a capture or a void in between cancels it', async () => {
  const { a, readModels } = processes;
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
