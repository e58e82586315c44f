/** gaps §15: what a later result of the provider leads to; it is recorded once, and the payment shows it. */
import { describe, expect, test } from '@jest/globals';
import type { LaterCommand, LaterResult } from '../../shared/payment/commands.ts';
import { decideLater } from '../../shared/payment/decide.ts';
import { type PaymentEvent, paymentSchemas } from '../../shared/payment/events.ts';
import { minor } from '../../shared/payment/transitions.ts';
import {
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
  operationId,
  refundDeclined,
  refunded,
  refundFailed,
  refundObserved,
  refundRequested,
  timeOf,
  voidObserved,
} from '../support/payment-events.ts';
import { bodyUnopened } from '../support/personal-data.ts';
import { stateAfter } from '../support/scenario.ts';

const SECOND = operationId(2);
const asAuthorized = [created(), authorized()];
const asSold = [created({ captureNow: true }), authorized(), captured()];
const refunding = [...asSold, refundRequested({ amount: 800 })];
const inPart = [...refunding, refunded({ amount: 700 })];
const asRefunded = [...asSold, refundRequested(), refunded()];

const marked = { failedLater: true };
const unmarked = expect.not.objectContaining(marked);

/** The id is new with each notice. */
const decided = (given: PaymentEvent[], result: LaterCommand['result'], id = operationId(7)) => {
  const state = stateAfter(given);
  if (state === undefined) throw new Error('a later result is of a payment that is there');
  return decideLater(state, { kind: 'later', operationId: id, result });
};

type Row = [title: string, given: PaymentEvent[], result: LaterCommand['result']];
/** `then` is what the payment shows of it afterwards. */
type Recorded = [...Row, events: PaymentEvent[], then: object];

const recordedOnce = (rows: Recorded[]): void =>
  test.each(rows)('%s', (_title, given, result, events, then) => {
    expect(decided(given, result)).toEqual(events);
    for (const { type, data } of events) expect(paymentSchemas[type].parse(data)).toEqual(data);
    expect(stateAfter([...given, ...events])).toMatchObject(then);
    expect(decided([...given, ...events], result, operationId(8))).toEqual([]);
  });

const recordedNever = (rows: Row[]): void =>
  test.each(rows)('not %s', (_title, given, result) => {
    expect(decided(given, result)).toEqual([]);
  });

describe('gaps §15: an authorization runs out', () => {
  const result = { kind: 'AUTHORIZATION_EXPIRED' } as const;
  const capturing = [...asAuthorized, captureRequested()];
  const expired = [authorizationExpired()];
  const voided = { id: `VOID_${operationId(0)}`, type: 'VOID', amount: 2500, result: 'SUCCEEDED' };
  recordedOnce([
    ['all of it', asAuthorized, result, expired, { status: 'VOIDED', transactions: [{}, voided] }],
    ['after a declined capture', [...capturing, captureDeclined()], result, expired, {}],
  ]);
  recordedNever([
    ['while a capture is open: its outcome decides', capturing, result],
    ['of a captured payment', asSold, result],
  ]);
});

describe('gaps §24: an authorization ends soon', () => {
  const result = { kind: 'AUTHORIZATION_EXPIRING' } as const;
  const expiresAt = '2026-01-08T00:00:00.000Z';
  const ending = [created(), authorized({ authorizationExpiresAt: expiresAt })];
  const capturing = [...ending, captureRequested()];
  const notice = [authorizationExpiring({ expiresAt })];
  const then = { status: 'AUTHORIZED', authorizationExpiresAt: expiresAt };
  recordedOnce([
    ['its amount and its end', ending, result, notice, then],
    ['after a declined capture', [...capturing, captureDeclined()], result, notice, then],
  ]);
  recordedNever([
    ['where the provider tells no end', asAuthorized, result],
    ['while a capture is open', capturing, result],
    ['of a captured payment', [...capturing, captured({ operationId: operationId(1) })], result],
  ]);
});

describe('gaps §15: an authorization was captured or canceled elsewhere', () => {
  const capture = (amount: number) =>
    ({ kind: 'CAPTURE_OBSERVED', reference: 'pi_1', amount: minor(amount) }) as const;
  const cancel = { kind: 'VOID_OBSERVED', reference: 'pi_1' } as const;
  const capturing = [...asAuthorized, captureRequested()];
  const shown = (type: string, amount: number) => {
    return { id: `${type.slice(0, 4)}_${operationId(7)}`, type, amount, result: 'SUCCEEDED' };
  };
  recordedOnce([
    [
      'captured, all of it',
      asAuthorized,
      capture(2500),
      [captureObserved()],
      { status: 'CAPTURED', refundableAmount: 2500, transactions: [{}, shown('CAPTURE', 2500)] },
    ],
    [
      'captured in part: the rest is released',
      [...capturing, captureDeclined()],
      capture(800),
      [captureObserved({ amount: 800, releasedAmount: 1700 })],
      { status: 'CAPTURED', capturedAmount: 800, refundableAmount: 800 },
    ],
    [
      'canceled',
      asAuthorized,
      cancel,
      [voidObserved()],
      { status: 'VOIDED', transactions: [{}, shown('VOID', 2500)] },
    ],
  ]);
  recordedNever([
    ['while a capture is open: its outcome decides', capturing, capture(2500)],
    ['a cancel while a capture is open', capturing, cancel],
    ['a capture of more than was authorized', asAuthorized, capture(2501)],
    ['of a captured payment', asSold, capture(2500)],
    ['a cancel of a captured payment', asSold, cancel],
  ]);
});

describe('gaps §15: a refund bounces', () => {
  const codes = { failureCode: 'DO_NOT_HONOR', providerFailureCode: '05' } as const;
  const ours: LaterResult = { kind: 'REFUND_FAILED', operationId: SECOND, ...codes };
  const third = { operationId: operationId(3), amount: 500 };
  const bounced = { type: 'REFUND', result: 'FAILED', failure: codes, createdAt: timeOf(4) };
  const back = { status: 'CAPTURED', refundedAmount: 0, refundableAmount: 2500 };
  const elsewhere = { operationId: operationId(7), amount: 300 };
  const failureCode = 'PROCESSING_ERROR' as const;
  const uncoded: LaterResult = { kind: 'REFUND_FAILED', operationId: operationId(7), failureCode };
  const beside = [...inPart, refundRequested(third)];
  const part = [refundFailed({ amount: 700, ...codes })];
  const first = refundObserved({ ...third, refundId: 're_2' });
  const two = [...asSold, first, refundObserved(elsewhere)];
  recordedOnce([
    ['in whole', asRefunded, ours, [refundFailed(codes)], { ...back, transactions: [{}, bounced] }],
    [
      'one of two, with the amount of its outcome (L5)',
      [...beside, refunded(third)],
      ours,
      part,
      { refundableAmount: 2000, operations: [unmarked, { ...marked, amount: 700 }, unmarked] },
    ],
    ['one beside an open one', beside, ours, part, { ...back, refundableAmount: 2000 }],
    [
      'one of two that were made elsewhere',
      two,
      uncoded,
      [refundFailed(elsewhere)],
      { operations: [unmarked], observedRefunds: [unmarked, marked], refundedAmount: 500 },
    ],
  ]);
  recordedNever([
    ['one without an outcome', refunding, ours],
    ['a declined one', [...refunding, refundDeclined({ amount: 800 })], ours],
    ['an unknown one', two, ours],
    ['a capture', asSold, { ...ours, operationId: operationId(0) }],
  ]);
});

describe('gaps §15: a refund was made elsewhere', () => {
  const observed = (amount: number, refundId = 're_1') =>
    ({ kind: 'REFUND_OBSERVED', refundId, amount: minor(amount) }) as const;
  const first = refundObserved({ operationId: operationId(5), amount: 100 });
  const second = refundObserved({ operationId: SECOND, refundId: 're_2', amount: 100 });
  const two = [...asSold, first, second];
  const shown = { id: `REFN_${operationId(7)}`, type: 'REFUND', amount: 2500, result: 'SUCCEEDED' };
  const kept = { operationId: operationId(7), refundId: 're_1', amount: 2500 };
  recordedOnce([
    [
      'all of the payment, under the new operation id',
      asSold,
      observed(2500),
      [refundObserved()],
      { status: 'REFUNDED', transactions: [{}, shown], operations: [{}], observedRefunds: [kept] },
    ],
    [
      'all that an open refund leaves',
      refunding,
      observed(1700),
      [refundObserved({ amount: 1700 })],
      { status: 'CAPTURED', refundedAmount: 1700, refundableAmount: 0 },
    ],
    [
      'a third one',
      two,
      observed(50, 're_3'),
      [refundObserved({ amount: 50, refundId: 're_3' })],
      { refundedAmount: 250, observedRefunds: [{}, {}, { refundId: 're_3' }] },
    ],
  ]);
  recordedNever([
    ['more than an open refund leaves: reconcile shows it', refunding, observed(1701)],
    ['a second time under the id of the provider', two, observed(100)],
    ['of an authorization', asAuthorized, observed(800)],
  ]);
});

describe('gaps §15: a cardholder disputes a payment', () => {
  const dispute = (status: 'OPEN' | 'WON' | 'LOST', disputeId = 'dp_1') =>
    ({ kind: 'DISPUTE', disputeId, amount: minor(2500), reason: 'fraudulent', status }) as const;
  const part = { disputeId: 'dp_2', amount: 700 };
  const two = [...asSold, disputed(), disputed(part)];
  const closed = [...asSold, disputed(), disputeClosed()];
  const lost = disputeClosed({ status: 'LOST' });
  const shown = { id: 'dp_1', amount: 2500, reason: 'fraudulent', createdAt: timeOf(3) };
  const open = [{ ...shown, status: 'OPEN' }];
  recordedOnce([
    ['captured', asSold, dispute('OPEN'), [disputed()], { disputes: open, operations: [unmarked] }],
    ['refunded', asRefunded, dispute('OPEN'), [disputed()], { status: 'REFUNDED', disputes: [{}] }],
    ['closed at once', asSold, dispute('LOST'), [disputed(), lost], { refundableAmount: 0 }],
    [
      'the second of two is lost, with the amount that it was opened with',
      two,
      dispute('LOST', 'dp_2'),
      [disputeClosed({ ...part, status: 'LOST' })],
      { refundableAmount: 1800, disputes: [...open, { amount: 700, status: 'LOST' }] },
    ],
    [
      'won on appeal after it was lost: what it took is refundable again',
      [...asSold, disputed(), lost],
      dispute('WON'),
      [disputeClosed()],
      { refundableAmount: 2500, disputes: [{ status: 'WON' }] },
    ],
    [
      'once more after one was won',
      closed,
      dispute('OPEN', 'dp_3'),
      [disputed({ disputeId: 'dp_3' })],
      { refundableAmount: 2500, disputes: [{ status: 'WON' }, { id: 'dp_3', status: 'OPEN' }] },
    ],
  ]);
  recordedNever([
    ['one that is only authorized', asAuthorized, dispute('OPEN')],
    ['by an older notice after it was closed', closed, dispute('OPEN')],
    ['to another end after it was won', closed, dispute('LOST')],
    ['to be open again after it was lost', [...asSold, disputed(), lost], dispute('OPEN')],
  ]);

  test('disputes stand before the source, whenever they come', () => {
    const details = { source: { storeId: 's_1' } };
    const state = stateAfter([
      created({ captureNow: true, details }),
      ...asSold.slice(1),
      disputed(),
    ]);
    const names = Object.keys(JSON.parse(state === undefined ? '{}' : bodyUnopened(state)));
    expect(names.slice(-3)).toEqual(['disputes', 'source', 'personalData']);
  });
});
