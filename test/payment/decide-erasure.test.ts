/** gaps §19: when the texts of a person may be erased, by whom, and what keeps them. */
import { describe, expect, test } from '@jest/globals';
import type { EraseCommand } from '../../shared/payment/commands.ts';
import { decide, refused } from '../../shared/payment/decide.ts';
import { EVENT_SCHEMAS, type PaymentEvent, READ_SCHEMAS } from '../../shared/payment/events.ts';
import { foldState } from '../../shared/payment/fold.ts';
import { upcast } from '../../shared/payment/upcast.ts';
import { refund } from '../support/commands.ts';
import {
  authorized,
  captured,
  captureRequested,
  created,
  disputed,
  erasureHeld,
  erasureReleased,
  erasureRequested,
  failed,
  operationId,
  personalDataErased,
  placed,
  refundRequested,
  SEALED,
  timeOf,
  voided,
  voidRequested,
} from '../support/payment-events.ts';

const DAY_MS = 86_400_000;
const LATER_MS = Date.parse(timeOf(0)) + 200 * DAY_MS;
const sale = [created({ captureNow: true }), authorized(), captured()];

const erase = (changed: Partial<EraseCommand> = {}): EraseCommand => ({
  kind: 'erase',
  operationId: operationId(9),
  reason: 'CONSUMER_REQUEST',
  ticket: 'DPO-1',
  actor: 'ann',
  atMs: LATER_MS,
  approvers: 2,
  holdDays: 180,
  ...changed,
});
const decided = (given: PaymentEvent[], changed?: Partial<EraseCommand>) =>
  decide(foldState(placed(given)), erase(changed));
const events = (...all: PaymentEvent[]) => ({ kind: 'events', events: all });
const rule = (why: string) => refused('BUSINESS_RULE_VIOLATION', why);

const CLEAR = { clear: { holderName: 'Jane Doe' } };

describe('is refused', () => {
  test.each<[why: string, given: PaymentEvent[]]>([
    ['the payment is PENDING', [created()]],
    ['the payment is AUTHORIZED', [created(), authorized()]],
    ['an operation of the payment is unresolved', [...sale, refundRequested()]],
    ['the payment is disputed', [...sale, disputed()]],
    ['the payment is held: CASE-1', [...sale, erasureHeld()]],
    [
      'an earlier version stored it in the clear, so it cannot be erased from the log',
      [created({ personal: CLEAR, captureNow: true }), ...sale.slice(1)],
    ],
  ])('%s', (why, given) => {
    expect(decided(given)).toEqual(rule(why));
    // A court passes the days alone, and a retention that is set passes a second person alone.
    expect(decided(given, { reason: 'COURT_ORDER' })).toEqual(rule(why));
    expect(decided(given, { approvers: 1 })).toEqual(rule(why));
  });

  test('within the days of the hold, unless a court orders it', () => {
    const atMs = LATER_MS - 21 * DAY_MS;
    const why = rule('the payment changed within the last 180 days');
    expect(decided(sale, { atMs })).toEqual(why);
    expect(decided(sale, { atMs, reason: 'COURT_ORDER' })).toMatchObject({ kind: 'events' });
    expect(decided(sale, { atMs, holdDays: 1 })).toMatchObject({ kind: 'events' });
  });
});

describe('two persons', () => {
  const requested = [...sale, erasureRequested()];
  const soon = { atMs: Date.parse(timeOf(3)) + DAY_MS, holdDays: 0 };
  const erased = personalDataErased({ keys: [SEALED.key] });

  test.each<[string, PaymentEvent[]]>([
    ['FAILED', [created(), failed()]],
    ['VOIDED', [created(), authorized(), voidRequested(), voided()]],
    [
      'CAPTURED',
      [created(), authorized(), captureRequested(), captured({ operationId: operationId(1) })],
    ],
    ['released', [...sale, erasureHeld(), erasureReleased()]],
  ])('the first one requests it of a payment that is %s', (_status, given) => {
    expect(decided(given)).toEqual(events(erasureRequested({ requestedBy: 'ann' })));
  });

  test('another one erases within 24 hours, and not a moment later', () => {
    expect(decided(requested, soon)).toEqual(events(erased));
    const late = { ...soon, atMs: soon.atMs + 1 };
    expect(decided(requested, late)).toEqual(events(erasureRequested({ requestedBy: 'ann' })));
  });

  test('the same one requests it once, also under a name that looks the same', () => {
    for (const actor of ['jane', ' jane', 'ja\u200bne'])
      expect(decided(requested, { ...soon, actor })).toEqual(events());
  });

  test('another reason or ticket is another request', () => {
    const ticket = 'DPO-2';
    expect(decided(requested, { ...soon, ticket })).toEqual(
      events(erasureRequested({ ticket, requestedBy: 'ann' })),
    );
  });

  test('a shop of one person erases at once, each key of the payment', () => {
    const keys = ['c', 'd'].map((letter) => letter.repeat(32));
    const reason = { ...SEALED, key: keys[1] as string };
    const given = [
      created({ personal: { ...SEALED, key: keys[0] as string } }),
      authorized(),
      voidRequested({ reason }),
      voided(),
    ];
    expect(decided(given, { approvers: 1 })).toEqual(
      events(personalDataErased({ requestedBy: 'ann', keys })),
    );
  });

  test('a later refund is carried out, and its reason is not stored', () => {
    const state = foldState(placed([...sale, personalDataErased()]));
    expect(decide(state, refund({ reason: SEALED }))).toMatchObject(
      events(refundRequested({ operationId: operationId(9), reason: undefined as never })),
    );
  });

  test('once it is erased nothing follows; before, a hold and its release are noted once', () => {
    const erased = [...sale, personalDataErased()];
    expect(decided(erased)).toEqual(events());
    expect(() => foldState(placed([...erased, erasureHeld()]))).toThrow('does not fit');
    const hold = (given: PaymentEvent[], ticket?: string) =>
      decide(foldState(placed(given)), { kind: 'hold', operationId: 'x', ticket });
    expect(hold(erased, 'CASE-2')).toEqual(rule('the payment is erased already'));
    expect(hold(sale, 'CASE-1')).toEqual(events(erasureHeld()));
    expect(hold([...sale, erasureHeld()])).toEqual(events(erasureReleased()));
    expect([hold(sale), hold([...sale, erasureHeld()], 'CASE-2')]).toEqual([events(), events()]);
  });
});

test('a retention that is set erases at once, also where one person waits for a second one', () => {
  const retained = { reason: 'RETENTION_ENDED', approvers: 1, actor: 'service' } as const;
  const { reason, actor: requestedBy } = retained;
  const erased = events(personalDataErased({ reason, requestedBy, keys: [SEALED.key] }));
  for (const given of [sale, [...sale, erasureRequested()]])
    expect(decided(given, retained)).toEqual(erased);
});

describe('no event could hold a text of a person in the clear', () => {
  const { data } = created() as Extract<PaymentEvent, { type: 'PaymentCreated' }>;
  test.each<[string, object]>([
    ['holderName', { card: { ...data.card, holderName: 'x' } }],
    ['descriptor', { details: { descriptor: 'x' } }],
    ['consumer', { details: { consumer: { firstName: 'x', email: 'x' } } }],
    ['billing', { details: { billing: { address: {} } } }],
    ['shipping', { details: { shipping: {} } }],
    ['previousFailures', { details: { previousFailures: [] } }],
    [
      'the name of an item',
      {
        details: {
          productItems: [{ id: 'x', name: 'x', quantity: 1, unitPrice: 1, goodsType: 'DIGITAL' }],
        },
      },
    ],
    ['the group itself', { personal: { clear: { holderName: 'x' } } }],
    ['no box', { personal: {} }],
  ])('of a create: %s', (_field, changed) => {
    const schema = EVENT_SCHEMAS.PaymentCreated;
    expect(schema.safeParse(data).success).toBe(true);
    expect(schema.safeParse({ ...data, ...changed }).success).toBe(false);
  });

  test.each(['PaymentCaptureRequested', 'PaymentVoidRequested', 'PaymentRefundRequested'] as const)(
    'of a %s: its reason, which version 1 shows as it was',
    (type) => {
      const { data: requested } = refundRequested();
      const schema = EVENT_SCHEMAS[type];
      expect(schema.safeParse({ ...requested, reason: SEALED }).success).toBe(true);
      for (const reason of ['x', { clear: 'x' }])
        expect(schema.safeParse({ ...requested, reason }).success).toBe(false);
      const old = upcast(type, 1, { ...requested, reason: 'x' });
      expect(READ_SCHEMAS[type].parse(old)).toMatchObject({ reason: { clear: 'x' } });
    },
  );
});
