/** gaps §19: payments whose retention has ended are erased by themselves, over a log with payments of version 1. */
import { afterAll, expect, test } from '@jest/globals';
import { streamOf } from '../../shared/payment/events.ts';
import { goldenFile, unpack } from '../golden/world.ts';
import { manualClock } from '../support/manual-clock.ts';
import { idOf, signToken } from '../support/service-in-process.ts';
import { openTwoCommandProcesses, typesOf } from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const DAY_MS = 86_400_000;
const TURN_MS = 3_600_000;
const DECLINED = '4000000000009995';
const ERASED = 'PaymentPersonalDataErased';

const golden = unpack(goldenFile('story.tar.gz'));
const processes = await openTwoCommandProcesses({}, (own) => own, `${golden.path}/events.sqlite`);
golden.remove();
const a = await processes.open({ settings: { ERASE_AFTER_DAYS: '200' } });
afterAll(() => processes[Symbol.asyncDispose]());

const clock = manualClock();
const turnAfter = async (days: number): Promise<void> => {
  a.clock.aheadMs = days * DAY_MS;
  const { store, readModels } = processes;
  const isFilled = async () => (await store.end()) === (await readModels.filledTo());
  await until('the read models have the log', isFilled);
  await clock.advance(TURN_MS);
  await until('the turn is over', () => clock.timers() === 1);
};
const sale = async () => idOf(await a.create({ captureNow: true }));
const areErased = (...ids: string[]) =>
  Promise.all(ids.map(async (id) => (await typesOf(processes, id)).includes(ERASED)));

test('what has ended is erased past its days; what is open, held, too young or of version 1 is not', async () => {
  const [ended, declined] = [await sale(), idOf(await a.create({ number: DECLINED }))];
  const [open, held] = [idOf(await a.create()), await sale()];
  const token = await signToken({ merchant_id: 'm_test', sub: 'ann', scope: 'ops:erase' });
  const holding = `/ops/v1/payments/${held}/erase/hold`;
  await a.ask('PUT', holding, { ticket: 'CASE-1' }, { token });
  a.clock.aheadMs = 2 * DAY_MS;
  const young = await sale();
  // Where no retention is set none begins by itself.
  processes.b.side.watchRetention(clock.startTimer);
  expect(clock.timers()).toBe(0);
  a.side.watchRetention(clock.startTimer);
  await turnAfter(199);
  expect(await areErased(ended, declined)).toEqual([false, false]);
  await turnAfter(201);
  const all = await areErased(ended, declined, open, held, young);
  expect(all).toEqual([true, true, false, false, false]);
  const events = await processes.store.readAll(null, 10_000);
  expect(events.filter((one) => 'event' in one && one.event.type === ERASED)).toHaveLength(2);
  const [created, ...others] = await processes.events(ended);
  const { key } = Object(created?.event.data).personal;
  const ticket = 'ERASE_AFTER_DAYS/200';
  expect(others.at(-1)).toMatchObject({
    context: { actor: 'retention' },
    event: { data: { reason: 'RETENTION_ENDED', ticket, requestedBy: 'retention', keys: [key] } },
  });
  expect(processes.keys.keys.get(key)).toBe('erased');
  const line = 'payments_erasures_total{reason="RETENTION_ENDED"} 2';
  expect(await a.metrics.text()).toContain(line);
  expect(a.lines.at(-1)).toMatchObject({ level: 'info', fields: { payments: 2, days: 200 } });
  await a.ask('DELETE', holding, undefined, { token });
  await turnAfter(201);
  expect(await areErased(held)).toEqual([true]);
});

test('one that cannot be erased keeps none of the others, and is tried again', async () => {
  const [other, failing] = [await sale(), await sale()];
  a.store.beforeAppend = async (stream) => {
    if (stream === streamOf(failing)) throw new Error('the disk is full');
  };
  await turnAfter(402);
  expect(await areErased(failing, other)).toEqual([false, true]);
  a.store.beforeAppend = undefined;
  await turnAfter(402);
  expect(await areErased(failing)).toEqual([true]);
});
