/** A merchant's own names and values at a payment (gaps §22). */
import { describe, expect, test } from '@jest/globals';
import {
  APPROVED,
  idOf,
  NO_RETRIES,
  PAYMENTS,
  serviceOfTests,
} from '../support/service-in-process.ts';

const service = await serviceOfTests(NO_RETRIES);

const namesOf = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`name-${n}`, 'x']));
const NOT_ALLOWED = ['metadata has a name that is not allowed'];

describe('gaps §22: which metadata is kept', () => {
  test.each<[string, object]>([
    ['an empty value', { empty: '' }],
    ['every kind of character in a name', { 'Az0_-': 'x', constructor: 'x', number: '7' }],
    ['20 names', namesOf(20)],
    ['a name of 40 and a value of 255', { ['n'.repeat(40)]: 'v'.repeat(255) }],
    ['an @ that is no address', { at: '@home', price: '3 @ 5', end: 'x@' }],
    ['what is no text elsewhere', { emoji: '💳', text: 'é\n"' }],
  ])('%s', async (_title, metadata) => {
    const response = await service.create({ metadata });
    expect([response.status, response.json.metadata]).toEqual([200, metadata]);
    const shown = await service.get(idOf(response));
    expect(shown.text).toBe(response.text);
  });

  test.each([undefined, null, {}])('%j is absent', async (metadata) => {
    const response = await service.create({ metadata });
    expect(response.status).toBe(200);
    expect(response.json).not.toHaveProperty('metadata');
  });

  test('lists and the body of a 402 carry it', async () => {
    const metadata = { shop: 'north' };
    const declined = await service.create({ number: '4000000000000002', metadata });
    expect([declined.status, declined.json.metadata]).toEqual([402, metadata]);
    const { json } = await service.ask('GET', `${PAYMENTS}?limit=1`);
    expect(json).toMatchObject({ payments: [{ metadata }] });
  });

  test('its names come in one order, also after a restart', async () => {
    const metadata = { b: '1', '10': '2', a: '3', '2': '4' };
    const response = await service.create({ metadata });
    expect(Object.keys(response.json.metadata as object)).toEqual(['2', '10', 'a', 'b']);
    await service.restart();
    expect((await service.get(idOf(response))).text).toBe(response.text);
  });
});

describe('gaps §22: which metadata is 400', () => {
  test.each<[string, unknown, string[]]>([
    ['no object', 'x', ['metadata must be an object']],
    ['a list', [{}], ['metadata must be an object']],
    ['21 names', namesOf(21), ['metadata must have at most 20 names']],
    ['an empty name', { '': 'x' }, NOT_ALLOWED],
    ['a name of 41', { ['n'.repeat(41)]: 'x' }, NOT_ALLOWED],
    ['a name with a dot, beside another fault', { 'a.b': 1, order: 1 }, NOT_ALLOWED],
    ['a name that may be a card', { '5555-5555_55554444': 'x' }, NOT_ALLOWED],
    ['__proto__', JSON.parse('{"__proto__":"x"}'), NOT_ALLOWED],
    ['a number', { order: 7 }, ['metadata.order must be a string']],
    ['null', { order: null }, ['metadata.order must be a string']],
    ['an object', { order: {} }, ['metadata.order must be a string']],
    ['256', { order: 'x'.repeat(256) }, ['metadata.order must be at most 255 characters']],
    ['an e-mail address', { x: 'to jane@example.com' }, ['metadata.x must not hold personal data']],
    ['the card', { x: `no ${APPROVED}` }, ['metadata.x must not hold the card number']],
    [
      'the card in blocks',
      { number: '4242 4242 4242 4242' },
      ['metadata.number must not hold the card number'],
    ],
    [
      'another number spelled as one',
      { number: '5555555555554444' },
      ['metadata.number must not hold the card number'],
    ],
  ])('%s', async (_title, metadata, details) => {
    const response = await service.create({ metadata });
    expect([response.status, response.json.details]).toEqual([400, details]);
  });

  test('beside other faults it stands last, and a misspelt name is told', async () => {
    const two = await service.create({ amount: 0, metadata: { a: 1, b: 'x@y' } });
    expect(two.json.details).toEqual([
      'amount must be a positive integer',
      'metadata.a must be a string',
      'metadata.b must not hold personal data',
    ]);
    const { json } = await service.create({ Metadata: { a: 'x' } });
    expect(json.details).toEqual(['metadata is misspelled']);
  });
});

test('gaps §22: it is part of the same request where it is there, whatever its order', async () => {
  const first = await service.create({ metadata: { a: '1', b: '2' } }, { key: 'metadata' });
  const again = await service.create({ metadata: { b: '2', a: '1' } }, { key: 'metadata' });
  expect(again.text).toBe(first.text);
  const other = await service.create({ metadata: { a: '1' } }, { key: 'metadata' });
  expect([other.status, other.json.error]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
  const plain = await service.create({}, { key: 'no-metadata' });
  expect((await service.create({ metadata: {} }, { key: 'no-metadata' })).text).toBe(plain.text);
});
