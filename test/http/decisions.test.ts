/** What gaps §1 to §5, §9, §10 and §11 say and the HTTP surface shows. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  type CommandResponse,
  CREATED_ID,
  expectError,
  expectResponseHeaders,
  type InProcess,
  idOf,
  leaveUnresolved,
  NO_RETRIES,
  openInProcess,
  rememberToken,
  token,
} from '../support/in-process.ts';
import { until } from '../support/until.ts';

const service = await openInProcess(NO_RETRIES);
afterAll(() => service[Symbol.asyncDispose]());

const capture = (id: string, captureAmount: number) =>
  service.change('capture', id, { captureAmount });
const refund = (id: string, refundAmount: number) => service.change('refund', id, { refundAmount });
const rowsOf = ({ json }: CommandResponse): string[] =>
  json.transactions.map(({ type, amount, result }) => `${type} ${amount} ${result}`);

describe('gaps §1: what every response has, and never has', () => {
  test('every response has no-store and a Request-Id of its own, none names its server', async () => {
    const responses = [
      await service.create(),
      await service.create({ number: '4000000000000002' }),
      await service.create({ amount: 0 }),
      await service.get('unknown'),
      await service.ask('GET', '/nothing'),
      await service.ask('GET', '/health/live'),
    ];
    expect(responses.map(({ status }) => status)).toEqual([200, 402, 400, 404, 404, 200]);
    for (const response of responses) expectResponseHeaders(response);
    expect(new Set(responses.map(({ headers }) => headers['request-id'])).size).toBe(
      responses.length,
    );
  });

  test('the Request-Id of the request is not taken over', async () => {
    const headers = { 'request-id': 'forged', 'x-request-id': 'forged' };
    const response = await service.get('unknown', { headers });
    expect(JSON.stringify(response.headers)).not.toContain('forged');
  });
});

describe('gaps §2: ids', () => {
  test('a paymentId is pay_ and 26 characters, with a key too; a later one is greater', async () => {
    const first = idOf(await service.create());
    const second = idOf(await service.create());
    const keyed = idOf(await service.create({}, { key: 'ids' }));
    for (const id of [first, second, keyed]) expect(id).toMatch(CREATED_ID);
    expect(second > first).toBe(true);
  });
});

describe('gaps §3: which fields of a request are read', () => {});

describe('gaps §4: card data in requests and responses', () => {
  test.each([
    ['4242424242424242', { bin: '42424242', brand: 'VISA' }],
    ['5555555555554444', { bin: '55555555', brand: 'MASTERCARD' }],
    ['378282246310005', { bin: '378282', brand: 'AMEX' }],
    ['6011111111111117', { bin: '601111', brand: 'DISCOVER' }],
    ['4222222222222', { bin: '422222' }],
  ])('%s: its bin in one form, nothing of the CVV', async (number, shown) => {
    const created = await service.create({ number, cvv: '9731' });
    const { paymentMethod } = created.json as unknown as {
      paymentMethod: { card: Record<string, unknown>; encryptedCard: Record<string, unknown> };
    };
    expect(paymentMethod.card).toMatchObject({
      ...shown,
      last4: number.slice(-4),
      cvvPresentDuringAttempt: true,
    });
    const { last4: _, ...mirrored } = paymentMethod.card;
    expect(paymentMethod.encryptedCard).toEqual(mirrored);
    expect(created.text).not.toContain(number);
    expect(created.text).not.toMatch(/(?<![0-9a-f-])9731(?![0-9a-f-])/);
  });
});

describe('gaps §5: amounts and transactions', () => {
  test('a partial capture is final, the rest is released and is no transaction', async () => {
    const id = idOf(await service.create());
    const captured = await capture(id, 1500);
    expect(captured.json).toMatchObject({
      status: 'CAPTURED',
      amount: 2500,
      authorizedAmount: 2500,
      capturedAmount: 1500,
      refundableAmount: 1500,
    });
    expect(rowsOf(captured)).toEqual(['AUTH 2500 SUCCEEDED', 'CAPTURE 1500 SUCCEEDED']);
    expect((await capture(id, 1000)).json.error).toBe('CAPTURE_NOT_ALLOWED');
    expect((await service.change('void', id)).json.error).toBe('VOID_NOT_ALLOWED');
    expect((await refund(id, 1501)).json.error).toBe('REFUND_NOT_ALLOWED');
  });

  test('failed attempts are listed in order, unfinished ones are not', async () => {
    const id = idOf(await service.create({ number: '4000000000004244' }));
    await capture(id, 1000);
    await leaveUnresolved(service, 'answer lost', () => service.change('void', id));
    const read = await service.get(id);
    expect(read.json.status).toBe('AUTHORIZED');
    expect(rowsOf(read)).toEqual(['AUTH 2500 SUCCEEDED', 'CAPTURE 1000 FAILED']);
    await service.change('void', id);
    expect(rowsOf(await service.get(id)).at(-1)).toBe('VOID 2500 SUCCEEDED');
  });
});

describe('gaps §9: a payment that was answered is readable from that moment', () => {
  test('a GET after a POST is never older, while nothing is written to the read models', async () => {
    await using behind = await openInProcess(NO_RETRIES);
    await until('the read models have followed', async () => {
      const { json } = await behind.ask('GET', '/health/ready');
      return JSON.stringify(json).includes('"caughtUp":true');
    });
    const read = async (response: CommandResponse, id: string) => {
      const got = await behind.get(id);
      expect([got.status, got.text]).toEqual([200, response.text]);
      expect(got.headers.etag).toBe(response.headers.etag);
    };
    const before = idOf(await behind.create());
    behind.readModels.hold();
    // A document that is missing, and one that is behind.
    const created = await behind.create();
    await read(created, idOf(created));
    await read(await behind.change('capture', before), before);
    const declined = await behind.create({ number: '4000000000000002' });
    expect((await behind.get(idOf(declined))).json.status).toBe('FAILED');

    behind.readModels.release();
    await until('the read models have followed', async () =>
      /^payments_projection_lag_events 0$/m.test((await behind.ask('GET', '/metrics')).text),
    );
    await read(created, idOf(created));
  });

  test('a payment that is read while it is refunded never goes back to an earlier amount', async () => {
    const id = idOf(await service.create({ captureNow: true }));
    const seen: number[] = [];
    for (let refunded = 100; refunded <= 1000; refunded += 100) {
      const writing = refund(id, 100);
      for (let n = 0; n < 3; n++) seen.push((await service.get(id)).json.refundedAmount);
      await writing;
      seen.push((await service.get(id)).json.refundedAmount);
      expect(seen.at(-1)).toBe(refunded);
    }
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  });
});

describe('gaps §10: tokens', () => {
  test('a token with both scopes, and one without any, may read and write', async () => {
    for (const scope of ['payments:read payments:write', undefined]) {
      const asking = { token: await token('m_scoped', scope) };
      const created = await service.create({}, asking);
      expect(created.status).toBe(200);
      expect((await service.get(idOf(created), asking)).status).toBe(200);
    }
  });

  test('a token of all merchants (*) is rejected on merchant routes: 403', async () => {
    const all = { token: await token('*', 'payments:read payments:write audit:read') };
    const expected = [
      'the token is for all merchants; make one for a single merchant: payments token --merchant <id>',
    ];
    expectError(await service.create({}, all), 403, 'FORBIDDEN', expected);
    expectError(await service.get('unknown', all), 403, 'FORBIDDEN', expected);
  });
});

describe('gaps §11: rate limits', () => {
  let limited: InProcess;
  beforeAll(async () => {
    limited = await openInProcess({
      RATE_LIMIT_UNAUTHENTICATED_PER_SECOND: '1',
      RATE_LIMIT_PER_SECOND: '2',
      RATE_LIMIT_BURST: '1',
    });
  });
  afterAll(() => limited[Symbol.asyncDispose]());

  test('both buckets are off in the embedded mode unless set', async () => {
    const many = Array.from({ length: 100 });
    const good = await Promise.all(many.map(() => service.get('unknown')));
    const bad = await Promise.all(many.map(() => service.get('unknown', { token: null })));
    expect(new Set(good.map(({ status }) => status))).toEqual(new Set([404]));
    expect(new Set(bad.map(({ status }) => status))).toEqual(new Set([401]));
  });

  test('a 429 is never stored: the same key is carried out later', async () => {
    await rememberToken(limited);
    // At once, so that the bucket does not fill in between.
    const [, limitedCreate] = await Promise.all([
      limited.get('unknown'),
      limited.create({}, { key: 'k' }),
    ]);
    expect(limitedCreate.status).toBe(429);
    let later = limitedCreate;
    await until('the bucket has one again', async () => {
      later = await limited.create({}, { key: 'k' });
      return later.status !== 429;
    });
    expect(later.status).toBe(200);
    expect(later.headers).not.toHaveProperty('idempotent-replayed');
  });
});
