/**
 * The table of transitions, written down a second time by hand: for each status, the events that may
 * follow and the status they lead to. Every other event is damage (M8, L5).
 */
import { describe, expect, test } from '@jest/globals';
import {
  PAYMENT_EVENT_TYPES,
  type PaymentEvent,
  type PaymentEventType,
} from '../../shared/payment/events.ts';
import { PAYMENT_STATUSES, type PaymentStatus } from '../../shared/payment/fields.ts';
import { foldReadModel, foldState, project } from '../../shared/payment/fold.ts';
import type { PaymentReadModel } from '../../shared/payment/state.ts';
import { isOfErasure } from '../../shared/payment/transitions.ts';
import {
  authenticationRequested,
  authorizationExpired,
  authorizationExpiring,
  authorized,
  captureDeclined,
  captured,
  captureObserved,
  captureRequested,
  created,
  disputeClosed,
  disputed,
  EVENTS,
  failed,
  operationId,
  outcomeConfirmed,
  outcomeContradicted,
  placed,
  providerOpened,
  refundDeclined,
  refunded,
  refundFailed,
  refundObserved,
  refundRequested,
  resolutionRequested,
  SEALED,
  timeOf,
  voidDeclined,
  voided,
  voidObserved,
  voidRequested,
} from '../support/payment-events.ts';
import { bodyUnopened } from '../support/personal-data.ts';

const FIRST = operationId(1);
const asAuthorized = [created(), authorized()];
const asCaptured = [...asAuthorized, captureRequested(), captured({ operationId: FIRST })];

const STREAMS: Record<PaymentStatus, PaymentEvent[]> = {
  PENDING: [created()],
  AUTHORIZED: asAuthorized,
  CAPTURED: asCaptured,
  REFUNDED: [...asCaptured, refundRequested(), refunded()],
  VOIDED: [...asAuthorized, voidRequested(), voided()],
  FAILED: [created(), failed()],
};

/** What may follow a status: the events after it, the last of which is looked at, and where it leads. */
type Followed = [events: PaymentEvent[], to: PaymentStatus];

const intend = { capture: captureRequested(), void: voidRequested(), refund: refundRequested() };
const TABLE: Record<PaymentStatus, Followed[]> = {
  PENDING: [
    [[providerOpened()], 'PENDING'],
    [[authenticationRequested()], 'PENDING'],
    [[authenticationRequested(), authorized()], 'AUTHORIZED'],
    [[authenticationRequested(), failed()], 'FAILED'],
    [[resolutionRequested()], 'PENDING'],
    [[authorized()], 'AUTHORIZED'],
    [[failed()], 'FAILED'],
  ],
  AUTHORIZED: [
    [[intend.capture], 'AUTHORIZED'],
    [[intend.capture, captured({ operationId: FIRST })], 'CAPTURED'],
    [[intend.capture, captureDeclined()], 'AUTHORIZED'],
    [[intend.void], 'AUTHORIZED'],
    [[intend.void, voided()], 'VOIDED'],
    [[intend.void, voidDeclined()], 'AUTHORIZED'],
    [[authorizationExpiring()], 'AUTHORIZED'],
    [[authorizationExpired()], 'VOIDED'],
    [[captureObserved()], 'CAPTURED'],
    [[voidObserved()], 'VOIDED'],
  ],
  CAPTURED: [
    [[intend.refund], 'CAPTURED'],
    [[refundRequested({ amount: 800 }), refunded({ amount: 800 })], 'CAPTURED'],
    [[intend.refund, refunded()], 'REFUNDED'],
    [[intend.refund, refundDeclined()], 'CAPTURED'],
    [[intend.refund, refunded(), refundFailed()], 'CAPTURED'],
    [[refundObserved({ amount: 800 })], 'CAPTURED'],
    [[refundObserved()], 'REFUNDED'],
    [[disputed()], 'CAPTURED'],
    [[disputed(), disputeClosed()], 'CAPTURED'],
  ],
  REFUNDED: [
    [[refundFailed()], 'CAPTURED'],
    [[disputed()], 'REFUNDED'],
    [[disputed(), disputeClosed()], 'REFUNDED'],
  ],
  VOIDED: [],
  FAILED: [[[outcomeContradicted()], 'FAILED']],
};

/** What may follow any status, where its operation is as it has to be. */
const NOTES: readonly PaymentEventType[] = [
  'PaymentProviderOpened',
  'PaymentAuthenticationRequested',
  'PaymentResolutionRequested',
  'PaymentOutcomeConfirmed',
  'PaymentOutcomeContradicted',
];

describe.each(PAYMENT_STATUSES)('after %s', (status) => {
  const given = STREAMS[status];
  const followed = TABLE[status];

  test('the events of the table lead where it says', () => {
    for (const [events, to] of [[[], status] as Followed, ...followed]) {
      const stream = placed([...given, ...events]);
      expect(foldState(stream)?.status).toBe(to);
    }
  });

  test('an erasure and its steps change the personal part alone', () => {
    const readModel = foldReadModel(placed(given)) as PaymentReadModel;
    for (const event of Object.values(EVENTS).filter(isOfErasure)) {
      const { revision, personal, ...after } = project(readModel, {
        revision: given.length,
        time: timeOf(99),
        event,
      });
      const isErased = event.type === 'PaymentPersonalDataErased';
      expect(personal).toEqual(isErased ? { erasedAt: timeOf(99) } : SEALED);
      expect({ ...after, revision: revision - 1, personal: SEALED }).toEqual(readModel);
    }
  });

  test('every other event is damage', () => {
    const readModel = foldReadModel(placed(given));
    const allowed = followed.map(([events]) => events.at(-1)?.type);
    const others = PAYMENT_EVENT_TYPES.filter((one) => !allowed.includes(one));
    for (const type of others.filter((one) => !isOfErasure(EVENTS[one]))) {
      const next = { revision: given.length, time: timeOf(given.length), event: EVENTS[type] };
      const why = NOTES.includes(type)
        ? `${type} does not fit its operation`
        : type === 'PaymentCreated'
          ? 'PaymentCreated is not the first event of its stream'
          : `${type} cannot follow status ${status}`;
      expect(() => project(readModel, next)).toThrow(new Error(why));
    }
  });
});

describe('an operation begins once and ends once', () => {
  const refused: [what: string, given: PaymentEvent[], event: PaymentEvent, why: string][] = [
    ['an outcome of no payment', [], authorized(), 'the stream has no PaymentCreated'],
    [
      'an outcome without its intent',
      asAuthorized,
      voided(),
      'PaymentVoided without an unresolved intent of its operation',
    ],
    [
      'a second outcome of one operation',
      [...asCaptured, refundRequested(), refundDeclined()],
      refundDeclined(),
      'PaymentRefundDeclined without an unresolved intent of its operation',
    ],
    [
      'an intent of an operation that has no outcome yet',
      [...asCaptured, refundRequested()],
      refundRequested(),
      'PaymentRefundRequested of an operation that has begun already',
    ],
    [
      'a wait for the shopper of a capture',
      [...asAuthorized, captureRequested()],
      authenticationRequested({ operationId: FIRST }),
      'PaymentAuthenticationRequested of a payment with an outcome',
    ],
    [
      'the capture of a sale, where the payment is no sale',
      asAuthorized,
      captured(),
      'PaymentCaptured without an unresolved intent of its operation',
    ],
  ];

  test.each(refused)('%s is damage', (_what, given, event, why) => {
    expect(() => foldReadModel(placed([...given, event]))).toThrow(new Error(why));
  });

  test.each([
    ['an unknown operation', []],
    ['a declined capture', [captureRequested(), captureDeclined()]],
  ])("a sale's PaymentCaptured that names %s is damage for the rules", (_what, between) => {
    const sale = [created({ captureNow: true }), authorized(), ...between];
    expect(() => foldState(placed([...sale, captured({ operationId: FIRST })]))).toThrow(
      new Error('PaymentCaptured without an unresolved intent of its operation'),
    );
  });

  test('a sale ends its create twice: PaymentCaptured comes after PaymentAuthorized', () => {
    const sale = placed([created({ captureNow: true }), authorized(), captured()]);
    expect(foldState(sale)?.operations).toMatchObject([
      { kind: 'create', ended: { outcome: 'APPROVED', revision: 2 } },
    ]);
    expect(foldReadModel(sale)?.unresolved).toEqual([]);
  });
});

describe('gaps §15: a later result that does not fit is damage', () => {
  const PART = { amount: 800 };
  const LOST = disputeClosed({ status: 'LOST' });
  const inPart = [...asCaptured, refundRequested(PART), refunded(PART)];
  const underItsId = refundObserved({ operationId: operationId(2), ...PART });
  const capturing = [...asAuthorized, intend.capture];
  const declined = [...asCaptured, intend.refund, refundDeclined()];
  test.each<[string, PaymentEvent[], PaymentEvent]>([
    ['an expiry before the outcome of a capture', capturing, authorizationExpired()],
    ['a bounce of no refund', asCaptured, refundFailed()],
    ['a bounce of a declined refund', declined, refundFailed()],
    ['a bounce of another amount', inPart, refundFailed({ amount: 801 })],
    ['a bounce of a refund begun again', [...inPart, refundRequested(PART)], refundFailed(PART)],
    ['a refund made elsewhere under the id of an open one', inPart.slice(0, -1), underItsId],
    ['a refund made elsewhere under the id of an ended one', inPart, underItsId],
    ['a refund made elsewhere of more than is left', inPart, refundObserved({ amount: 1701 })],
    ['a dispute opened twice', [...asCaptured, disputed()], disputed()],
    ['a dispute closed and never opened', asCaptured, disputeClosed()],
    ['a dispute closed twice', [...asCaptured, disputed(), disputeClosed()], disputeClosed()],
    ['a dispute lost twice', [...asCaptured, disputed(), LOST], LOST],
  ])('%s', (_what, given, event) => {
    const why = new Error(`${event.type} does not fit its payment`);
    expect(() => foldState(placed(given))).not.toThrow();
    expect(() => foldReadModel(placed([...given, event]))).toThrow(why);
  });
});

describe('gaps §16: what is noted of an operation changes no status and no amount', () => {
  const resolution = { evidence: 'e' };
  const byHand = [created(), failed({ resolution })];
  const contradicted = [...byHand, outcomeContradicted()];
  const sale = created({ captureNow: true });
  const asSold = [sale, authorized({ resolution }), captured({ resolution })];
  const state = (events: PaymentEvent[]) => foldState(placed(events))?.operations[0];
  const readModel = (events: PaymentEvent[]) => foldReadModel(placed(events));
  const bodyAfter = (events: PaymentEvent[]) =>
    bodyUnopened(foldReadModel(placed(events)) as PaymentReadModel);

  test.each<[string, PaymentEvent[], string | undefined]>([
    ['resolved by hand', byHand, 'UNCONFIRMED'],
    ['a sale resolved by hand', asSold, 'UNCONFIRMED'],
    ['its first outcome alone', [...asSold.slice(0, 2), captured()], 'UNCONFIRMED'],
    ['confirmed', [...byHand, outcomeConfirmed()], undefined],
    ['contradicted', contradicted, 'CONTRADICTED'],
    ['ending it requested', [...contradicted, resolutionRequested()], 'CONTRADICTED'],
    ['the provider corrected', [...contradicted, outcomeConfirmed()], undefined],
    ['resolved by the provider', [created(), failed()], undefined],
    ['never sent, and carried out', [created(), failed(), outcomeContradicted()], 'CONTRADICTED'],
  ])('%s: operation and read model say the same', (_what, events, confirmation) => {
    expect(state(events)?.confirmation).toBe(confirmation);
    expect(readModel(events)?.unresolved.map((one) => one.confirmation)).toEqual(
      confirmation === undefined ? [] : [confirmation],
    );
  });

  test('the body of a payment is the same before and after each note', () => {
    const notes = [outcomeContradicted(), resolutionRequested(), outcomeConfirmed()];
    for (let n = 1; n <= notes.length; n++)
      expect(bodyAfter([...byHand, ...notes.slice(0, n)])).toBe(bodyAfter(byHand));
  });

  test.each<[string, PaymentEvent[], PaymentEvent]>([
    ['a request once all is confirmed', byHand, resolutionRequested()],
    ["a confirmation of the provider's own outcome", [created(), failed()], outcomeConfirmed()],
    ['a second contradiction', contradicted, outcomeContradicted()],
    ['a note of another operation', [created()], resolutionRequested({ operationId: FIRST })],
    [
      'a contradiction of another operation',
      [created(), failed()],
      outcomeContradicted({ operationId: FIRST }),
    ],
  ])('%s is damage', (_what, given, event) => {
    const why = new Error(`${event.type} does not fit its operation`);
    expect(() => readModel([...given, event])).toThrow(why);
  });
});
