/** Which tokens may read which audit routes (A1, A2; docs/audit.md). */
import { afterAll, describe, expect, test } from '@jest/globals';
import { eventsOf, NDJSON, openAuditStory } from '../support/audit-story.ts';
import { expectError, idOf, timeless, token } from '../support/in-process.ts';

/** `story` is authorized 2500, captured 1500, refunded 500. */
const { service, read, story, own, other, stop } = await openAuditStory();
afterAll(() => stop());

const PAYMENT_ROUTES = ['events', 'state', 'verify', 'explain?command=refund'];
const LOG_ROUTES = ['/payments', '/events', '/events/stream', '/export', '/verify'];
const ROUTES = [...PAYMENT_ROUTES.map((name) => `/payments/ID/${name}`), ...LOG_ROUTES];
const at = (route: string, id = story): string => route.replace('ID', id);

describe('A1, A2: who may read what', () => {
  test.each(ROUTES)('%s is 401 without a token, 403 without the scope', async (route) => {
    const none = await read(at(route), null);
    expect([none.status, none.json.error]).toEqual([401, 'UNAUTHORIZED']);
    for (const weak of [
      await token('m_test'),
      await token('*'),
      await token('*', 'payments:read ops:admin'),
    ]) {
      expectError(await read(at(route), weak), 403, 'FORBIDDEN', [
        'the scope audit:read is required',
      ]);
    }
  });

  test.each(PAYMENT_ROUTES)(
    '%s is 200 for an own payment; a foreign one gets the same bytes as an unknown one',
    async (name) => {
      const route = `/payments/ID/${name}`;
      expect((await read(at(route), own)).status).toBe(200);
      const foreign = await read(at(route), other);
      const unknown = await read(at(route, `pay_${'0'.repeat(26)}`), other);
      expectError(foreign, 404, 'PAYMENT_NOT_FOUND');
      expect(timeless(foreign)).toEqual(timeless(unknown));
      expect(timeless(await read(at(route, `pay_${'0'.repeat(26)}`)))).toEqual(timeless(unknown));
      const malformed = await read(at(route, 'a.b'), own);
      expect([malformed.status, malformed.json.error]).toEqual([400, 'INVALID_PAYMENT_ID']);
    },
  );

  test('gaps §25: the export of a foreign payment is 404 with the same bytes as of an unknown one', async () => {
    const foreign = await read(`/export?payment=${story}`, other);
    expectError(foreign, 404, 'PAYMENT_NOT_FOUND');
    const unknown = await read('/export?payment=pay_unknown', other);
    expect(timeless(foreign)).toEqual(timeless(unknown));
  });

  test('a merchant finds, reads and verifies its own payments alone', async () => {
    const foreign = idOf(await service.create({}, { token: await token('m_other') }));
    const found = (await read('/payments?limit=200', other)).json.payments as {
      paymentId: string;
    }[];
    expect(found.map(({ paymentId }) => paymentId)).toEqual([foreign]);
    expect((await read('/payments?merchant=m_test', other)).json.payments).toEqual([]);
    const events = eventsOf((await read('/events', other)).json);
    expect(new Set(events.map(({ paymentId }) => paymentId))).toEqual(new Set([foreign]));
    const lines = (await read('/events', other, NDJSON)).text.trimEnd().split('\n');
    expect(lines).toHaveLength(events.length);
    const exported = (await read('/export', other)).text.trimEnd().split('\n');
    expect(exported.slice(0, -1)).toEqual(lines);
    expect(JSON.parse(exported.at(-1) ?? '').manifest).toMatchObject({ merchantId: 'm_other' });
    expect((await read('/verify', other)).json).toMatchObject({
      ok: true,
      guarantee: 'stream',
      merchantId: 'm_other',
      events: events.length,
    });
  });

  test('a token of all merchants can search the payments of one merchant', async () => {
    const { payments } = (await read('/payments?merchant=m_other')).json as { payments?: unknown };
    expect(payments).toHaveLength(1);
  });

  test('on merchant routes a token of all merchants is rejected', async () => {
    const everything = await token('*', 'audit:read payments:read');
    const response = await service.get(story, { token: everything });
    expectError(response, 403, 'FORBIDDEN', [
      'the token is for all merchants; make one for a single merchant: payments token --merchant <id>',
    ]);
  });
});
