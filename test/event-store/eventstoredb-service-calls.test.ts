/**
 * What a create and a GET cost EventStoreDB, counted at its stand-in, and that a GET is no
 * older than its POST (P4, gaps §9). The whole service in one process.
 */
import { afterAll, expect, test } from '@jest/globals';
import { streamOf } from '../../shared/payment/events.ts';
import { startStandIn } from '../support/eventstoredb-stand-in.ts';
import { settingsAt } from '../support/server-service.ts';
import { type CommandResponse, idOf, openInProcess } from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

const MANY = 24;

const times = <T>(count: number, work: (n: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, n) => work(n)));
/** Other work reads too, now and then: the fewest reads that this work ever costs are its own. */
const untilItCosts = (appends: number, readsMax: number, work: () => Promise<unknown>) =>
  until(`${appends} appends, and at most ${readsMax} reads`, async () => {
    const before = { ...standIn.calls };
    await work();
    const { append, read } = standIn.calls;
    expect(append - before.append).toBe(appends);
    return read - before.read <= readsMax;
  });
/** A call that a busy machine was too late to begin changed nothing, and can be sent again. */
const again = async (send: () => Promise<CommandResponse>): Promise<CommandResponse> => {
  let response = await send();
  await until('it is carried out', async () => {
    if (response.status === 503) response = await send();
    return response.status !== 503;
  });
  return response;
};
const create = () => service.create({ captureNow: true });
const textsOf = (payments: CommandResponse[]) =>
  Promise.all(payments.map(async (one) => (await service.get(idOf(one))).text));

const standIn = await startStandIn();
const service = await openInProcess(settingsAt(standIn.url));
const made = await times(MANY, () => again(create));
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await standIn.close();
});
test('a create costs two calls, the intent and its outcome', async () => {
  await untilItCosts(2, 0, create);
});

test('of many GETs at a time each costs one call, the last revision of its stream', async () => {
  const expected = made.map(({ text }) => text);
  await untilItCosts(0, MANY, async () => expect(await textsOf(made)).toEqual(expected));
});

test('P4: while the read models stand still, each of many GETs is folded from the log', async () => {
  service.readModels.hold();
  const captured = made.slice(0, MANY / 4);
  const refunds = await Promise.all(
    captured.map((one) => again(() => service.change('refund', idOf(one), { refundAmount: 100 }))),
  );
  const expected = [...refunds, ...made.slice(captured.length)].map(({ text }) => text);
  expect(await textsOf(made)).toEqual(expected);
  service.readModels.release();
});

test('each of many GETs of a payment that was deleted at the server is 503 once it is parked', async () => {
  const id = idOf(made.at(-1) as CommandResponse);
  standIn.softDelete(streamOf(id));
  await until('every GET is 503', async () => {
    const found = await times(MANY, () => service.get(id));
    expect(found.filter(({ status }) => status !== 503 && status !== 200)).toEqual([]);
    return found.every(({ status }) => status === 503);
  });
});
