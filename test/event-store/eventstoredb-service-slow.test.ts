/**
 * gaps §7: an event store that is slow is no refusal of the provider. An intent that it takes within 4 s goes
 * on to its one call; a later one is refused as what it is. The whole service in one process.
 */
import { afterAll, expect, test } from '@jest/globals';
import { startStandIn } from '../support/eventstoredb-stand-in.ts';
import { shareOf, testOfLongRun } from '../support/long-run-share.ts';
import { settingsAt } from '../support/server-service.ts';
import { openInProcess } from '../support/service-in-process.ts';

const standIn = await startStandIn();
const service = await openInProcess(settingsAt(standIn.url));
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await standIn.close();
});

/** With and without keys, while the server stands still. */
const createsDuring = async (seconds: number) => {
  standIn.freeze(true);
  const keys = [undefined, undefined, `first-${seconds}`, `second-${seconds}`];
  const creates = keys.map((key) => service.create({ captureNow: true }, key ? { key } : {}));
  setTimeout(() => standIn.freeze(false), seconds * 1000);
  return Promise.all(creates);
};
const charges = async () => (await service.ledger()).length;
const refused = () => service.metric('payments_slow_appends_total');

test.each(shareOf([1.3, 3], 1))(
  'creates sent while the server stands still for %d s are 200, and charged once each',
  async (seconds) => {
    const before = await charges();
    const created = await createsDuring(seconds);
    expect(created.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await charges()) - before).toBe(created.length);
    expect(await refused()).toBe(0);
  },
);

testOfLongRun(
  'creates whose intent took 6 s are refused for the event store, counted, and not charged',
  async () => {
    const before = await charges();
    const late = (await createsDuring(6)).slice(0, 2);
    for (const { status, json } of late) {
      expect([status, json.error]).toEqual([503, 'SERVICE_UNAVAILABLE']);
      expect(json.details).toContainEqual(expect.stringContaining('the event store was slow'));
    }
    expect(await refused()).toBeGreaterThanOrEqual(late.length);
    expect(await charges()).toBeLessThanOrEqual(before + 2);
  },
);
