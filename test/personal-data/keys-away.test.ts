/** gaps §19: money never fails for a name, nothing is stored that no key has sealed, and an erasure leaves no key behind. */
import { afterAll, afterEach, expect, test } from '@jest/globals';
import { idOf, signToken } from '../support/service-in-process.ts';
import { kindsOf, openTwoCommandProcesses, typesOf } from '../support/two-command-processes.ts';

const processes = await openTwoCommandProcesses({
  ...{ RECOVERY_DELAYS_MS: '600000', ERASURE_APPROVERS: '1', ERASURE_HOLD_DAYS: '0' },
});
const { a, b, keys } = processes;
afterEach(() => {
  keys.faults.away = false;
  processes.calm();
});
afterAll(() => processes[Symbol.asyncDispose]());

test('with the store of keys away a capture is carried out, and its answer says that names are missing', async () => {
  const id = idOf(await a.create());
  keys.faults.away = true;
  const captured = await b.change('capture', id);
  expect(captured).toMatchObject({
    status: 200,
    json: {
      status: 'CAPTURED',
      paymentMethod: { card: { holderName: 'UNAVAILABLE', last4: '4242' } },
      personalData: { unavailable: true },
    },
  });
  expect(captured.json).not.toHaveProperty('consumer');
});

test('a create and a reason wait for no key: 503, and neither intent nor call is there', async () => {
  const id = idOf(await a.create({ captureNow: true }));
  keys.faults.away = true;
  const created = await a.create({}, { key: 'away' });
  expect([created.status, created.json.details]).toEqual([
    503,
    ['no key seals its personal data; nothing was stored'],
  ]);
  expect((await b.change('refund', id, { reason: 'broken' })).status).toBe(503);
  expect(await typesOf(processes, id)).not.toContain('PaymentRefundRequested');
  expect((await b.change('refund', id)).status).toBe(200);
  keys.faults.away = false;
  const again = await a.create({}, { key: 'away' });
  expect(again.status).toBe(200);
  expect(await processes.ledger(idOf(again))).toHaveLength(1);
});

test('an append of unknown outcome is repeated with the same box, under one key', async () => {
  const before = keys.keys.size;
  a.store.loseResponses = 2;
  const id = idOf(await a.create({ captureNow: true }));
  expect(keys.keys.size).toBe(before + 1);
  const [created] = await processes.events(id);
  expect(Object(created?.event.data).personal.key).toBe([...keys.keys.keys()].at(-1));
  const repeat = await b.change('refund', id, { reason: 'broken' }, { key: 'r' });
  expect(repeat.status).toBe(200);
  expect(keys.keys.size).toBe(before + 2);
});

test('a repeat that another process answers has the same bytes', async () => {
  const first = await a.create({ merchantReference: 'order-7' }, { key: 'same' });
  const repeat = await b.create({ merchantReference: 'order-7' }, { key: 'same' });
  expect([repeat.status, repeat.text]).toEqual([200, first.text]);
  expect(first.text).toContain('"consumer":{"email":"ada@example.com"');
});

const erase = async (id: string) => {
  const token = await signToken({ merchant_id: 'm_test', sub: 'jane', scope: 'ops:erase' });
  const order = { reason: 'CONSUMER_REQUEST', ticket: 'DPO-17' };
  return a.ask('POST', `/ops/v1/payments/${id}/erase`, order, { token });
};

test('while a capture is at the provider nothing is erased, and it is carried out once', async () => {
  const id = idOf(await a.create());
  const held = b.faults.holdNext();
  const capturing = b.change('capture', id);
  await held.begun;
  expect((await erase(id)).json.details).toEqual(['the payment is AUTHORIZED']);
  held.release();
  expect(await capturing).toMatchObject({ status: 200, json: { status: 'CAPTURED' } });
  expect((await erase(id)).status).toBe(200);
  expect(await kindsOf(processes, id)).toEqual(['AUTHORIZE', 'CAPTURE']);
});

test.each([
  ['a refund that was decided before an erasure stores no reason after it', 1],
  ['an erasure that was decided before a refund names the key of its reason too', 2],
])('%s', async (_title, boxes) => {
  const id = idOf(await a.create({ captureNow: true }));
  const refund = () => b.change('refund', id, { refundAmount: 100, reason: 'broken' });
  const [early, late] = boxes === 1 ? [() => erase(id), refund] : [refund, () => erase(id)];
  const { store } = boxes === 1 ? b : a;
  store.beforeAppend = async () => {
    store.beforeAppend = undefined;
    expect((await early()).status).toBe(200);
  };
  expect((await late()).status).toBe(200);
  const data = (await processes.events(id)).map(({ event }) => Object(event.data));
  const sealed = data.flatMap(({ personal, reason }) => [personal?.key, reason?.key]);
  const own = sealed.filter((key) => key !== undefined);
  expect([own.length, own]).toEqual([boxes, data.flatMap((one) => one.keys ?? [])]);
  for (const key of own) expect(keys.keys.get(key)).toBe('erased');
});
