/** Valid events, made by hand: each builder fills what a test does not care about. */
import fc from 'fast-check';
import type { EventStore, NewEvent, RecordedEvent } from '../../shared/event-store/port.ts';
import {
  type EventData,
  type PaymentEvent,
  type PaymentEventType,
  type PlacedEvent,
  streamOf,
} from '../../shared/payment/events.ts';
import { anyCharacter } from './any-character.ts';
import type { Plain } from './plain.ts';

/** The operation id of a payment's n-th operation, 26 characters as real ones have. */
export const operationId = (n: number): string => `01J${String(n).padStart(23, '0')}`;

const money = { amount: 2500, currency: 'USD' };
const identity = { fingerprint: 'f'.repeat(64) };
/** Of the create, of the first change of a payment, of its refund, and of what another hand did. */
const create = { operationId: operationId(0), ...money };
const change = { operationId: operationId(1), ...money };
const refund = { operationId: operationId(2), ...money };
const observed = { operationId: operationId(7), ...money };
const decline = {
  failureCode: 'CARD_DECLINED',
  providerFailureCode: '05',
  outcome: 'DECLINED',
} as const;

/** One of each type, as its builder makes it. */
export const EVENTS = {} as Record<PaymentEventType, PaymentEvent>;

const builder = <T extends PaymentEventType>(type: T, usual: Plain<EventData<T>>) => {
  const build = (data: Partial<Plain<EventData<T>>> = {}): PaymentEvent =>
    ({ type, data: { ...usual, ...data } }) as unknown as PaymentEvent;
  EVENTS[type] = build();
  return build;
};

/** What is kept of a card beside its holder's name. */
export const CARD_KEPT = {
  bin: '42424242',
  last4: '4242',
  cvvPresentDuringAttempt: true,
  expiryMonth: '12',
  expiryYear: '2030',
  brand: 'VISA',
};

/** A box that no key opens: most tests look at no name. */
export const SEALED = { box: 'b'.repeat(64), key: 'k'.repeat(32) };

export const created = builder('PaymentCreated', {
  ...create,
  paymentId: 'pay_1',
  merchantId: 'm_1',
  captureNow: false,
  card: CARD_KEPT,
  details: { merchantReference: 'order-1' },
  personal: SEALED,
  identity,
});
export const providerOpened = builder('PaymentProviderOpened', {
  ...create,
  providerReference: 'prov_1',
});
export const authenticationRequested = builder('PaymentAuthenticationRequested', {
  ...create,
  expiresAt: '2026-01-15T10:15:00.000Z',
});
export const authorized = builder('PaymentAuthorized', create);
export const captured = builder('PaymentCaptured', create);
export const voided = builder('PaymentVoided', change);
export const refunded = builder('PaymentRefunded', refund);
export const failed = builder('PaymentFailed', { ...create, ...decline });
export const captureRequested = builder('PaymentCaptureRequested', { ...change, identity });
export const voidRequested = builder('PaymentVoidRequested', { ...change, identity });
export const refundRequested = builder('PaymentRefundRequested', { ...refund, identity });
export const captureDeclined = builder('PaymentCaptureDeclined', { ...change, ...decline });
export const voidDeclined = builder('PaymentVoidDeclined', { ...change, ...decline });
export const refundDeclined = builder('PaymentRefundDeclined', { ...refund, ...decline });

export const authorizationExpiring = builder('PaymentAuthorizationExpiring', {
  ...create,
  expiresAt: '2026-01-08T00:00:00.000Z',
});
export const authorizationExpired = builder('PaymentAuthorizationExpired', create);
export const refundFailed = builder('PaymentRefundFailed', {
  ...refund,
  failureCode: 'PROCESSING_ERROR',
});
export const refundObserved = builder('PaymentRefundObserved', { ...observed, refundId: 're_1' });
const referred = { ...observed, providerReference: 'pi_1' };
export const captureObserved = builder('PaymentCaptureObserved', referred);
export const voidObserved = builder('PaymentVoidObserved', referred);
const dispute = { ...create, disputeId: 'dp_1' };
export const disputed = builder('PaymentDisputed', { ...dispute, reason: 'fraudulent' });
export const disputeClosed = builder('PaymentDisputeClosed', { ...dispute, status: 'WON' });
export const resolutionRequested = builder('PaymentResolutionRequested', {
  ...create,
  outcome: 'DECLINED',
  evidence: 'letter of the provider',
  requestedBy: 'jane',
});
export const outcomeConfirmed = builder('PaymentOutcomeConfirmed', {
  ...create,
  outcome: 'FENCED',
});
export const outcomeContradicted = builder('PaymentOutcomeContradicted', {
  ...create,
  outcome: 'APPROVED',
});
const order = { reason: 'CONSUMER_REQUEST', ticket: 'DPO-1' } as const;
export const erasureRequested = builder('PaymentErasureRequested', {
  ...order,
  requestedBy: 'jane',
});
export const erasureHeld = builder('PaymentErasureHeld', { ticket: 'CASE-1' });
export const erasureReleased = builder('PaymentErasureReleased', { ticket: 'CASE-1' });
export const personalDataErased = builder('PaymentPersonalDataErased', {
  ...order,
  requestedBy: 'jane',
  keys: [SEALED.key],
});

/** A payment's whole life: authorized, captured in part, refunded in part. */
export const wholeLife = (paymentId: string, merchantId = 'm_1'): PaymentEvent[] => [
  created({ paymentId, merchantId }),
  authorized(),
  captureRequested({ amount: 2000 }),
  captured({ operationId: operationId(1), amount: 2000, releasedAmount: 500 }),
  refundRequested({ amount: 800 }),
  refunded({ amount: 800 }),
];

/** A time that grows with n: seconds after the start of 2026. */
export const timeOf = (n: number): string =>
  new Date(Date.UTC(2026, 0, 1) + n * 1000).toISOString();

/** Events with the revisions and times they would have in a stream of their own. */
export const placed = (events: PaymentEvent[]): PlacedEvent[] =>
  events.map((event, revision) => ({ revision, time: timeOf(revision), event }));

/** An event with a fresh id, ready to be appended. */
export const newEvent = (event: PaymentEvent, time = timeOf(0)): NewEvent => ({
  id: crypto.randomUUID(),
  time,
  event,
  context: { actor: 'test', requestId: 'r_1', correlationId: 'c_1', causationId: 'r_1' },
});

/** Appends all events of a new payment at once. */
export const appendPayment = (
  store: Pick<EventStore, 'append'>,
  paymentId: string,
  events: readonly PaymentEvent[],
  time: (at: number) => string = () => timeOf(0),
): Promise<RecordedEvent[]> =>
  store.append(
    streamOf(paymentId),
    'none',
    events.map((event, at) => newEvent(event, time(at))),
  );

const refunds = (steps: { amount: number; ending: number }[]): PaymentEvent[] =>
  steps.flatMap(({ amount, ending }, n) => {
    const operation = { operationId: operationId(10 + n), amount };
    const outcome = [[refunded(operation)], [refundDeclined(operation)], []][ending] ?? [];
    return [refundRequested(operation), ...outcome];
  });

const ended = (operation: { operationId: string; amount: number }, kind: number) =>
  [
    [captureRequested(operation)],
    [captureRequested(operation), captureDeclined(operation)],
    [voidRequested(operation), voided(operation)],
    [voidRequested(operation), voidDeclined(operation), voidRequested(operation)],
    [],
  ][kind] ?? [];

/**
 * Any valid stream of a payment: approved, declined or open; captured at once, in part or not;
 * voided; refunded in steps of which some are declined or still open.
 */
export const anyPayment = (paymentId: string): fc.Arbitrary<PaymentEvent[]> =>
  fc
    .record({
      sale: fc.boolean(),
      outcome: fc.constantFrom('open', 'failed', 'captured', 'other'),
      other: fc.nat({ max: 4 }),
      capture: fc.integer({ min: 1000, max: 2500 }),
      steps: fc.array(
        fc.record({ amount: fc.integer({ min: 1, max: 200 }), ending: fc.nat({ max: 2 }) }),
        { maxLength: 5 },
      ),
      reference: fc.string({ unit: anyCharacter, minLength: 1, maxLength: 20 }),
    })
    .map(({ sale, outcome, other, capture, steps, reference }) => {
      const details = { merchantReference: reference };
      const first = created({ paymentId, captureNow: sale, details });
      if (outcome === 'open') return [first];
      if (outcome === 'failed') return [first, failed()];
      if (sale) return [first, authorized(), captured(), ...refunds(steps)];
      const operation = { operationId: operationId(1), amount: 2500 };
      if (outcome === 'other') return [first, authorized(), ...ended(operation, other)];
      const taken = { ...operation, amount: capture };
      const released = capture < 2500 ? { releasedAmount: 2500 - capture } : {};
      const capturing = [captureRequested(taken), captured({ ...taken, ...released })];
      return [first, authorized(), ...capturing, ...refunds(steps)];
    });

const ownedBy = (paymentId: string, event: PaymentEvent): PaymentEvent =>
  event.type === 'PaymentCreated' ? created({ ...event.data, paymentId }) : event;

/** The ids that `interleaved` gives. */
export const interleavedIds = (prefix: string, lives: readonly PaymentEvent[][]): string[] =>
  lives.map((_, n) => `${prefix}_${n}`);

/** The events of several payments in any order that keeps each payment's own. */
export function* interleaved(
  prefix: string,
  lives: readonly PaymentEvent[][],
  order: fc.Stream<number>,
): Generator<{ paymentId: string; revision: number; event: PaymentEvent }> {
  const ids = interleavedIds(prefix, lives);
  const left = lives.map((events, n) => ({ paymentId: ids[n] ?? '', events, next: 0 }));
  for (;;) {
    const open = left.filter(({ events, next }) => next < events.length);
    const one = open[order.next().value % open.length];
    const event = one?.events[one.next];
    if (one === undefined || event === undefined) return;
    const { paymentId, next: revision } = one;
    one.next += 1;
    yield { paymentId, revision, event: ownedBy(paymentId, event) };
  }
}
