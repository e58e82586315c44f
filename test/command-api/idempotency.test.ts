/** gaps §8 as a merchant sees it: a repeat under a key is never a second charge. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { ROUTES } from '../../shared/http/route-table.ts';
import {
  APPROVED,
  type CommandResponse,
  expectError,
  idOf,
  leaveUnresolved,
  locatedId,
  NO_RETRIES,
  openInProcess,
  PAYMENTS,
  serviceOfTests,
  token,
} from '../support/service-in-process.ts';
import { HASTY } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

let keys = 0;
const newKey = (): string => `key-${++keys}`;

const service = await serviceOfTests(NO_RETRIES);
afterEach(() => {
  service.faults.respondsToLookUps = true;
});

const CHANGES = ['capture', 'void', 'refund'] as const;
const suited = async (change: string): Promise<string> =>
  idOf(await service.create({ captureNow: change === 'refund' }));

/** The same status, the same bytes, and the header that says so. */
const expectReplay = (repeat: CommandResponse, first: CommandResponse): void => {
  expect(repeat.text).toBe(first.text);
  expect(repeat.status).toBe(first.status);
  expect(repeat.headers.etag).toBe(first.headers.etag);
  expect(first.headers).not.toHaveProperty('idempotent-replayed');
  expect(repeat.headers).toMatchObject({ 'idempotent-replayed': 'true' });
};

const expectReused = (response: CommandResponse): void =>
  expectError(response, 422, 'IDEMPOTENCY_KEY_REUSED', [
    'the Idempotency-Key was used for another request; use a new key',
  ]);

describe('gaps §8: a repeat gets the stored response, byte for byte', () => {
  test('the 200 of all four routes, whatever has happened to the payment since', async () => {
    const key = newKey();
    const created = await service.create({}, { key });
    const id = idOf(created);
    const body = { captureAmount: 1500 };
    const captured = await service.change('capture', id, body, { key });
    const refunded = await service.change('refund', id, { refundAmount: 500 }, { key });
    await service.change('refund', id);
    expect([created, captured, refunded].map(({ json }) => json.status)).toEqual([
      'AUTHORIZED',
      'CAPTURED',
      'CAPTURED',
    ]);
    expectReplay(await service.create({}, { key }), created);
    expectReplay(await service.change('capture', id, body, { key }), captured);
    expectReplay(await service.change('refund', id, { refundAmount: 500 }, { key }), refunded);
    expect(await service.ledger(id)).toHaveLength(4);

    const other = idOf(await service.create());
    const voided = await service.change('void', other, undefined, { key });
    expectReplay(await service.change('void', other, undefined, { key }), voided);
    expect(await service.ledger(other)).toHaveLength(2);
  });

  test('the 402 of a create, with the same paymentId', async () => {
    const key = newKey();
    const send = () => service.create({ number: '4000000000000002' }, { key });
    const first = await send();
    expect(first.status).toBe(402);
    expectReplay(await send(), first);
    expect(await service.ledger(idOf(first))).toHaveLength(1);
  });

  test('any other 4xx is decided again and leaves the key free', async () => {
    const key = newKey();
    expect((await service.create({ currency: 'EUR' }, { key })).status).toBe(422);
    expect((await service.create({}, { key })).status).toBe(200);
    const id = idOf(await service.create());
    const over = await service.change('capture', id, { captureAmount: 2501 }, { key });
    expect(over.status).toBe(422);
    expect((await service.change('capture', id, { captureAmount: 2500 }, { key })).status).toBe(
      200,
    );
  });
});

describe('gaps §8: which requests are the same', () => {
  const card = { number: APPROVED, holderName: 'A', expiryMonth: '01', expiryYear: '2031' };
  const address = { city: 'Springfield', country: 'US' };
  const first = {
    amount: 100,
    currency: 'USD',
    paymentMethod: { type: 'CARD', card },
    billing: { address: { street: 'S 1', ...address } },
  };

  test.each<[string, unknown]>([
    ['the same fields in another order', Object.fromEntries(Object.entries(first).reverse())],
    ['other white space', JSON.stringify(first, undefined, 4)],
    ['the default written out', { ...first, captureNow: false }],
    ['unknown fields', { ...first, x: 1, paymentMethod: { ...first.paymentMethod, y: 2 } }],
    ['null for absent', { ...first, descriptor: null }],
    ['1e2 for 100', JSON.stringify(first).replace('100', '1e2')],
    ['an old name', { ...first, billing: { address: { line1: 'S 1', ...address } } }],
    ['another CVV', { ...first, paymentMethod: { type: 'CARD', card: { ...card, cvv: '999' } } }],
  ])('%s: the same request, so replayed', async (_name, body) => {
    const key = newKey();
    const response = await service.ask('POST', PAYMENTS, first, { key });
    expect(response.status).toBe(200);
    expectReplay(await service.ask('POST', PAYMENTS, body, { key }), response);
  });

  const withCard = (fields: object) => ({
    ...first,
    paymentMethod: { type: 'CARD', card: { ...card, ...fields } },
  });
  test.each<[string, unknown]>([
    ['another amount', { ...first, amount: 101 }],
    ['a sale', { ...first, captureNow: true }],
    ['another text', { ...first, descriptor: 'x' }],
    ['another card', withCard({ number: '4111111111111111' })],
    ['another holder', withCard({ holderName: 'B' })],
    ['another expiry', withCard({ expiryYear: '2032' })],
    ['a brand given', withCard({ brand: 'VISA' })],
    ['another rule broken as well', { ...first, currency: 'EUR' }],
  ])('%s: another request, so 422 IDEMPOTENCY_KEY_REUSED', async (_name, body) => {
    const key = newKey();
    const response = await service.ask('POST', PAYMENTS, first, { key });
    expectReused(await service.ask('POST', PAYMENTS, body, { key }));
    expectReplay(await service.ask('POST', PAYMENTS, first, { key }), response);
    expect(await service.ledger(idOf(response))).toHaveLength(1);
  });

  test.each(['capture', 'refund'])(
    '%s: the alias of the amount is the same request, an omitted amount is another',
    async (change) => {
      const key = newKey();
      const id = await suited(change);
      const send = (body?: object) => service.change(change, id, body, { key });
      const response = await send({ [`${change}Amount`]: 2500 });
      expectReplay(await send({ amount: 2500 }), response);
      expectReplay(await send({ amount: 2500, [`${change}Amount`]: 2500, x: 1 }), response);
      expectReused(await send());
      expectReused(await send({}));
      expectReused(await send({ amount: 2499 }));
      expectReused(await send({ amount: 2500, reason: 'another' }));
    },
  );
});

const TAKING_A_KEY = Object.values(ROUTES).filter(
  ({ method, path }) => method === 'POST' && path.startsWith('/api/'),
);

test.each(TAKING_A_KEY)('gaps §8: $path: a key that is malformed is 400', async ({ path }) => {
  const bearer = await token('m_test', 'payments:write webhooks:write');
  const asking = { token: bearer, key: 'a b' };
  const response = await service.ask('POST', path.replace(/:\w+/, 'x'), undefined, asking);
  expectError(response, 400, 'INVALID_REQUEST', [
    'Idempotency-Key must be 1 to 255 visible ASCII characters',
  ]);
});

describe('gaps §8: the scope of a key is merchant, route and payment', () => {
  test('another merchant has keys of its own', async () => {
    const key = newKey();
    const mine = await service.create({}, { key });
    const theirs = await service.create({}, { key, token: await token('m_other') });
    expect(theirs.status).toBe(200);
    expect(theirs.headers).not.toHaveProperty('idempotent-replayed');
    expect(idOf(theirs)).not.toBe(idOf(mine));
  });

  test('another payment and another route have keys of their own', async () => {
    const key = newKey();
    const [first, second] = [await suited('capture'), await suited('capture')];
    for (const id of [first, second]) {
      for (const change of ['capture', 'refund']) {
        const response = await service.change(change, id, { amount: 5 }, { key });
        expect(response.status).toBe(200);
        expect(response.headers).not.toHaveProperty('idempotent-replayed');
      }
    }
  });
});

describe('gaps §8: a key is free again where nothing was carried out', () => {
  /** A call not sent is known at once; a lost call only once the repeat's look-up finds the fence. */
  const attempt = (fault: 'not sent' | 'call lost', send: () => Promise<CommandResponse>) => {
    if (fault === 'call lost') return leaveUnresolved(service, fault, send);
    service.faults.next(fault);
    return send();
  };

  test.each(['not sent', 'call lost'] as const)(
    'a create, %s: its repeat is a new payment',
    async (fault) => {
      const key = newKey();
      const send = () => service.create({}, { key });
      const failed = await attempt(fault, send);
      expect(failed.status).toBe(503);
      const earlier = locatedId(failed);
      const second = await send();
      expect(second.status).toBe(200);
      expect(idOf(second)).not.toBe(earlier);
      expect((await service.get(earlier)).json.status).toBe('FAILED');
      expect(await service.ledger(earlier)).toHaveLength(0);
      expectReplay(await send(), second);
      expect(await service.ledger(idOf(second))).toHaveLength(1);
    },
  );

  test.each(
    CHANGES.flatMap((change) => [
      { change, fault: 'not sent' as const },
      { change, fault: 'call lost' as const },
    ]),
  )('a $change, $fault: its repeat is a new operation', async ({ change, fault }) => {
    const key = newKey();
    const id = await suited(change);
    const send = () => service.change(change, id, undefined, { key });
    expect((await attempt(fault, send)).status).toBe(503);
    const second = await send();
    expect(second.status).toBe(200);
    const [, failed, done] = service.faults.calls.filter(({ paymentId }) => paymentId === id);
    expect(done?.operationId).not.toBe(failed?.operationId);
    expectReplay(await send(), second);
    expect(await service.ledger(id)).toHaveLength(2);
  });
});

describe('gaps §8: a 503 is not stored, and the repeat resolves what is unresolved', () => {
  test.each(['create', ...CHANGES])('a %s: the same payment, carried out once', async (command) => {
    const key = newKey();
    const id = command === 'create' ? '' : await suited(command);
    const send = () =>
      command === 'create' ? service.create({}, { key }) : service.change(command, id, {}, { key });
    const lost = await leaveUnresolved(service, 'answer lost', send);
    service.faults.respondsToLookUps = false;
    const still = await send();
    expect([still.status, still.headers.location]).toEqual([503, lost.headers.location]);
    expect(still.headers).not.toHaveProperty('idempotent-replayed');
    service.faults.respondsToLookUps = true;
    const found = await send();
    expect([found.status, idOf(found)]).toEqual([200, locatedId(lost)]);
    expect((await send()).text).toBe(found.text);
    expect(await service.ledger(idOf(found))).toHaveLength(command === 'create' ? 1 : 2);
  });

  test('another request under the key of an unresolved create is 422 at once', async () => {
    const key = newKey();
    await leaveUnresolved(service, 'answer lost', () => service.create({}, { key }));
    expectReused(await service.create({ amount: 1 }, { key }));
  });

  test('gaps §7: a request with a key of its own joins no other unresolved operation', async () => {
    const id = await suited('refund');
    const refund = (key?: string) =>
      service.change('refund', id, { refundAmount: 1000 }, key === undefined ? {} : { key });
    await leaveUnresolved(service, 'answer lost', () => refund(newKey()));
    await leaveUnresolved(service, 'answer lost', () => refund(newKey()));
    expect((await refund(newKey())).status).toBe(422);
    expect((await service.get(id)).json).toMatchObject({ refundedAmount: 2000 });
    expect(await service.ledger(id)).toHaveLength(3);
  });
});

describe('gaps §8: equal requests at the same time', () => {
  test('different creates under one key: one is carried out, the others are rejected', async () => {
    const key = newKey();
    const responses = await Promise.all(
      [1, 2, 3, 4].map((amount) => service.create({ amount }, { key })),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 422, 422, 422]);
    const codes = responses.filter(({ status }) => status === 422).map(({ json }) => json.error);
    expect(new Set(codes)).toEqual(new Set(['IDEMPOTENCY_KEY_REUSED']));
  });

  test('past the request budget: 409 with Retry-After, and the outcome once it is recorded', async () => {
    await using hasty = await openInProcess(HASTY);
    // The first request of a process is the slowest; the budget is to be spent at the provider.
    await hasty.create();
    const expectInProgress = (response: CommandResponse): void => {
      expectError(response, 409, 'IDEMPOTENCY_IN_PROGRESS', [
        'the first request with this key still runs',
      ]);
      expect(response.headers).toMatchObject({ 'retry-after': '1' });
    };
    const inProgress = async (send: () => Promise<CommandResponse>): Promise<CommandResponse> => {
      const held = hasty.faults.holdNext();
      expect((await send()).status).toBe(503);
      expectInProgress(await send());
      held.release();
      let response = await send();
      await until('the outcome', async () => {
        response = await send();
        return response.status === 200;
      });
      return response;
    };
    const created = await inProgress(() => hasty.create({}, { key: 'k' }));
    const id = idOf(created);
    await inProgress(() => hasty.change('capture', id, undefined, { key: 'k' }));
    expect(await hasty.ledger(id)).toHaveLength(2);
  });

  test('gaps §7: past the request budget and no longer running: 503 with the payment', async () => {
    await using hasty = await openInProcess({ ...NO_RETRIES, ...HASTY });
    const id = idOf(await hasty.create());
    const sends = [
      () => hasty.create({}, { key: 'k' }),
      () => hasty.change('capture', id, undefined, { key: 'k' }),
    ];
    const firsts: CommandResponse[] = [];
    for (const send of sends) firsts.push(await leaveUnresolved(hasty, 'answer lost', send));
    const held = Promise.withResolvers<void>();
    hasty.faults.beforeResponse = held.promise;
    const repeats = await Promise.all([...sends, ...sends].map((send) => send()));
    held.resolve();
    for (const [at, { status, headers, json }] of repeats.entries())
      expect([status, headers.location, json.details]).toEqual([
        503,
        firsts[at % 2]?.headers.location,
        firsts[at % 2]?.json.details,
      ]);
  });
});
