/** gaps §7 as a merchant sees it: no outcome is guessed, and nothing is charged twice. */
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  type CommandResponse,
  expectError,
  idOf,
  leaveUnresolved,
  locatedId,
  NO_RETRIES,
  openInProcess,
  PAYMENTS,
  serviceOfTests,
} from '../support/service-in-process.ts';
import { HASTY } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const service = await serviceOfTests(NO_RETRIES);
afterEach(() => {
  service.faults.respondsToLookUps = true;
});

const CHANGES = ['capture', 'void', 'refund'] as const;

const expectUnknown = (response: CommandResponse, id: string): void => {
  expectError(response, 503, 'PROVIDER_UNAVAILABLE', [
    `paymentId ${id}`,
    'the outcome at the provider is not known yet; it is looked up and recorded on the payment',
  ]);
  expect(response.headers).toMatchObject({ 'retry-after': '1', location: `${PAYMENTS}/${id}` });
};

const authorized = async (): Promise<string> => idOf(await service.create());
const captured = async (): Promise<string> => idOf(await service.create({ captureNow: true }));
const suited = (change: string) => (change === 'refund' ? captured() : authorized());

const kindsOf = async (id: string): Promise<string[]> =>
  (await service.ledger(id)).map(({ kind }) => kind);

describe('gaps §7: a create whose outcome is unknown', () => {
  test.each(['answer lost', 'call lost'] as const)(
    'is 503 and leaves the payment PENDING: %s',
    async (fault) => {
      const response = await leaveUnresolved(service, fault, () => service.create());
      const id = locatedId(response);
      expectUnknown(response, id);
      const { json } = await service.get(id);
      expect(json).toMatchObject({ status: 'PENDING', transactions: [], authorizedAmount: 0 });
    },
  );

  test('a command looks the create up first; found approved, the command is carried out', async () => {
    const id = locatedId(await leaveUnresolved(service, 'answer lost', () => service.create()));
    const { status, json } = await service.change('capture', id);
    expect([status, json.status]).toEqual([200, 'CAPTURED']);
    expect(json.transactions).toMatchObject([{ type: 'AUTH' }, { type: 'CAPTURE' }]);
    expect(await kindsOf(id)).toEqual(['AUTHORIZE', 'CAPTURE']);
  });

  test('a command looks the create up first; fenced, the payment is FAILED and never charged, however late the call arrives', async () => {
    const id = locatedId(await leaveUnresolved(service, 'call lost', () => service.create()));
    const [late] = service.faults.calls.slice(-1);
    if (late === undefined) throw new Error('no call was made');
    expectError(await service.change('capture', id), 422, 'CAPTURE_NOT_ALLOWED', [
      'only an AUTHORIZED payment can be captured; this one is FAILED',
    ]);
    await service.faults.arriveLate(late);
    const { json } = await service.get(id);
    expect(json.transactions).toMatchObject([
      { result: 'FAILED', failure: { failureCode: 'PROVIDER_UNAVAILABLE' } },
    ]);
    expect(await kindsOf(id)).toEqual([]);
  });

  test.each(CHANGES)(
    'a %s while look-ups get no response: 503, and nothing is sent',
    async (change) => {
      const id = locatedId(await leaveUnresolved(service, 'answer lost', () => service.create()));
      service.faults.respondsToLookUps = false;
      const sent = service.faults.calls.length;
      expectUnknown(await service.change(change, id), id);
      expect(service.faults.calls).toHaveLength(sent);
      expect((await service.get(id)).json.status).toBe('PENDING');
    },
  );
});

describe.each(CHANGES)('gaps §7: a %s whose outcome is unknown', (change) => {
  test('keeps the last confirmed status and lists no transaction', async () => {
    const id = await suited(change);
    const before = (await service.get(id)).json;
    const response = await leaveUnresolved(service, 'answer lost', () =>
      service.change(change, id),
    );
    expectUnknown(response, id);
    const { json } = await service.get(id);
    expect(json.status).toBe(before.status);
    expect(json.transactions).toEqual(before.transactions);
  });

  test('is joined by an equal one without a key, and carried out once', async () => {
    const id = await suited(change);
    const send = () => service.change(change, id);
    await leaveUnresolved(service, 'answer lost', send);
    const joined = await send();
    expect(joined.status).toBe(200);
    expect(joined.text).toBe((await service.get(id)).text);
    expect(joined.json.transactions).toHaveLength(2);
    expect(await kindsOf(id)).toHaveLength(2);
  });

  test('is 503 again for an equal one that finds it fenced; the one after that is a new operation', async () => {
    const id = await suited(change);
    const send = () => service.change(change, id);
    await leaveUnresolved(service, 'call lost', send);
    expectError(await send(), 503, 'PROVIDER_UNAVAILABLE', [
      `paymentId ${id}`,
      `the provider did not carry out the ${change}: nothing was changed`,
    ]);
    const { status, json } = await send();
    expect(status).toBe(200);
    const results = json.transactions.map(({ result }) => result);
    expect(results).toEqual(['SUCCEEDED', 'FAILED', 'SUCCEEDED']);
    expect(await kindsOf(id)).toHaveLength(2);
  });
});

describe('gaps §7: an unresolved capture excludes every other command', () => {
  const others: [string, object | undefined][] = [
    ['void', undefined],
    ['refund', undefined],
    ['capture', { captureAmount: 1 }],
  ];
  test.each(others)(
    'a %s %j looks the capture up; still unknown, it is 503',
    async (change, body) => {
      const id = await authorized();
      await leaveUnresolved(service, 'answer lost', () => service.change('capture', id));
      service.faults.respondsToLookUps = false;
      expectUnknown(await service.change(change, id, body), id);
      expect(await kindsOf(id)).toEqual(['AUTHORIZE', 'CAPTURE']);
    },
  );

  test.each([
    ['void', undefined, 422],
    ['capture', { captureAmount: 1 }, 422],
    ['refund', undefined, 200],
  ])(
    'a %s %j looks the capture up; found approved, it is decided by that: %i',
    async (change, body, expected) => {
      const id = await authorized();
      await leaveUnresolved(service, 'answer lost', () => service.change('capture', id));
      expect((await service.change(change, id, body)).status).toBe(expected);
      expect((await service.get(id)).json).toMatchObject({ capturedAmount: 2500 });
    },
  );
});

describe('gaps §7: the amount of an unresolved refund counts as refunded', () => {
  const refund = (id: string, refundAmount?: number) =>
    service.change('refund', id, refundAmount && { refundAmount });

  test('only what is left can be refunded meanwhile; once resolved, both refunds are there', async () => {
    const id = await captured();
    await leaveUnresolved(service, 'answer lost', () => refund(id, 1000));
    service.faults.respondsToLookUps = false;
    const unresolved = (await service.get(id)).json;
    const sums = { refundedAmount: 0, refundableAmount: 1500 };
    expect(unresolved).toMatchObject({ status: 'CAPTURED', ...sums });
    expectError(await refund(id, 1501), 422, 'REFUND_NOT_ALLOWED', [
      'refundAmount must not exceed the 1500 left to refund',
    ]);
    const rest = await refund(id);
    const after = { refundedAmount: 1500, refundableAmount: 0 };
    expect(rest.json).toMatchObject({ status: 'CAPTURED', ...after });
    expectError(await refund(id), 422, 'REFUND_NOT_ALLOWED', [
      'refundAmount must not exceed the 0 left to refund',
    ]);
    service.faults.respondsToLookUps = true;
    const joined = await refund(id, 1000);
    expect(joined.json).toMatchObject({ status: 'REFUNDED', refundedAmount: 2500 });
    expect(await kindsOf(id)).toEqual(['SALE', 'REFUND', 'REFUND']);
  });
});

describe('gaps §7: an equal create without a key', () => {
  const send = (fields: object = {}) => service.create({ merchantReference: 'r-1', ...fields });

  test('with a merchantReference joins the unresolved one', async () => {
    const lost = await leaveUnresolved(service, 'answer lost', send);
    const joined = await send();
    expect(joined.status).toBe(200);
    expect(joined.json).toMatchObject({ paymentId: locatedId(lost), status: 'AUTHORIZED' });
    expect(await kindsOf(idOf(joined))).toEqual(['AUTHORIZE']);
    expect(idOf(await send())).not.toBe(idOf(joined));
  });

  test('is 503 again where the unresolved one is found fenced, and after that a new payment', async () => {
    const lost = await leaveUnresolved(service, 'call lost', send);
    expectError(await send(), 503, 'PROVIDER_UNAVAILABLE', [
      `paymentId ${locatedId(lost)}`,
      'the provider did not carry it out: nothing was charged',
    ]);
    const next = await send();
    expect(next.status).toBe(200);
    expect(idOf(next)).not.toBe(locatedId(lost));
  });

  test.each([
    ['another amount', { amount: 2501 }],
    ['another card', { number: '4111111111111111' }],
    ['another reference', { merchantReference: 'r-2' }],
    ['no reference', { merchantReference: undefined }],
  ])('with %s is a payment of its own', async (_name, fields) => {
    const lost = await leaveUnresolved(service, 'answer lost', send);
    const other = await send(fields);
    expect(other.status).toBe(200);
    expect(idOf(other)).not.toBe(locatedId(lost));
    await send();
  });

  test('where two equal ones are unresolved, joins each of them before it makes a third payment', async () => {
    const held = [service.faults.holdNext('answer lost'), service.faults.holdNext('answer lost')];
    service.faults.respondsToLookUps = false;
    const before = service.faults.questions;
    const running = [send(), send()];
    for (const { begun, release } of held) {
      await begun;
      release();
    }
    const lost = (await Promise.all(running)).map(locatedId);
    await until('both were looked up', () => service.faults.questions === before + 2);
    service.faults.respondsToLookUps = true;
    const joined = [idOf(await send()), idOf(await send())];
    expect(joined.toSorted()).toEqual(lost.toSorted());
    expect(lost).not.toContain(idOf(await send()));
  });

  test('joins no create that is in flight', async () => {
    const held = await service.faults.hold(() => send());
    const second = await send();
    held.release();
    expect([(await held.response).status, second.status]).toEqual([200, 200]);
    expect(idOf(second)).not.toBe(idOf(await held.response));
  });
});

describe('gaps §7: a call in flight is not unresolved', () => {
  test('a second capture waits and is decided by the new state; nothing is looked up', async () => {
    const id = await authorized();
    const before = service.faults.questions;
    const held = await service.faults.hold(() => service.change('capture', id));
    const second = service.change('capture', id);
    held.release();
    expect((await held.response).status).toBe(200);
    expectError(await second, 422, 'CAPTURE_NOT_ALLOWED', [
      'only an AUTHORIZED payment can be captured; this one is CAPTURED',
    ]);
    expect(service.faults.questions).toBe(before);
    expect(await kindsOf(id)).toEqual(['AUTHORIZE', 'CAPTURE']);
  });

  test('a request past its budget is 503; its call goes on and its outcome is recorded', async () => {
    await using hasty = await openInProcess(HASTY);
    // The first request of a process is the slowest; the budget is to be spent at the provider.
    await hasty.create();
    const held = hasty.faults.holdNext();
    const response = await hasty.create();
    const id = locatedId(response);
    expectUnknown(response, id);
    expect((await hasty.get(id)).json.status).toBe('PENDING');
    const late = await hasty.change('capture', id);
    expectError(late, 503, 'SERVICE_UNAVAILABLE', [
      'the turn of this request did not come in time',
    ]);
    expect(late.headers).toMatchObject({ 'retry-after': '1' });
    held.release();
    await until('the outcome', async () => (await hasty.get(id)).json.status === 'AUTHORIZED');
    expect(hasty.faults.questions).toBe(0);
    expect(await hasty.ledger(id)).toHaveLength(1);
    // The capture whose response was 503 is not carried out later.
    expect((await hasty.change('void', id)).status).toBe(200);
  });
});
