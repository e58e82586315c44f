/** What the driver of Stripe promises beyond the port: each case is a way to lose money. */
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import type { ProviderOperation } from '../../providers/port.ts';
import { confirmIntent, suffixOf } from '../../providers/stripe/requests.ts';
import { CardSecret } from '../../shared/payment/card.ts';
import type { ThreeDSecure } from '../../shared/payment/fields.ts';
import { authorize, followUp } from '../support/provider-operations.ts';
import { type Step, stripeDouble } from '../support/stripe-double/server.ts';
import {
  approvedBy,
  askOnce,
  driverOver,
  executed,
  keepIt,
  overDouble,
  questionOf,
  stepsAt,
} from '../support/stripe-fault-rounds.ts';
import { until } from '../support/until.ts';

const over = overDouble();
const intents = () => [...over.double.books.intents.values()];
const authorized = () => approvedBy(over.provider, authorize());
const sold = () => approvedBy(over.provider, authorize(undefined, { kind: 'SALE' }));
/** Sent as Stripe's test token, or, where it has none, as a raw number. */
const RAW = '4000000000000077';
const neverSent = (reason: string) => ({ outcome: 'NOT_SENT', byProvider: true, reason });
const lost = () => Promise.reject(new Error('the append failed'));
const execute = (operation: ProviderOperation) => over.provider.execute(operation, keepIt);

test('gaps §21: a confirm alone carries the results of 3-D Secure, in the names of Stripe', () => {
  const cryptogram = `${'A'.repeat(27)}=`;
  const transactionId = '4bd1d5b8-7c1e-4b42-9d55-3f1a8c2e6b70';
  const results = { version: '2.2.0', eci: '05', cryptogram, transactionId } as const;
  const given = (threeDSecure?: ThreeDSecure) => {
    const card = new CardSecret({ token: 'pm_1', holderName: 'Jane Doe', threeDSecure });
    const { params } = confirmIntent({ ...authorize(), card }, 'pi_1', 'pm_1');
    return Object.entries(params)
      .filter(([name]) => name.startsWith('payment_method_options'))
      .map(([name, value]) => [name.split(/[[\]]+/).at(-2), value]);
  };
  const sent = [
    ['version', '2.2.0'],
    ['electronic_commerce_indicator', '05'],
    ['cryptogram', cryptogram],
    ['transaction_id', transactionId],
  ];
  expect(given(results)).toEqual(sent);
  const exempt = [...sent, ['exemption_indicator', 'low_risk']];
  expect(given({ ...results, exemption: 'LOW_RISK' })).toEqual(exempt);
  expect(given()).toEqual([]);
});

/** The wall clock is a day ahead once Stripe has received `step`, or once it was looked at. */
test.each<[ProviderOperation['kind'], Step | undefined, Step[]]>([
  ['AUTHORIZE', undefined, ['open']],
  ['CAPTURE', undefined, []],
  ['VOID', 'update', ['update']],
  ['REFUND', undefined, []],
])(
  'a machine that was suspended does not send its %s: the fence may have run out',
  async (...row) => {
    const [kind, lastStep, sent] = row;
    const { operation, authorizationReference } = await (kind === 'REFUND' ? sold() : authorized());
    over.double.received.length = 0;
    let looks = 0;
    const waking = driverOver(over.double.url, {
      nowMs: () => {
        looks += 1;
        const hasSlept =
          lastStep === undefined ? looks > 1 : stepsAt(over.double).includes(lastStep);
        return Date.now() + (hasSlept ? 26 * 3_600_000 : 0);
      },
    });
    const late =
      kind === 'AUTHORIZE' || kind === 'SALE'
        ? authorize()
        : followUp(kind, operation, { authorizationReference });
    expect((await waking.execute(late, keepIt)).outcome).toBe('NOT_SENT');
    await waking.close();
    expect(stepsAt(over.double)).toEqual(sent);
  },
);

describe('a PaymentIntent that is used no more is canceled beside the call, so that none stays open', () => {
  const left = () => intents().map((one) => [one.status, one.cancellation_reason]);
  const areCanceled = (count: number) =>
    until('all are canceled', async () => {
      const canceled = left().filter(([status]) => status === 'canceled');
      return canceled.length === count && canceled.every(([, reason]) => reason === 'abandoned');
    });

  test('after a decline, whose outcome and ledger stay as they were', async () => {
    const operation = authorize('4000000000000002');
    const { outcome: said, reference } = await executed(over.provider, operation);
    await areCanceled(1);
    expect(await over.provider.lookUp(questionOf(operation, reference))).toEqual(said);
    expect(await over.provider.fence(questionOf(operation, reference))).toEqual(said);
    expect((await over.provider.ledger(null, 100)).entries).toMatchObject([
      { outcome: 'DECLINED' },
    ]);
  });

  test('after a failure before the confirm: of the number, of the store, of the key', async () => {
    await execute(authorize('4000000000000071'));
    await over.provider.execute(authorize(), lost);
    over.double.plan('confirm', '401');
    await execute(authorize());
    await areCanceled(3);
  });

  test('but not what an earlier log’s call had approved under the same operation id', async () => {
    const { operation, reference } = await authorized();
    // The same open is replayed, and nothing is kept.
    expect((await over.provider.execute(operation, lost)).outcome).toBe('NOT_SENT');
    await until('it was looked at', async () => stepsAt(over.double).includes('read'));
    expect(left()).toEqual([['requires_capture', null]]);
    expect((await over.provider.fence(questionOf(operation, reference))).outcome).toBe('APPROVED');
  });

  test.each(['read', 'cancel'] as const)('a failure of its %s changes nothing', async (step) => {
    const operation = authorize('4000000000000002');
    over.double.plan(step, '500 before acting');
    const { outcome: said, reference } = await executed(over.provider, operation);
    await until('it was tried', async () => stepsAt(over.double).includes(step));
    expect(await over.provider.fence(questionOf(operation, reference))).toEqual(said);
    expect(left()).toEqual([['requires_payment_method', null]]);
  });
});

test('names itself and its version, and logs the ids that Stripe gave what did not succeed', async () => {
  const lines: object[] = [];
  const logger = { info: (fields: object) => void lines.push(fields) };
  const logging = driverOver(over.double.url, { logger });
  await logging.execute(authorize(), keepIt);
  expect(lines).toEqual([]);
  const declined = authorize('4000000000000002');
  await logging.execute(declined, keepIt);
  for (const [step, fault] of [
    ['open', '401'],
    ['confirm', 'another amount'],
    ['confirm', 'reset after acting'],
  ] as const) {
    over.double.plan(step, fault);
    await logging.execute(authorize(), keepIt);
  }
  await logging.close();
  const { paymentId } = declined;
  const requestIds = [expect.stringMatching(/^req_double_\d+$/)];
  expect(lines).toMatchObject([
    { paymentId, operation: 'AUTHORIZE', outcome: 'DECLINED', requestIds },
    { outcome: 'NOT_SENT', reason: 'unauthorized', requestIds },
    { outcome: 'UNKNOWN', reason: 'mismatch', requestIds },
    { outcome: 'UNKNOWN', reason: 'broken', requestIds },
  ]);
  for (const { headers } of over.double.received)
    expect(headers['user-agent']).toMatch(/^payments\/\d+\.\d+\.\d+$/);
});

describe('a create', () => {
  test('keeps the PaymentIntent before it sends the card, and sends the confirm once', async () => {
    const kept: string[] = [];
    await over.provider.execute(authorize(), async (reference) => {
      kept.push(reference);
      expect(stepsAt(over.double)).toEqual(['open']);
      expect(over.double.books.intents.get(reference)?.latest_charge).toBeNull();
    });
    expect(kept).toHaveLength(1);
    expect(stepsAt(over.double)).toEqual(['open', 'confirm']);
  });

  test.each<[string, string, number, (late: Promise<void>) => Promise<void>]>([
    ['cannot be kept', 'not_opened', 5_000, lost],
    ['is not kept in time', 'not_opened', 200, (late) => late],
    ['is kept with little of its time left', 'too_late', 1_000, () => wait(820)],
  ])('whose reference %s is never sent', async (_how, reason, timeoutMs, keep) => {
    const quick = driverOver(over.double.url, { timeoutMs });
    const late = Promise.withResolvers<void>();
    const response = await quick.execute(authorize(), () => keep(late.promise));
    expect(response).toMatchObject({ outcome: 'NOT_SENT', reason });
    late.resolve();
    await quick.close();
    expect(stepsAt(over.double)).not.toContain('confirm');
  });

  const LOW = { advice: 'RETRY_LATER', networkDeclineCode: '51', networkAdviceCode: '02' };
  test.each([
    ['4000000000000002', 'CARD_DECLINED', 'generic_decline', {}],
    ['4000000000009995', 'INSUFFICIENT_FUNDS', 'insufficient_funds', LOW],
    ['4000000000009987', 'LOST_CARD', 'lost_card', { advice: 'DO_NOT_RETRY' }],
    ['4000000000009979', 'STOLEN_CARD', 'stolen_card', {}],
    ['4000000000000069', 'EXPIRED_CARD', 'expired_card', {}],
    ['4000000000000127', 'INCORRECT_CVV', 'incorrect_cvc', { advice: 'CORRECT_DATA' }],
    ['4000000000000119', 'PROCESSING_ERROR', 'processing_error', {}],
    ['4000002760003184', 'AUTHENTICATION_REQUIRED', 'authentication_required', {}],
  ])('%s is declined with %s, gaps §23: with the advice of Stripe', async (...row) => {
    const [number, failureCode, providerFailureCode, advice] = row;
    const operation = authorize(number);
    const { provider } = over;
    const { outcome, reference } = await executed(provider, operation);
    const declined = { outcome: 'DECLINED', failureCode, providerFailureCode, ...advice };
    const question = questionOf(operation, reference);
    const said = [outcome, await provider.lookUp(question), await provider.fence(question)];
    expect(said).toEqual([declined, declined, declined]);
  });

  test('gaps §24: the end of an authorization is that of capture_before, at once and when asked later', async () => {
    const operation = authorize();
    const { outcome, reference = '' } = await executed(over.provider, operation);
    const { created } = over.double.books.intents.get(reference) ?? { created: 0 };
    const authorizationExpiresAt = new Date((created + 7 * 86_400) * 1000).toISOString();
    expect(outcome).toMatchObject({ outcome: 'APPROVED', authorizationExpiresAt });
    expect(await over.provider.lookUp(questionOf(operation, reference))).toEqual(outcome);
    const sale = await execute(authorize(undefined, { kind: 'SALE' }));
    expect(sale).not.toHaveProperty('authorizationExpiresAt');
  });

  test('gaps §22: Stripe keeps the metadata and the reference, and none in place of our own', async () => {
    const metadata = { order: '7', empty: '', paymentId: 'x', captureOperationId: 'x' };
    const operation = authorize(undefined, { merchantReference: 'order-7', metadata });
    const { operationId, paymentId } = operation;
    expect(await execute(operation)).toMatchObject({ outcome: 'APPROVED' });
    const own = { fencedOperationId: 'none', operationId, paymentId };
    const kept = { ...own, order: '7', merchantReference: 'order-7' };
    expect(intents().at(-1)?.metadata).toEqual(kept);
    expect(over.double.received[0]?.params.get('description')).toBe('order-7');
  });

  const address = { street: '1 Main St', city: 'Boise', state: 'ID', zip: '83702', country: 'us' };
  test.each<[string, object, Record<string, string>]>([
    [
      'a whole one is sent',
      address,
      { line1: '1 Main St', city: 'Boise', state: 'ID', postal_code: '83702', country: 'US' },
    ],
    ['what is empty is left out', { street: '', country: 'us' }, { country: 'US' }],
  ])(
    'an address: %s; an e-mail that Stripe would reject is left out',
    async (_how, given, fields) => {
      for (const email of ['jane.doe+shop@example.com', 'jane@doe@example.com']) {
        const consumer = { firstName: 'Jane', email };
        const operation = authorize(RAW, { billing: { address: given }, consumer });
        expect(await execute(operation)).toMatchObject({ outcome: 'APPROVED' });
        const made = over.double.received.findLast(({ step }) => step === 'method');
        const sent = [...(made?.params ?? [])].filter(([name]) =>
          name.startsWith('billing_details'),
        );
        const expected = Object.entries(fields).map(([name, value]) => [
          `billing_details[address][${name}]`,
          value,
        ]);
        const mail = email.includes('+') ? [['billing_details[email]', email]] : [];
        expect(sent).toEqual([['billing_details[name]', 'Jane Doe'], ...mail, ...expected]);
      }
    },
  );

  test('a wrong check digit is the card’s, and an account without raw numbers misconfigured: no confirm', async () => {
    const raw = driverOver(over.double.url, { testTokens: false });
    expect(await raw.execute(authorize('4242424242424241'), keepIt)).toMatchObject({
      outcome: 'DECLINED',
      failureCode: 'INVALID_CARD_NUMBER',
    });
    over.double.rejectRawCards();
    expect(await raw.execute(authorize(), keepIt)).toEqual(neverSent('misconfigured'));
    await raw.close();
    expect(stepsAt(over.double)).not.toContain('confirm');
  });

  test.each(['parameter_unknown', 'testmode_charges_only', 'capability_not_active', undefined])(
    'a 400 that is a fault of the account or of ours (%s) declines no card',
    async (code) => {
      for (const step of ['open', 'method', 'confirm'] as const) {
        over.double.reject(step, code);
        expect(await execute(authorize(RAW))).toEqual(neverSent('misconfigured'));
      }
      const { operation, authorizationReference } = await authorized();
      over.double.reject('capture', code);
      const capture = followUp('CAPTURE', operation, { authorizationReference });
      expect(await execute(capture)).toEqual(neverSent('misconfigured'));
    },
  );

  test.each([
    ['open', 'amount_too_small', 'LIMIT_EXCEEDED'],
    ['method', 'invalid_expiry_year', 'EXPIRED_CARD'],
    ['confirm', 'card_of_another_kind', 'UNKNOWN_DECLINE'],
    ['confirm', 'payment_intent_action_required', 'AUTHENTICATION_REQUIRED'],
  ] as const)('a 400 at %s for the card or the amount (%s) is a decline', async (...row) => {
    const [step, code, failureCode] = row;
    over.double.reject(step, code);
    const declined = { outcome: 'DECLINED', failureCode, providerFailureCode: code };
    expect(await execute(authorize(RAW))).toEqual(declined);
  });

  test('an open that names what does not exist is never sent: nothing was confirmed', async () => {
    over.double.plan('open', 'another id');
    expect(await execute(authorize())).toEqual(neverSent('misconfigured'));
    expect(intents().map((intent) => intent.latest_charge)).toEqual([null]);
  });

  test('only a Stripe that is away counts for the circuit breaker', async () => {
    await over.double.close();
    const unreachable = { outcome: 'NOT_SENT', reason: 'unreachable' };
    expect(await execute(authorize())).toEqual(unreachable);
    over.double = await stripeDouble();
  });
});

test('a change without the PaymentIntent of its authorization is not sent, and search is not asked for it', async () => {
  const { operation } = await authorized();
  for (const kind of ['CAPTURE', 'VOID', 'REFUND'] as const) {
    const change = followUp(kind, operation);
    expect((await execute(change)).outcome).toBe('NOT_SENT');
    expect((await over.provider.fence(questionOf(change))).outcome).toBe('UNKNOWN');
  }
  expect(stepsAt(over.double)).toEqual(['open', 'confirm']);
});

describe('a void', () => {
  type Payment = Awaited<ReturnType<typeof authorized>>;
  const voidOf = ({ operation, authorizationReference }: Payment) =>
    followUp('VOID', operation, { authorizationReference });
  /** Named on its PaymentIntent, and its cancel was never sent. */
  const cutOff = async (payment: Payment) => {
    over.double.plan('cancel', '429 rate_limit');
    const first = voidOf(payment);
    expect((await execute(first)).outcome).toBe('NOT_SENT');
    return first;
  };
  const voidsInLedger = async () =>
    (await over.provider.ledger(null, 100)).entries
      .filter(({ kind }) => kind === 'VOID')
      .map(({ operationId }) => operationId);

  test('that was never sent is not what a later void carried out', async () => {
    const payment = await authorized();
    const first = await cutOff(payment);
    const second = voidOf(payment);
    expect((await execute(second)).outcome).toBe('APPROVED');
    expect(await over.provider.lookUp(questionOf(first))).toEqual({ outcome: 'NOT_FOUND' });
    expect(await over.provider.fence(questionOf(first))).toEqual({ outcome: 'FENCED' });
    expect((await over.provider.lookUp(questionOf(second))).outcome).toBe('APPROVED');
    expect(await voidsInLedger()).toEqual([second.operationId]);
  });

  test('that was carried out reads so, also where the name of an earlier one came late', async () => {
    const payment = await authorized();
    const own = voidOf(payment);
    over.double.plan('cancel', 'reset after acting');
    expect((await execute(own)).outcome).toBe('UNKNOWN');
    const name = new Map([['metadata[voidOperationId]', 'op_earlier']]);
    over.double.books.update(payment.reference, name);
    expect(await askOnce(over.provider, questionOf(own))).toBe('APPROVED');
  });

  test.each(['automatic', 'expired'])(
    'that was never sent is not what Stripe itself canceled (%s)',
    async (reason) => {
      const payment = await authorized();
      const first = await cutOff(payment);
      over.double.books.dashboard.cancel(payment.reference, reason);
      expect(await askOnce(over.provider, questionOf(first))).toBe('FENCED');
      const declined = { outcome: 'DECLINED', failureCode: 'TRANSACTION_NOT_PERMITTED' };
      expect(await execute(voidOf(payment))).toMatchObject(declined);
      expect(await voidsInLedger()).toEqual([]);
    },
  );

  test('of what was canceled in the Dashboard is approved: nothing else tells the log of it', async () => {
    const payment = await authorized();
    over.double.books.dashboard.cancel(payment.reference, 'duplicate');
    const own = voidOf(payment);
    expect((await execute(own)).outcome).toBe('APPROVED');
    expect(await voidsInLedger()).toEqual([own.operationId]);
  });
});

describe('a look-up', () => {
  test('a refund on the second page of a hundred is found', async () => {
    const { operation, authorizationReference } = await sold();
    const first = followUp('REFUND', operation, { authorizationReference, amount: 1 });
    await execute(first);
    for (let more = 0; more < 120; more += 1)
      over.double.books.dashboard.refund(authorizationReference, 1);
    expect((await over.provider.lookUp(questionOf(first))).outcome).toBe('APPROVED');
  });

  test("another operation's capture is not this one's", async () => {
    const { operation, authorizationReference } = await authorized();
    await execute(followUp('CAPTURE', operation, { authorizationReference }));
    const other = followUp('CAPTURE', operation, { authorizationReference });
    expect((await over.provider.lookUp(questionOf(other))).outcome).toBe('NOT_FOUND');
    expect((await over.provider.fence(questionOf(other))).outcome).toBe('FENCED');
  });

  test('a payment of another provider is not guessed about', async () => {
    const other = questionOf(authorize(), 'sim_1');
    expect((await over.provider.lookUp(other)).outcome).toBe('UNKNOWN');
    expect((await over.provider.fence(other)).outcome).toBe('UNKNOWN');
  });
});

test.each([
  ['Example Shop', 'Example Sh'],
  [`<A>'"*\\ b`, 'A b'],
  ['Café ™', 'Cafe TM'],
  ['1234567', undefined],
  ['日本', undefined],
  [undefined, undefined],
])('the descriptor %p is sent as %p', (descriptor, suffix) => {
  expect(suffixOf(descriptor)).toBe(suffix);
});
