/** What gaps §1, §9 and §11 say and the HTTP surface shows. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  type CommandResponse,
  expectResponseHeaders,
  type InProcess,
  idOf,
  NO_RETRIES,
  openInProcess,
  rememberToken,
  serviceOfTests,
} from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

const service = await serviceOfTests(NO_RETRIES);

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
    const lag = () => behind.metric('payments_projection_lag_events');
    await until('the read models have followed', async () => (await lag()) === 0);
    await read(created, idOf(created));
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
