/** What an auditor of one merchant may read (A2; docs/audit.md). */
import { describe, expect, test } from '@jest/globals';
import { eventsOf, NDJSON, openAuditStory } from '../support/audit-story.ts';
import { expectError, idOf, timeless, token } from '../support/service-in-process.ts';

/** `story` is authorized 2500, captured 1500, refunded 500. */
const { service, read, story, own, other } = await openAuditStory();

const UNKNOWN = `pay_${'0'.repeat(26)}`;
const PAYMENT_ROUTES = ['events', 'state', 'verify', 'explain?command=refund', 'reconcile'];

describe('A2: who may read what', () => {
  test.each(PAYMENT_ROUTES)(
    '%s is 200 for an own payment; a foreign one gets the same bytes as an unknown one',
    async (name) => {
      const of = (id: string, bearer?: string) => read(`/payments/${id}/${name}`, bearer);
      expect((await of(story, own)).status).toBe(200);
      const foreign = await of(story, other);
      const unknown = await of(UNKNOWN, other);
      expectError(foreign, 404, 'PAYMENT_NOT_FOUND');
      expect(timeless(foreign)).toEqual(timeless(unknown));
      expect(timeless(await of(UNKNOWN))).toEqual(timeless(unknown));
      const malformed = await of('a.b', own);
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
});
