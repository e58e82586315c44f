/** gaps §15: where no notice comes, an old authorization is asked about: after the start, then hourly. */
import { afterAll, expect, test } from '@jest/globals';
import { TEST_CARDS } from '../../provider-simulator/test-cards.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { idOf } from '../support/in-process.ts';
import { manualClock } from '../support/manual-clock.ts';
import { openTwoCommandProcesses } from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const EIGHT_DAYS_MS = 8 * 86_400_000;
/** An hour or a minute, and what the jitter adds to it. */
const HOUR_MS = 75 * 60_000;
const MINUTE_MS = 75_000;

const withoutNotices = { onNotice: () => undefined };
const processes = await openTwoCommandProcesses({}, (own) => ({ ...own, ...withoutNotices }));
afterAll(() => processes[Symbol.asyncDispose]());

test('it is asked about once it is old enough, and one that fails is asked about an hour later', async () => {
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
  await passes(MINUTE_MS);
  // None is a week old.
  expect([a.faults.questions, await statuses()]).toEqual([
    0,
    ['AUTHORIZED', 'AUTHORIZED', 'AUTHORIZED'],
  ]);

  a.clock.aheadMs = EIGHT_DAYS_MS;
  a.store.beforeAppend = async (stream) => {
    if (stream === streamOf(failing)) throw new Error('the disk is full');
  };
  await passes(HOUR_MS);
  expect(await statuses()).toEqual(['VOIDED', 'AUTHORIZED', 'VOIDED']);

  a.store.beforeAppend = undefined;
  await passes(HOUR_MS);
  expect(await statuses()).toEqual(['VOIDED', 'VOIDED', 'VOIDED']);

  // The read models say so as well: no round asks about them again.
  await until('no authorization is listed', async () => {
    const { documents } = await readModels.search({ status: 'AUTHORIZED' }, 10);
    return documents.length === 0;
  });
  const before = a.faults.questions;
  await passes(HOUR_MS);
  expect(a.faults.questions).toBe(before);
});
