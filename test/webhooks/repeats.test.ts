/** A request of webhook endpoints is repeated under its Idempotency-Key (gaps §20). */
import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import { openInProcess, token } from '../support/service-in-process.ts';

const ENDPOINTS = '/api/v1/webhook-endpoints';
const HOOK = { url: 'https://shop.example/hook' };

const service = await openInProcess();
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

let merchants = 0;
let mine: { token: string };
beforeEach(async () => {
  merchants += 1;
  mine = { token: await token(`m_repeat_${merchants}`) };
});

const post = (rest: string, body?: object, key?: string) =>
  service.ask('POST', ENDPOINTS + rest, body, { ...mine, ...(key !== undefined && { key }) });
const register = async (): Promise<string> => String((await post('', HOOK)).json.id);
const listed = async (): Promise<unknown[]> =>
  (await service.ask('GET', ENDPOINTS, undefined, mine)).json.endpoints as unknown[];

/** The responses to a request and to its repeat under one key. */
const twice = async (rest: string, body?: object) => {
  const first = await post(rest, body, 'key-1');
  const repeat = await post(rest, body, 'key-1');
  expect(first.headers).not.toHaveProperty('idempotent-replayed');
  expect(repeat.headers).toHaveProperty('idempotent-replayed', 'true');
  return { first, repeat };
};

describe('the repeat gets the first outcome', () => {
  test('of a rotation: one new secret', async () => {
    const { first, repeat } = await twice(`/${await register()}/rotate-secret`);
    expect([repeat.status, repeat.json.secret]).toEqual([200, first.json.secret]);
  });

  test('of a test: one message', async () => {
    const { first, repeat } = await twice(`/${await register()}/test`);
    expect([repeat.status, repeat.json.eventId]).toEqual([202, first.json.eventId]);
  });

  test('of a resend, also once the endpoint is disabled', async () => {
    const endpoint = await register();
    const body = { since: '2026-01-01T00:00:00Z' };
    await twice(`/${endpoint}/resend`, body);
    await service.ask('PATCH', `${ENDPOINTS}/${endpoint}`, { status: 'DISABLED' }, mine);
    expect((await post(`/${endpoint}/resend`, body, 'key-1')).status).toBe(202);
    expect((await post(`/${endpoint}/resend`, body)).status).toBe(422);
  });

  test('of a registration whose endpoint has been rotated and deleted: as it was', async () => {
    const first = await post('', HOOK, 'key-1');
    await post(`/${first.json.id}/rotate-secret`);
    await service.ask('DELETE', `${ENDPOINTS}/${first.json.id}`, undefined, mine);
    expect((await post('', HOOK, 'key-1')).text).toBe(first.text);
    expect(await listed()).toEqual([]);
  });

  test('of the tenth registration: its secret once more, not that there are ten already', async () => {
    for (let n = 1; n < 10; n += 1) await register();
    const { first, repeat } = await twice('', HOOK);
    expect([first.status, repeat.status, repeat.text]).toEqual([201, 201, first.text]);
    expect(await listed()).toHaveLength(10);
  });

  test('when all come at a time', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => post('', HOOK, 'key-1')));
    expect(new Set(all.map(({ text }) => text)).size).toBe(1);
    expect(await listed()).toHaveLength(1);
  });
});

describe('a key', () => {
  test('of another request is 422', async () => {
    await post('', HOOK, 'key-1');
    const { status, json } = await post('', { ...HOOK, description: 'The shop' }, 'key-1');
    expect([status, json.error]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    expect(await listed()).toHaveLength(1);
  });

  test('is of one merchant, one route and one endpoint', async () => {
    const one = await post('', HOOK, 'key-1');
    const other = await register();
    const rests = [`/${one.json.id}/test`, `/${other}/test`, `/${other}/rotate-secret`];
    for (const rest of rests)
      expect((await post(rest, undefined, 'key-1')).headers).not.toHaveProperty(
        'idempotent-replayed',
      );
    mine = { token: await token('m_repeat_other') };
    expect((await post('', HOOK, 'key-1')).json.id).not.toBe(one.json.id);
  });

  test('of a rejected request is free', async () => {
    await post('', { url: 'https://10.0.0.1/' }, 'key-1');
    const { status, headers } = await post('', HOOK, 'key-1');
    expect(status).toBe(201);
    expect(headers).not.toHaveProperty('idempotent-replayed');
  });
});
