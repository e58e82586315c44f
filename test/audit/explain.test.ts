/** `GET …/explain`: whether a command would be allowed, and which events forbid it (docs/audit.md). */
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import type { PaymentEvent } from '../../shared/payment/events.ts';
import { openAuditStory, type TimelineEvent } from '../support/audit-story.ts';
import {
  appendPayment,
  authorized,
  captureDeclined,
  captureRequested,
  created,
  operationId,
  outcomeConfirmed,
} from '../support/payment-events.ts';
import { expectError, idOf, leaveUnresolved } from '../support/service-in-process.ts';
import { openRows, rewritten } from '../support/tampering.ts';

/** `story` is authorized 2500, captured 1500, refunded 500. */
const { service, read, story } = await openAuditStory();

describe('docs/audit.md: explain says whether a command would be allowed now', () => {
  const explain = async (paymentId: string, query: string) =>
    (await read(`/payments/${paymentId}/explain?${query}`)).json;
  const typesOf = ({ forbiddenBy }: Record<string, unknown>) =>
    (forbiddenBy as TimelineEvent[]).map(({ type, revision }) => `${type} r${revision}`);

  test('a refund of what is left is allowed, with that amount', async () => {
    expect(await explain(story, 'command=refund')).toMatchObject({ allowed: true, amount: 1000 });
  });

  const unresolved = async (): Promise<string> => {
    const paymentId = idOf(await service.create());
    await leaveUnresolved(service, 'answer lost', () => service.change('capture', paymentId));
    return paymentId;
  };
  const made = (fields?: object) => async () => idOf(await service.create(fields));
  const failed = made({ number: '4000000000000002' });
  test.each<[what: string, of: () => Promise<string>, query: string, ...by: string[]]>([
    [
      'a refund above what is left',
      async () => story,
      'refund&amount=1001',
      'PaymentCaptured r3',
      'PaymentRefunded r5',
    ],
    ['a capture after the capture', async () => story, 'capture', 'PaymentCaptured r3'],
    ['a void after the capture', async () => story, 'void', 'PaymentCaptured r3'],
    ['a refund of an authorization', made(), 'refund', 'PaymentAuthorized r1'],
    ['a capture above the authorization', made(), 'capture&amount=2501', 'PaymentAuthorized r1'],
    ['a void of a failed payment', failed, 'void', 'PaymentFailed r1'],
    ['a void beside an unresolved capture', unresolved, 'void', 'PaymentCaptureRequested r2'],
  ])(
    '%s is forbidden, as the command is, by the events that forbid it',
    async (_what, of, query, ...by) => {
      const paymentId = await of();
      const json = await explain(paymentId, `command=${query}`);
      expect([json.allowed, typesOf(json)]).toEqual([false, by]);
      const [kind = '', amount] = query.split('&amount=');
      if (json.code === 'UNRESOLVED') return;
      const body = amount === undefined ? undefined : { amount: Number(amount) };
      const refused = (await service.change(kind, paymentId, body)).json;
      expect([json.code, json.details]).toEqual([refused.error, refused.details]);
    },
  );

  test('a refund that was refused before the capture is explained at that moment', async () => {
    const then = await explain(story, 'command=refund&amount=500&revision=1');
    expect(then).toMatchObject({ allowed: false, code: 'REFUND_NOT_ALLOWED', revision: 1 });
    expect(typesOf(then)).toEqual(['PaymentAuthorized r1']);
    const { json } = await read(`/payments/${story}/events`);
    const [, { time }] = json.events as [TimelineEvent, TimelineEvent & { time: string }];
    const at = encodeURIComponent(time);
    expect(await explain(story, `command=refund&amount=500&at=${at}`)).toEqual(then);
    expect(await explain(story, 'command=refund&amount=500&revision=3')).toMatchObject({
      allowed: true,
    });
  });

  test('a moment before the payment is not found, one beyond its end or two moments are invalid', async () => {
    const refund = `/payments/${story}/explain?command=refund`;
    const before = await read(`${refund}&at=2001-01-01T00:00:00Z`);
    expectError(before, 404, 'PAYMENT_NOT_FOUND', ['the payment did not exist yet at that time']);
    const beyond = await read(`${refund}&revision=99`);
    expectError(beyond, 400, 'INVALID_REQUEST', ['revision must be at most 5']);
    const both = await read(`${refund}&revision=1&at=2001-01-01T00:00:00Z`);
    expectError(both, 400, 'INVALID_REQUEST', ['at must not be given beside revision']);
  });

  test('the explanation names a refund that the provider declined before', async () => {
    const paymentId = idOf(await service.create({ number: '4000000000004251', captureNow: true }));
    await service.change('refund', paymentId);
    expect((await explain(paymentId, 'command=refund')).declined).toEqual([
      expect.objectContaining({ failureCode: 'TRANSACTION_NOT_PERMITTED', outcome: 'DECLINED' }),
    ]);
  });

  describe('of a payment that stands in the log at a start', () => {
    const [byHand, elsewhere, unresolved] = ['pay_BY_HAND', 'pay_ELSEWHERE', 'pay_UNRESOLVED'];
    const [unknownType, noFollower] = ['pay_UNKNOWN_TYPE', 'pay_NO_FOLLOWER'];
    const stripe = { provider: 'stripe' };
    const begun = (paymentId: string, of = {}) => [
      created({ paymentId, merchantId: 'm_test', ...of }),
      authorized(),
    ];
    const payments: [string, PaymentEvent[]][] = [
      [
        byHand,
        [
          ...begun(byHand),
          captureRequested(),
          captureDeclined({
            failureCode: 'UNKNOWN_DECLINE',
            resolution: { evidence: 'letter', requestedBy: 'jane', requestEvidence: 'phone call' },
          }),
          captureRequested({ operationId: operationId(2) }),
          captureDeclined({ operationId: operationId(2), outcome: 'FENCED' }),
        ],
      ],
      [elsewhere, begun(elsewhere, stripe)],
      [unresolved, [...begun(unresolved, stripe), captureRequested(stripe)]],
      [noFollower, [...begun(noFollower), outcomeConfirmed()]],
      [unknownType, [...begun(unknownType), outcomeConfirmed()]],
    ];

    beforeAll(() =>
      service.restart(async (folder) => {
        const file = join(folder, 'events.sqlite');
        const store = await openSqliteEventStore({ file });
        for (const [paymentId, events] of payments) await appendPayment(store, paymentId, events);
        await store.close();
        const log = openRows(file);
        const teleported = (text: string) =>
          text.replace('"PaymentOutcomeConfirmed"', '"PaymentTeleported"');
        log.write(rewritten(log.rows, log.rows.length - 1, teleported));
        log.close();
      }),
    );

    test("a decline that two persons said is theirs, and not the provider's", async () => {
      expect((await explain(byHand, 'command=capture')).declined).toMatchObject([
        { why: 'by hand: "letter", requested by jane: "phone call"', outcome: 'DECLINED' },
        { why: 'never carried out', outcome: 'FENCED' },
      ]);
    });

    test.each([
      ['has an unknown type', unknownType, 'PaymentTeleported'],
      ['cannot follow the one before it', noFollower, 'PaymentOutcomeConfirmed'],
    ])(
      'an auditor is told which event %s, and a merchant gets 503',
      async (_what, paymentId, type) => {
        const timeline = await read(`/payments/${paymentId}/events`);
        expect(JSON.stringify(timeline.json.events)).toContain(type);
        const broken = { revision: 2, reason: expect.stringMatching(/^it cannot be read: /) };
        expect(timeline.json.broken).toMatchObject(broken);
        const verified = await read(`/payments/${paymentId}/verify`);
        expect(verified.json).toMatchObject({ ok: false, finding: 'INCOMPLETE', broken });
        const explained = await explain(paymentId, 'command=capture');
        expect(explained).toMatchObject({ allowed: false, code: 'SERVICE_UNAVAILABLE', broken });
        const state = await read(`/payments/${paymentId}/state`);
        expect(state.json).toMatchObject({ paymentId, broken });
        expect(state.json).not.toHaveProperty('payment');
        const command = await service.change('capture', paymentId);
        const get = await service.get(paymentId);
        for (const response of [command, get]) {
          expectError(response, 503, 'SERVICE_UNAVAILABLE', command.json.details);
          expect(response.headers['retry-after']).toBe('30');
        }
      },
    );

    test('ADR-0247: what another provider was sent than the one that is set is said to be there', async () => {
      const refused = await service.change('capture', elsewhere);
      const json = await explain(elsewhere, 'command=capture');
      expect([json.allowed, json.code]).toEqual([false, refused.json.error]);
      expect(json.forbiddenBy).toMatchObject([
        {
          revision: 0,
          why: 'PaymentCreated was sent to stripe; the provider that is set is simulator',
        },
      ]);
      const waiting = await explain(unresolved, 'command=capture');
      expect(waiting).toMatchObject({
        code: 'UNRESOLVED',
        forbiddenBy: [
          {
            revision: 2,
            why: 'PaymentCaptureRequested has no outcome yet: it was sent to stripe, and its outcome is not asked for while the provider that is set is simulator',
          },
        ],
      });
    });
  });
});
