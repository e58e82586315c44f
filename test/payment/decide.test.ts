/** The rules of a payment: what each command is answered in each state (gaps §3, §5 to §8). */
import { describe, expect, test } from '@jest/globals';
import type { FinalOutcomeDetails } from '../../shared/payment/commands.ts';
import { refused } from '../../shared/payment/decide.ts';
import type { PaymentEvent } from '../../shared/payment/events.ts';
import { isOfSameRequest } from '../../shared/payment/state.ts';
import {
  capture,
  create,
  identity,
  NEW_OPERATION,
  record,
  refund,
  voidIt,
} from '../support/commands.ts';
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
  providerOpened,
  refundDeclined,
  refunded,
  refundRequested,
  SEALED,
  voidDeclined,
  voidRequested,
} from '../support/payment-events.ts';
import { responseTo, type Scenario, scenarios, stateAfter } from '../support/scenario.ts';
import { COMMANDS, type Kind, SUB_STATES, subStateOf, TABLE } from './decide-table.ts';

const COMMAND_KINDS = Object.keys(COMMANDS) as Kind[];

describe('every state meets every command', () => {
  test('the table has a cell for each pair', () => {
    const pairs = SUB_STATES.flatMap((row) => COMMAND_KINDS.map((kind) => `${row} x ${kind}`));
    const cells = Object.entries(TABLE).flatMap(([row, { responses }]) =>
      Object.keys(responses).map((kind) => `${row} x ${kind}`),
    );
    expect(pairs).toHaveLength(77);
    expect(cells.toSorted()).toEqual(pairs.toSorted());
  });

  test.each(SUB_STATES)('the row %s is about that state', (row) => {
    expect(subStateOf(stateAfter(TABLE[row].given))).toBe(row);
  });

  scenarios(
    SUB_STATES.flatMap((row) => {
      const { given, responses } = TABLE[row];
      return COMMAND_KINDS.map((kind) => ({
        title: `${row} x ${kind}`,
        given,
        when: COMMANDS[kind](given),
        response: responses[kind],
      }));
    }),
  );
});

const FIRST = operationId(1);
const newly = { operationId: NEW_OPERATION };
const asAuthorized = [created(), authorized()];
const capturing = (amount: number, released: { releasedAmount?: number } = {}) => [
  ...asAuthorized,
  captureRequested({ amount }),
  captured({ operationId: FIRST, amount, ...released }),
];
const asCaptured = capturing(2500);

describe('gaps §3: what a create may ask for', () => {
  const { card } = create();
  const broken = (title: string, fields: Parameters<typeof create>[0], details: string[]) => ({
    title,
    given: [],
    when: create(fields),
    response: { kind: 'refused', code: 'BUSINESS_RULE_VIOLATION', details } as const,
  });
  const onlyVisaOrAmex = { maxAmount: 5000, acceptedBrands: ['VISA', 'AMEX'] as const };
  const brandDetail = 'paymentMethod.card must be one of VISA, AMEX';
  scenarios([
    broken('one above the maximum', { amount: 100_000_000 }, ['amount must not exceed 99999999']),
    broken('above any integer', { amount: 'too large' }, ['amount must not exceed 99999999']),
    broken('a listed currency that is not USD', { currency: 'EUR' }, ['currency must be USD']),
    broken(
      'a brand outside the list, whatever brand was given with it',
      { rules: onlyVisaOrAmex, numberBrand: 'MASTERCARD', card: { ...card, brand: 'VISA' } },
      [brandDetail],
    ),
    broken(
      'a number of unknown brand is outside any list',
      { rules: onlyVisaOrAmex, numberBrand: undefined },
      [brandDetail],
    ),
    broken(
      'every broken rule is named',
      { rules: onlyVisaOrAmex, amount: 5001, currency: 'JPY', numberBrand: 'JCB' },
      ['amount must not exceed 5000', 'currency must be USD', brandDetail],
    ),
    {
      title: 'exactly the maximum, with a brand of the list',
      given: [],
      when: create({ rules: onlyVisaOrAmex, amount: 5000 }),
      response: [created({ ...newly, amount: 5000 })],
    },
    {
      title: 'a number of unknown brand where every brand is accepted',
      given: [],
      when: create({ numberBrand: undefined }),
      response: [created(newly)],
    },
    {
      title: 'a sale',
      given: [],
      when: create({ captureNow: true }),
      response: [created({ ...newly, captureNow: true })],
    },
    {
      title: 'the identity with its key hash is kept for repeats',
      given: [],
      when: create({ identity: { ...identity, keyHash: 'k' } }),
      response: [created({ ...newly, identity: { ...identity, keyHash: 'k' } })],
    },
  ]);
});

describe('gaps §6: the approval of a create', () => {
  const approved: FinalOutcomeDetails = { outcome: 'APPROVED', providerReference: 'ref-1' };
  const data = { providerReference: 'ref-1' };
  scenarios([
    {
      title: 'a sale appends PaymentAuthorized and PaymentCaptured in one batch, nothing released',
      given: [created({ captureNow: true })],
      when: record(operationId(0), approved),
      response: [authorized(data), captured(data)],
    },
  ]);
});

describe('gaps §5: capture', () => {
  const above = 'captureAmount must not exceed the authorized amount of 2500';
  const tooMuch = refused('CAPTURE_NOT_ALLOWED', above);
  scenarios([
    {
      title: 'a part',
      given: asAuthorized,
      when: capture({ amount: 1, reason: SEALED }),
      response: [captureRequested({ ...newly, amount: 1, reason: SEALED })],
    },
    {
      title: 'M1: one above the authorized amount',
      given: asAuthorized,
      when: capture({ amount: 2501 }),
      response: tooMuch,
    },
    {
      title: 'an amount above any integer',
      given: asAuthorized,
      when: capture({ amount: 'too large' }),
      response: tooMuch,
    },
    {
      title: 'a partial capture says what it released',
      given: [...asAuthorized, captureRequested({ amount: 2000 })],
      when: record(FIRST),
      response: [captured({ operationId: FIRST, amount: 2000, releasedAmount: 500 })],
    },
    {
      title: 'after a declined capture another may be tried',
      given: [...asAuthorized, captureRequested(), captureDeclined()],
      when: capture(),
      response: [captureRequested(newly)],
    },
    {
      title: 'after a declined void a capture may be tried',
      given: [...asAuthorized, voidRequested(), voidDeclined()],
      when: capture(),
      response: [captureRequested(newly)],
    },
  ]);
});

describe('gaps §5: void', () => {
  scenarios([
    {
      title: 'carries the authorized amount',
      given: [created({ amount: 700 }), authorized({ amount: 700 })],
      when: voidIt({ reason: SEALED }),
      response: [voidRequested({ ...newly, amount: 700, reason: SEALED })],
    },
    {
      title: 'after a declined capture the authorization can be voided',
      given: [...asAuthorized, captureRequested(), captureDeclined()],
      when: voidIt(),
      response: [voidRequested(newly)],
    },
  ]);
});

describe('gaps §5, §7: refund', () => {
  const above = (left: number) =>
    refused('REFUND_NOT_ALLOWED', `refundAmount must not exceed the ${left} left to refund`);
  const partly = [
    ...capturing(2000, { releasedAmount: 500 }),
    refundRequested({ amount: 800 }),
    refunded({ amount: 800 }),
  ];
  const reserved = [...asCaptured, refundRequested({ amount: 800 })];
  const another = { operationId: operationId(3) };
  scenarios([
    {
      title: 'a part',
      given: asCaptured,
      when: refund({ amount: 1, reason: SEALED }),
      response: [refundRequested({ ...newly, amount: 1, reason: SEALED })],
    },
    {
      title: 'an omitted amount is what is left of the captured, not of the authorized, amount',
      given: partly,
      when: refund(),
      response: [refundRequested({ ...newly, amount: 1200 })],
    },
    {
      title: 'up to the ceiling',
      given: partly,
      when: refund({ amount: 1200 }),
      response: [refundRequested({ ...newly, amount: 1200 })],
    },
    { title: 'M2: no more', given: partly, when: refund({ amount: 1201 }), response: above(1200) },
    {
      title: 'an amount above any integer',
      given: asCaptured,
      when: refund({ amount: 'too large' }),
      response: above(2500),
    },
    {
      title: 'M2: an open refund counts against the ceiling',
      given: reserved,
      when: refund({ amount: 1701 }),
      response: above(1700),
    },
    {
      title: 'M2: several open refunds all count',
      given: [...reserved, refundRequested({ ...another, amount: 1700 })],
      when: refund({ amount: 1 }),
      response: above(0),
    },
    {
      title: 'an omitted amount where the open refunds leave nothing',
      given: [...asCaptured, refundRequested()],
      when: refund(),
      response: above(0),
    },
    {
      title: 'a declined refund releases its reservation',
      given: [...reserved, refundDeclined({ amount: 800 })],
      when: refund(),
      response: [refundRequested(newly)],
    },
    {
      title: 'the outcome of one open refund leaves the other open',
      given: [...reserved, refundRequested({ ...another, amount: 1700 })],
      when: record(another.operationId),
      response: [refunded({ ...another, amount: 1700 })],
    },
  ]);
});

describe('a payment has a ceiling of operations (gaps §18)', () => {
  const reached = 'the payment has reached 3 operations';
  scenarios([
    {
      title: 'a capture that was declined counts, and so does one that was never sent',
      given: [
        ...asAuthorized,
        captureRequested(),
        captureDeclined(),
        captureRequested({ operationId: operationId(2) }),
        captureDeclined({ operationId: operationId(2), outcome: 'NOT_SENT' }),
      ],
      when: capture({ operationsMax: 3 }),
      response: refused('CAPTURE_NOT_ALLOWED', reached),
    },
    {
      title: 'a void is refused as well: the authorization runs out at the provider',
      given: [...asAuthorized, voidRequested(), voidDeclined()],
      when: voidIt({ operationsMax: 2 }),
      response: refused('VOID_NOT_ALLOWED', 'the payment has reached 2 operations'),
    },
  ]);
});

describe('gaps §24: the end that the provider tells is kept of an authorization', () => {
  const authorizationExpiresAt = '2026-01-08T00:00:00.000Z';
  const when = record(operationId(0), { outcome: 'APPROVED', authorizationExpiresAt });
  scenarios([
    {
      title: 'PaymentAuthorized',
      given: [created()],
      when,
      response: [authorized({ authorizationExpiresAt })],
    },
    {
      title: 'not of a sale, which has nothing to capture',
      given: [created({ captureNow: true })],
      when,
      response: [authorized(), captured()],
    },
  ]);
});

describe('gaps §7: outcomes that are no approval', () => {
  const asDeclined = {
    outcome: 'DECLINED',
    failureCode: 'INSUFFICIENT_FUNDS',
    providerFailureCode: '51',
    advice: 'USE_ANOTHER_CARD',
    networkDeclineCode: '51',
    networkAdviceCode: '02',
  } as const;
  const declined: FinalOutcomeDetails = asDeclined;
  const waiting = [created(), authenticationRequested()];
  const intents = [
    { given: [created()], operation: operationId(0), ended: failed },
    // Of a shopper who did not come (gaps §21).
    { given: waiting, operation: operationId(0), ended: failed, code: 'AUTHENTICATION_REQUIRED' },
    { given: [...asAuthorized, captureRequested()], operation: FIRST, ended: captureDeclined },
    { given: [...asAuthorized, voidRequested()], operation: FIRST, ended: voidDeclined },
    { given: [...asCaptured, refundRequested()], operation: operationId(2), ended: refundDeclined },
  ];
  scenarios(
    intents.flatMap(({ given, operation, ended, code = 'PROVIDER_UNAVAILABLE' }): Scenario[] => {
      const { type } = ended();
      const after = given.at(-1)?.type;
      const about = { operationId: operation, amount: 2500, currency: 'USD', failureCode: code };
      return [
        {
          title: `${type} after ${after}, with the codes and advice of the provider (gaps §23)`,
          given,
          when: record(operation, declined),
          response: [ended(asDeclined)],
        },
        ...(['NOT_SENT', 'FENCED'] as const).map((outcome) => ({
          title: `${type} after ${after}, ${outcome}`,
          given,
          when: record(operation, { outcome }),
          response: [{ type, data: { ...about, outcome } } as PaymentEvent],
        })),
      ];
    }),
  );
});

/** That every command is safe to repeat is a property in agreement.test.ts. */
describe('a second outcome of an operation yields no events', () => {
  const fenced = failed({ outcome: 'FENCED', failureCode: 'PROVIDER_UNAVAILABLE' });
  scenarios([
    {
      title: 'an approval that comes after the fence',
      given: [created(), fenced],
      when: record(operationId(0)),
      response: [],
    },
    {
      title: 'a fence that comes after the approval',
      given: asCaptured,
      when: record(FIRST, { outcome: 'FENCED' }),
      response: [],
    },
  ]);
});

describe('gaps §8: an operation under the same key is its repeat', () => {
  const under = (keyHash: string) => ({ identity: { ...identity, keyHash } });
  const repeated = { kind: 'repeated' } as const;
  const declinedFor = (outcome: 'DECLINED' | 'NOT_SENT' | 'FENCED') =>
    captureDeclined({ outcome, failureCode: 'PROVIDER_UNAVAILABLE' });
  const requested = captureRequested(under('k'));
  const again = capture({ operationId: NEW_OPERATION, ...under('k') });
  scenarios([
    {
      title: 'a refund that another process has made meanwhile, though there is more to refund',
      given: [...asCaptured, refundRequested({ ...under('k'), amount: 500 })],
      when: refund({ operationId: NEW_OPERATION, amount: 500, ...under('k') }),
      response: repeated,
    },
    {
      title: 'a finished capture, which without the key would be refused',
      given: [...asAuthorized, requested, captured({ operationId: FIRST })],
      when: again,
      response: repeated,
    },
    {
      title: 'a declined capture',
      given: [...asAuthorized, requested, declinedFor('DECLINED')],
      when: again,
      response: repeated,
    },
    ...(['NOT_SENT', 'FENCED'] as const).map((outcome) => ({
      title: `none that was never carried out: ${outcome}`,
      given: [...asAuthorized, requested, declinedFor(outcome)],
      when: again,
      response: [captureRequested({ operationId: NEW_OPERATION, ...under('k') })],
    })),
    {
      title: 'one under the older secret, while the secret changes (ADR-0105)',
      given: [...asAuthorized, requested],
      when: capture({ ...newly, ...under('new'), previousIdentity: under('k').identity }),
      response: repeated,
    },
    {
      title: 'none under another key',
      given: [...asCaptured, refundRequested({ ...under('k'), amount: 500 })],
      when: refund({ operationId: NEW_OPERATION, amount: 500, ...under('other') }),
      response: [refundRequested({ operationId: NEW_OPERATION, amount: 500, ...under('other') })],
    },
  ]);
});

test.each([
  ['a', undefined, true],
  ['a', 'b', true],
  ['b', 'a', true],
  ['b', 'c', false],
  ['b', undefined, false],
])(
  'gaps §8: a request is the same by its fingerprint a: %s, under the older secret %s: %s',
  (now, then, same) => {
    const previousIdentity = then === undefined ? undefined : { fingerprint: then };
    const request = { identity: { fingerprint: now }, previousIdentity };
    expect(isOfSameRequest({ identity: { fingerprint: 'a' } }, request)).toBe(same);
  },
);

test('gaps §15: a payment is not refunded while one of its disputes is open', () => {
  const lost = { disputeId: 'dp_2', amount: 700 };
  const given = [...asCaptured, disputed(lost), disputeClosed({ ...lost, status: 'LOST' })];
  const left = [refundRequested({ ...newly, amount: 1800 })];
  expect(responseTo(given, refund())).toEqual(left);
  const why = refused('REFUND_NOT_ALLOWED', 'the payment is disputed');
  expect(responseTo([...given, disputed()], refund())).toEqual(why);
});

test('ADR-0200: a fence is none for what was opened after it was judged', () => {
  const given = [created(), providerOpened()];
  const fence = record(operationId(0), { outcome: 'FENCED' });
  expect(responseTo(given, fence)).toEqual([]);
  expect(responseTo(given, { ...fence, judgedReference: 'prov_1' })).toHaveLength(1);
  expect(responseTo(given, record(operationId(0)))).toEqual([authorized()]);
});

describe('an outcome needs its intent', () => {
  scenarios([
    {
      title: 'an outcome of an operation that was never begun is a bug of the caller',
      given: asAuthorized,
      when: record(NEW_OPERATION),
      response: { throws: `operation ${NEW_OPERATION} was never begun` },
    },
  ]);
});
