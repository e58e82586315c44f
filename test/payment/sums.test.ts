/** The sums of a payment's events: which streams add up, and which cannot be (M2, M3, M8). */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { PaymentEvent } from '../../shared/payment/events.ts';
import { addSums, type PaymentSums } from '../../shared/payment/sums.ts';
import {
  anyPayment,
  authorizationExpired,
  authorizationExpiring,
  authorized,
  captureDeclined,
  captured,
  captureObserved,
  captureRequested,
  created,
  failed,
  operationId,
  outcomeContradicted,
  personalDataErased,
  refunded,
  refundFailed,
  refundObserved,
  refundRequested,
  resolutionRequested,
  voided,
  voidObserved,
  voidRequested,
  wholeLife,
} from '../support/payment-events.ts';
import { propertyRuns } from '../support/property-runs.ts';

/** The revision and the reason of the first sum that cannot be. */
const breakOf = (events: readonly PaymentEvent[]): string | undefined => {
  let sums: PaymentSums | undefined;
  for (const [revision, event] of events.entries()) {
    const added = addSums(sums, event);
    if ('reason' in added) return `${revision}: ${added.reason}`;
    sums = added.sums;
  }
  return undefined;
};

const capturing = [created(), authorized(), captureRequested({ amount: 2000 })];
const CAPTURE = { operationId: operationId(1), amount: 2000 };
const inPart = [...capturing, captured({ ...CAPTURE, releasedAmount: 500 })];
const sale = [created({ captureNow: true }), authorized(), captured()];
const PART = { amount: 800 };
const THIRD = { operationId: operationId(3) };
const refunding = [...sale, refundRequested(PART)];

test('the sums of every stream that the rules write can be', () => {
  fc.assert(
    fc.property(anyPayment('pay_1'), (events) => {
      expect(breakOf(events)).toBeUndefined();
    }),
    { numRuns: propertyRuns(300) },
  );
});

test('an outcome of another amount than before is found in every stream', () => {
  fc.assert(
    fc.property(
      anyPayment('pay_1'),
      fc.nat(),
      fc.integer({ min: 1, max: 9 }),
      (events, n, more) => {
        const outcomes = [...events.keys()].slice(1);
        if (outcomes.length === 0) return;
        const at = outcomes[n % outcomes.length] as number;
        const event = events[at] as PaymentEvent;
        if (event.type.endsWith('Requested')) return;
        const amount = Object(event.data).amount + more;
        const forged = { ...event, data: { ...event.data, amount } } as PaymentEvent;
        expect(breakOf(events.with(at, forged))).toMatch(new RegExp(`^${at}: `));
      },
    ),
    { numRuns: propertyRuns(300) },
  );
});

describe('sums that cannot be, each with its reason', () => {
  const inEuros = authorized({ currency: 'EUR' });
  test.each<[string, PaymentEvent[], string]>([
    [
      'a second create',
      [created(), created({ operationId: operationId(4) })],
      '1: no intent of its operation comes before it',
    ],
    [
      'an authorization of another amount',
      [created(), authorized({ amount: 9500 })],
      '1: its amount of 9500 is not the 2500 that its intent requested',
    ],
    [
      'the second event of a sale with another amount',
      [...sale.slice(0, 2), captured({ amount: 2400, releasedAmount: 100 })],
      '2: its amount of 2400 is not the 2500 that its intent requested',
    ],
    [
      'a capture above the authorization, intent and outcome alike',
      [created(), authorized(), captureRequested({ amount: 9500 })],
      '2: its capture of 9500 is above the authorized 2500',
    ],
    [
      'a capture that releases more than the rest',
      [...capturing, captured({ ...CAPTURE, releasedAmount: 501 })],
      '3: it releases 501, and the rest of the authorization is 500',
    ],
    [
      'a capture in part that releases nothing',
      [...capturing, captured(CAPTURE)],
      '3: it releases 0, and the rest of the authorization is 500',
    ],
    [
      'a void of a part',
      [created(), authorized(), voidRequested({ amount: 2499 })],
      '2: its void of 2499 is not the authorized 2500',
    ],
    [
      'a void whose outcome has another amount',
      [created(), authorized(), voidRequested(), voided({ amount: 1 })],
      '3: its amount of 1 is not the 2500 that its intent requested',
    ],
    [
      'a refund above the capture',
      [...inPart, refundRequested({ amount: 2001 })],
      '4: its refund of 2001 is above the 2000 that are left of the capture',
    ],
    [
      'refunds above the capture together',
      [...sale, refundRequested({ amount: 2000 }), refunded({ amount: 2000 }), refundRequested()],
      '5: its refund of 2500 is above the 500 that are left of the capture',
    ],
    [
      'a capture made elsewhere above the authorization',
      [created(), authorized(), captureObserved({ amount: 9500 })],
      '2: its capture of 9500 is above the authorized 2500',
    ],
    [
      'a capture in part made elsewhere that releases nothing',
      [created(), authorized(), captureObserved({ amount: 2000 })],
      '2: it releases 0, and the rest of the authorization is 500',
    ],
    [
      'a part canceled elsewhere',
      [created(), authorized(), voidObserved({ amount: 2499 })],
      '2: its void of 2499 is not the authorized 2500',
    ],
    [
      'an expiry of a part',
      [created(), authorized(), authorizationExpired({ amount: 1 })],
      '2: its expiry of 1 is not the authorized 2500',
    ],
    [
      'a second outcome of a refund',
      [...refunding, refunded(PART), refunded(PART)],
      '5: no intent of its operation comes before it',
    ],
    [
      'two refunds that are only together above the capture',
      [...refunding, refundRequested(THIRD), refunded(PART), refunded(THIRD)],
      '6: its refund of 2500 is above the 1700 that are left of the capture',
    ],
    [
      'a refund made elsewhere above what is left',
      [...refunding, refunded(PART), refundObserved()],
      '5: its refund of 2500 is above the 1700 that are left of the capture',
    ],
    [
      'a bounce of more than was refunded',
      [...refunding, refunded(PART), refundFailed()],
      '5: its failed refund of 2500 is above the 800 that was refunded',
    ],
    [
      'a decline of another amount',
      [...capturing, captureDeclined({ amount: 1 })],
      '3: its amount of 1 is not the 2000 that its intent requested',
    ],
    ['another currency', [created(), inEuros], '1: its currency EUR is not USD'],
    [
      'an outcome without its intent',
      [created(), authorized(), captured({ operationId: operationId(9) })],
      '2: no intent of its operation comes before it',
    ],
    ['no beginning', [authorized()], '0: its payment has no PaymentCreated before it'],
  ])('%s', (_what, events, expected) => {
    expect(breakOf(events)).toBe(expected);
  });

  const again = [refundObserved(), refundFailed(), refundRequested(), refunded()];
  const noted = [created(), resolutionRequested(), failed(), outcomeContradicted()];
  test.each<[string, PaymentEvent[]]>([
    ['a life with an erasure', wholeLife('pay_1').toSpliced(-1, 0, personalDataErased())],
    ['an authorization that ran out', [created(), authorized(), authorizationExpired()]],
    ['a whole refund that bounced and was repeated', [...sale, ...again]],
    ['notes before and after an outcome', noted],
    ['a notice between the outcomes of a sale', sale.toSpliced(2, 0, authorizationExpiring())],
  ])('%s: it adds up', (_what, events) => {
    expect(breakOf(events)).toBeUndefined();
  });
});
