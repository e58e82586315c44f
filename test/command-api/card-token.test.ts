/** gaps §14: a token of the provider's in place of the card number. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { TEST_CARDS } from '../../providers/simulator/test-cards.ts';
import { createLogger } from '../../shared/runtime/log.ts';
import { providerHere } from '../support/provider-here.ts';
import {
  expectError,
  idOf,
  locatedId,
  NO_RETRIES,
  openInProcess,
  PAYMENTS,
  payment,
  serviceOfTests,
  storedTexts,
} from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const service = await serviceOfTests();
afterEach(() => {
  service.faults.respondsToLookUps = true;
});

const byToken = (card: object = {}, fields: object = {}) =>
  payment({
    ...fields,
    paymentMethod: { type: 'CARD', card: { token: 'tok_visa', holderName: 'Jane Doe', ...card } },
  });
const create = (card?: object, fields?: object, key?: string) =>
  service.ask('POST', PAYMENTS, byToken(card, fields), key === undefined ? {} : { key });

test('the card is shown as the provider describes it, and the payment goes on as any other', async () => {
  const response = await create();
  expect(response.status).toBe(200);
  const card = {
    bin: '42424242',
    last4: '4242',
    holderName: 'Jane Doe',
    cvvPresentDuringAttempt: false,
    expiryMonth: '12',
    expiryYear: '2034',
    brand: 'VISA',
  };
  const { last4: _, ...encryptedCard } = card;
  expect(response.json.paymentMethod).toEqual({ type: 'CARD', card, encryptedCard });
  expect((await service.change('capture', idOf(response))).status).toBe(200);
});

const DECLINED = TEST_CARDS.filter(
  ({ token, failureCode, behaviour }) => token && failureCode && !behaviour,
);
test.each(DECLINED)(
  '$token is declined as $number: $failureCode',
  async ({ token, failureCode }) => {
    const { status, json } = await create({ token });
    expect([status, json.failure?.failureCode]).toEqual([402, failureCode]);
  },
);

test.each([
  // Never sent, fenced where it was never carried out, found where it was.
  ['tok_unreachable', 'FAILED'],
  ['tok_never_carried_out', 'FAILED'],
  ['tok_answer_lost', 'AUTHORIZED'],
] as const)('%s: 503, and once recovery has asked the payment is %s', async (token, expected) => {
  const quick = { PROVIDER_TIMEOUT_MS: '800', RECOVERY_DELAYS_MS: '20' };
  await using hasty = await openInProcess(quick);
  const response = await hasty.ask('POST', PAYMENTS, byToken({ token }));
  expect(response.status).toBe(503);
  const statusNow = async () => (await hasty.get(locatedId(response))).json.status;
  await until('the outcome is known', async () => (await statusNow()) !== 'PENDING');
  expect(await statusNow()).toBe(expected);
});

describe('the shape', () => {
  const BOTH = ' must hold either number or token';
  const SHAPE = '.token must be 1 to 255 of A-Z a-z 0-9 _ -';
  test.each<[string, object, string]>([
    ['a number beside it', { number: '4242424242424242' }, BOTH],
    ['a CVV beside it', { cvv: '123' }, BOTH],
    ['an expiry beside it', { expiryMonth: '12', expiryYear: '2030' }, BOTH],
    ['an empty one', { token: '' }, '.token is required'],
    ['other characters', { token: 'tok visa' }, SHAPE],
    ['more than 255', { token: 'x'.repeat(256) }, SHAPE],
    ['no text', { token: 7 }, '.token must be a string'],
    ['no holder', { holderName: undefined }, '.holderName is required'],
    ['one that is not known', { token: 'tok_nobody' }, '.token is not known'],
  ])('400: %s', async (_name, card, detail) => {
    const before = await service.ledger();
    expectError(await create(card), 400, 'INVALID_REQUEST', [`paymentMethod.card${detail}`]);
    expect(await service.ledger()).toEqual(before);
  });

  test('neither of the two is a missing number', async () => {
    expectError(await create({ token: null }), 400, 'INVALID_REQUEST', [
      'paymentMethod.card.number is required',
      'paymentMethod.card.expiryMonth is required',
      'paymentMethod.card.expiryYear is required',
    ]);
  });

  test('400: another field holds a number that the body spells as one', async () => {
    const number = '4012888888881881';
    const response = await create({}, { descriptor: number, other: { number } });
    const held = ['descriptor must not hold the card number'];
    expectError(response, 400, 'INVALID_REQUEST', held);
  });
});

describe("S6: the number of the token's card in a text beside it is 400, and nothing is stored", () => {
  const NUMBER = '4242424242424242';
  const holds = (field: string) => [`${field} must not hold the card number`];
  const JSON_NUMBER = [{ attemptNumber: Number(NUMBER) }];
  test.each<[fields: object, ...holding: string[]]>([
    [{ merchantReference: `r-${NUMBER}` }, 'merchantReference'],
    // In other digits, and another number with its first six and last four ones.
    [{ descriptor: '４２４２４２４２４２４２４２４２' }, 'descriptor'],
    [{ descriptor: '424242994242' }, 'descriptor'],
    [{ metadata: { note: `no ${NUMBER}` } }, 'metadata.note'],
    [{ x: [{ y: NUMBER }] }, 'an unknown field'],
    [{ [NUMBER]: 1 }, 'an unknown field'],
    [{ previousFailures: JSON_NUMBER }, 'previousFailures[0].attemptNumber'],
    [{ descriptor: NUMBER, merchantReference: NUMBER }, 'descriptor', 'merchantReference'],
    [{ holderName: '4242 4242 4242 4242' }, 'paymentMethod.card.holderName'],
  ])('%j', async ({ holderName, ...fields }: { holderName?: string }, ...holding) => {
    const card = holderName === undefined ? {} : { holderName };
    const kept = async () => [await service.ledger(), (await service.ask('GET', PAYMENTS)).text];
    const before = await kept();
    const response = await create(card, fields, 'searched');
    expectError(response, 400, 'INVALID_REQUEST', response.json.details);
    expect(response.json.details.sort()).toEqual(holding.flatMap(holds));
    expect(await kept()).toEqual(before);
    expect(storedTexts(service).filter((text) => text.includes(NUMBER))).toEqual([]);
  });

  test('the Idempotency-Key', async () => {
    const keyed = await create({}, {}, `k-${NUMBER}`);
    expectError(keyed, 400, 'INVALID_REQUEST', holds('Idempotency-Key'));
  });

  test.each([
    ['another card', { descriptor: '5555555555554444' }],
    ['its first six without its last four', { descriptor: '424242000000' }],
    ['11 digits', { descriptor: '42424200424' }],
  ])('%s is no number of it', async (_name, fields) => {
    expect((await create({}, fields)).status).toBe(200);
  });

  test('where the provider tells no first six, any 12 to 19 digits that end with the last four', async () => {
    await using blind = await openInProcess(NO_RETRIES, undefined, {
      provider: (own) => ({
        ...own,
        describeToken: async (token, merchantId) => {
          const described = await own.describeToken(token, merchantId);
          return described.outcome === 'DESCRIBED' ? { ...described, bin: undefined } : described;
        },
      }),
    });
    const send = (descriptor: string) => blind.ask('POST', PAYMENTS, byToken({}, { descriptor }));
    expectError(await send('555555004242'), 400, 'INVALID_REQUEST', holds('descriptor'));
    expect((await send('555555004243')).status).toBe(200);
    expect((await send('42424242')).status).toBe(200);
  });

  test('a token that ends as the card does is itself no text beside it', async () => {
    await using blind = await openInProcess(NO_RETRIES, undefined, {
      provider: (own) => ({
        ...own,
        describeToken: (_token, merchantId) => own.describeToken('tok_visa', merchantId),
      }),
    });
    const { status } = await blind.ask('POST', PAYMENTS, byToken({ token: NUMBER }));
    expect(status).not.toBe(400);
  });
});

test('503 where the provider cannot be asked for the card: nothing is stored', async () => {
  service.faults.respondsToLookUps = false;
  const response = await create({}, {}, 'asked-in-vain');
  expectError(response, 503, 'PROVIDER_UNAVAILABLE', [
    'the provider could not be asked for the card of the token; nothing was stored',
  ]);
  expect(response.headers.location).toBeUndefined();
  service.faults.respondsToLookUps = true;
  const again = await create({}, {}, 'asked-in-vain');
  expect([again.status, again.headers['idempotent-replayed']]).toEqual([200, undefined]);
});

test('over HTTP the provider is asked for the card; the log has nothing of it', async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'log');
  const { log, flush } = createLogger({ level: 'trace', destination: { file } });
  const provider = await providerHere(join(folder.path, 'ledger.sqlite'));
  await using own = await openInProcess({ ...NO_RETRIES, PROVIDER_URL: provider.url }, log);
  const send = (token: string) => own.ask('POST', PAYMENTS, byToken({ token }));
  const made = await send('tok_visa');
  const card = { bin: '42424242', last4: '4242', expiryYear: '2034', brand: 'VISA' };
  expect(made.json.paymentMethod).toMatchObject({ card });
  expect((await own.change('capture', idOf(made))).status).toBe(200);
  expect((await send('tok_declined')).json.failure?.failureCode).toBe('CARD_DECLINED');
  expectError(await send('tok_nobody'), 400, 'INVALID_REQUEST', [
    'paymentMethod.card.token is not known',
  ]);
  await provider[Symbol.asyncDispose]();
  const before = storedTexts(own).length;
  expectError(await send('tok_visa'), 503, 'PROVIDER_UNAVAILABLE', [
    'the provider could not be asked for the card of the token; nothing was stored',
  ]);
  expect(storedTexts(own)).toHaveLength(before);
  flush();
  const text = readFileSync(file, 'utf8');
  expect(text).toContain(idOf(made));
  for (const trace of ['tok_', '42424242', 'last4', 'expiry']) expect(text).not.toContain(trace);
  folder.remove();
});

describe('gaps §8: a repeat under a key', () => {
  test('is given from the events, without asking the provider for the card again', async () => {
    const first = await create({}, {}, 'token-1');
    service.faults.respondsToLookUps = false;
    const again = await create({}, {}, 'token-1');
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(await service.ledger(idOf(first))).toHaveLength(1);
  });

  test.each([
    ['another token of the same card', { token: 'tok_slow' }],
    ['another holder', { holderName: 'John Doe' }],
    ['another brand', { brand: 'MASTERCARD' }],
  ])('%s is another request', async (_name, card) => {
    await create({}, {}, 'token-2');
    const { status, json } = await create(card, {}, 'token-2');
    expect([status, json.error]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
  });
});

test('brand rules are judged on what the provider says, whatever the request says', async () => {
  await using strict = await openInProcess({ ACCEPTED_BRANDS: 'MASTERCARD' });
  const send = (token: string) =>
    strict.ask('POST', PAYMENTS, byToken({ token, brand: 'MASTERCARD' }));
  expectError(await send('tok_visa'), 422, 'BUSINESS_RULE_VIOLATION', [
    'paymentMethod.card must be one of MASTERCARD',
  ]);
  expect((await send('tok_mastercard')).status).toBe(200);
});

test('the token is in no file of the data folder', async () => {
  await create({ token: 'tok_mastercard' });
  const texts = storedTexts(service);
  expect(texts.some((text) => text.includes('PaymentCreated'))).toBe(true);
  expect(texts.filter((text) => text.includes('tok_mastercard'))).toEqual([]);
});
