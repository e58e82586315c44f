/** A stream that the rules could not have written is damaged, and is not read on (M8, L5). */
import { describe, expect, test } from '@jest/globals';
import type { LaterCommand } from '../../shared/payment/commands.ts';
import { decideLater } from '../../shared/payment/decide.ts';
import type { PaymentEvent } from '../../shared/payment/events.ts';
import { foldReadModel } from '../../shared/payment/fold.ts';
import {
  authorizationOf,
  bytesOfPayment,
  bytesOfReadModel,
  createOf,
  intentsWithoutOutcome,
  isFree,
  type OpenText,
  openPersonal,
  type PaymentState,
  unconfirmedOperations,
} from '../../shared/payment/state.ts';
import {
  authenticationRequested,
  authorized,
  captureDeclined,
  captured,
  captureRequested,
  created,
  disputeClosed,
  disputed,
  failed,
  operationId,
  outcomeContradicted,
  placed,
  providerOpened,
  refunded,
  refundFailed,
  refundObserved,
  refundRequested,
  SEALED,
} from '../support/payment-events.ts';
import { stateAfter } from '../support/scenario.ts';

const FIRST = operationId(1);
const asAuthorized = [created(), authorized()];
const asCaptured = [...asAuthorized, captureRequested(), captured({ operationId: FIRST })];
const asDeclined = [...asAuthorized, captureRequested(), captureDeclined()];
const asRefunded = [...asCaptured, refundRequested(), refunded()];

const asState = (events: PaymentEvent[]): PaymentState => {
  const state = stateAfter(events);
  if (state === undefined) throw new Error('the payment is there');
  return state;
};

test.each<[string, PaymentEvent[], string | undefined]>([
  ['nothing else', asCaptured, undefined],
  ['what it named at the approval', [created(), authorized({ providerReference: 'ref' })], 'ref'],
  ['what it named before', [created(), providerOpened(), authorized()], 'prov_1'],
  [
    'not what its capture was called',
    [created({ captureNow: true }), authorized(), captured({ providerReference: 'cap' })],
    undefined,
  ],
])('provider.md: later operations name the create by its id and %s', (_what, events, reference) => {
  const named = reference === undefined ? {} : { authorizationReference: reference };
  const create = { authorizationId: operationId(0), ...named };
  expect(authorizationOf(asState(events))).toEqual(create);
});

test('ADR-0099: a declined capture that was carried out is the one operation to ask about', () => {
  const carriedOut = outcomeContradicted({ operationId: FIRST });
  const state = asState([...asDeclined, carriedOut]);
  expect(unconfirmedOperations(state)).toEqual([state.operations[1]]);
  expect(unconfirmedOperations(undefined)).toEqual([]);
});

const asWaiting = [created(), authenticationRequested()];

test.each<[string, PaymentEvent[], boolean]>([
  ['was fenced', [created(), failed({ outcome: 'FENCED' })], true],
  ['was fenced once its shopper was late', [...asWaiting, failed({ outcome: 'FENCED' })], false],
])('gaps §8, §21: whether the key is free of a create that %s', (_what, events, free) => {
  expect(isFree(createOf(asState(events)))).toBe(free);
});

test('gaps §21: an intent that waits for the shopper is not unresolved', () => {
  expect(intentsWithoutOutcome(asState([created()]))).toHaveLength(1);
  expect(intentsWithoutOutcome(asState(asWaiting))).toEqual([]);
});

test('gaps §21: a create says whether its provider may ask for the shopper, or has asked', () => {
  const create = (events: PaymentEvent[]) => createOf(asState(events)).authentication;
  expect(create([created()])).toBeUndefined();
  expect(create([created({ authentication: true })])).toBe(true);
  expect(create(asWaiting)).toBe(true);
});

test('gaps §15: a dispute opens and ends while a refund has no outcome', () => {
  const meanwhile = [...asCaptured, refundRequested(), disputed(), disputeClosed()];
  expect(asState(meanwhile).disputes).toMatchObject([{ status: 'WON' }]);
});

test('of a sale, too, an outcome without an intent is damage', () => {
  const asSold = [created({ captureNow: true }), authorized(), captured()];
  expect(() => foldReadModel(placed([...asSold, refunded()]))).toThrow('without an unresolved');
});

test('ADR-0099: of two refunds resolved by hand the provider contradicts the one that it names', () => {
  const resolution = { evidence: 'a letter of the provider' };
  const byHand = [1, 2].map((n) => ({ operationId: operationId(n + 1), amount: n }));
  const asResolved = [
    ...asCaptured,
    ...byHand.map(refundRequested),
    ...byHand.map((data) => refunded({ ...data, resolution })),
  ];
  const state = asState([
    ...asResolved,
    outcomeContradicted({ ...byHand[1], outcome: 'DECLINED' }),
  ]);
  const expected = ['UNCONFIRMED', 'CONTRADICTED'];
  expect(unconfirmedOperations(state).map((o) => o.confirmation)).toEqual(expected);
  expect(state.unresolved.map((o) => o.confirmation)).toEqual(expected);
});

test('the texts of a person are looked for in the event that holds them', async () => {
  const open: OpenText = async (stored, place) => ({ text: { stored, place } as never });
  const place = { paymentId: 'pay_1', type: 'PaymentCreated', field: 'personal' };
  const text = { stored: SEALED, place };
  expect(await openPersonal(open, asState([created()]))).toEqual({ text });
});

test('a payment without its create is a bug of the code that reads it', () => {
  const state = { ...asState([created()]), operations: [] };
  expect(() => createOf(state)).toThrow('payment pay_1 has no create');
});

describe('ADR-0112: a cache counts at least the bytes that a payment takes', () => {
  const id = 'x'.repeat(255);
  const item = { id, name: id, quantity: 1, unitPrice: 1, goodsType: 'DIGITAL' } as const;
  const items = created({ details: { productItems: Array(200).fill(item) } });
  const names = Array.from({ length: 20 }, (_, n) => [id.slice(0, 38) + n, id]);
  const metadata = Object.fromEntries(names);
  const many = (eventsOf: (id: string) => PaymentEvent[]) => [
    ...asCaptured,
    ...Array.from({ length: 999 }, (_, n) => eventsOf(operationId(9 + n))).flat(),
  ];
  const open = (operationId: string) => refundRequested({ operationId, amount: 1 });

  test.each([
    ['items', [items]],
    ['names of metadata', [created({ details: { metadata } })]],
    ['disputes', many((disputeId) => [disputed({ disputeId })])],
    ['open refunds', many((id) => [open(id)])],
    ['refunds', many((id) => [open(id), refunded({ operationId: id, amount: 1 })])],
  ])('with many %s', (_what, events) => {
    const state = asState(events);
    const least = (of: unknown) => JSON.stringify(of).length;
    expect(bytesOfReadModel(state)).toBeGreaterThan(least(foldReadModel(placed(events))));
    expect(bytesOfPayment({ events, state })).toBeGreaterThan(least([events, state.operations]));
  });
});

test('a refund that failed later is known by its whole operation id, of which a transaction shows a part', () => {
  const state = stateAfter(asRefunded);
  if (state === undefined) throw new Error('the payment is there');
  const failedLater = (id: string): LaterCommand => ({
    kind: 'later',
    operationId: operationId(9),
    result: { kind: 'REFUND_FAILED', operationId: id, failureCode: 'PROCESSING_ERROR' },
  });
  const other = `other_${operationId(2)}`;
  expect(decideLater(state, failedLater(operationId(2)))).toHaveLength(1);
  expect(decideLater(state, failedLater(other))).toEqual([]);
  expect(() => stateAfter([...asRefunded, refundFailed({ operationId: other })])).toThrow(
    new Error('PaymentRefundFailed does not fit its payment'),
  );
});

test('a refund that was made elsewhere is no operation, so nothing contradicts it', () => {
  const elsewhere = { operationId: operationId(7), amount: 100 };
  const bounced = [...asCaptured, refundObserved(elsewhere), refundFailed(elsewhere)];
  expect(() => stateAfter([...bounced, outcomeContradicted(elsewhere)])).toThrow(
    new Error('PaymentOutcomeContradicted does not fit its operation'),
  );
});
