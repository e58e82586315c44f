/** Which create requests are read, what is kept of them, and what the details of a 400 say (gaps §3, §4). */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { AMOUNTS } from '../../command-api/request/json.ts';
import { parseCreate } from '../../command-api/request/payment-request.ts';
import { paymentDetails } from '../../shared/payment/fields.ts';
import { parseText, textOf } from '../../shared/runtime/json.ts';
import { propertyRuns } from '../support/property-runs.ts';

const NUMBER = '4242424242424242';
const card = { number: NUMBER, holderName: 'Ada L', expiryMonth: '12', expiryYear: '2030' };
const smallest = { amount: 1500, currency: 'USD', paymentMethod: { type: 'CARD', card } };

const failure = { gateway: 'g', attemptNumber: 1, responseCode: '05', reason: 'r' };
const whole = {
  ...smallest,
  paymentMethod: { type: 'CARD', card: { ...card, cvv: '123', brand: 'VISA' } },
  captureNow: true,
  descriptor: 'SHOP',
  merchantReference: 'order-1',
  goodsType: 'MIXED',
  productItems: [{ id: '1', name: 'Tea', quantity: 1, unitPrice: 1500, goodsType: 'PHYSICAL' }],
  consumer: { firstName: 'Ada', lastName: 'L', email: 'a@b.c', phone: '+1', ip: '203.0.113.7' },
  billing: { address: { street: 's', city: 'c', country: 'US', state: 'CA', zip: 'z' } },
  shipping: { address: { street: 's' }, firstName: 'Ada', lastName: 'L' },
  previousFailures: [{ ...failure, timestamp: '2026-01-31T10:00:00.000Z' }],
  source: { storeId: 's1', initiatedBy: 'CONSUMER', externalMerchantId: 'm' },
};

type Path = readonly (string | number)[];
const CARD_PATH: Path = ['paymentMethod', 'card'];
/** The value with something else at a path; `undefined` takes the field out, as JSON would. */
const changed = (value: object, path: Path, to: unknown): unknown => {
  const copy = structuredClone(value);
  let at = copy as Record<string | number, unknown>;
  for (const step of path.slice(0, -1)) at = at[step] as typeof at;
  at[path.at(-1) as string] = to;
  return JSON.parse(JSON.stringify(copy));
};

const details = (result: { ok: boolean; details?: string[] }) =>
  result.ok ? 'accepted' : result.details;
const created = (value: unknown, key?: string) => {
  const result = parseCreate(value, key);
  if (!result.ok) throw new Error(result.details.join('; '));
  return result.request;
};
const parsedText = (text: string) => {
  const parsed = parseText(textOf(Buffer.from(text)), AMOUNTS);
  if (!parsed.ok) throw new Error('not JSON');
  return parsed;
};
/** The JSON value of a text that is a whole body. */
const json = (text: string) => parsedText(text).value;
const detailsOfText = (text: string) => {
  const { value, repeated } = parsedText(text);
  return details(parseCreate(value, undefined, text, repeated));
};

describe('gaps §3: amounts are JSON integers from 1', () => {
  const amountOf = (literal: string) => {
    const body = JSON.stringify(smallest).replace('1500', literal);
    const result = parseCreate(json(body));
    return result.ok ? result.request.amount : result.details;
  };

  test.each([
    ['1', 1],
    ['1e3', 1000],
    ['1E+3', 1000],
    ['1500e-2', 15],
    ['99999999', 99_999_999],
    ['9007199254740991', 9_007_199_254_740_991],
  ])('%s is %d', (literal, amount) => {
    expect(amountOf(literal)).toBe(amount);
  });

  test.each(['9007199254740992', '9007199254740993', '1e300', '9'.repeat(400)])(
    '%s is above every maximum, for the business rules to refuse',
    (literal) => {
      expect(amountOf(literal)).toBe('too large');
    },
  );

  test.each(['0', '-1', '1e-1', '1e400', 'true', '"100"', '"25.00"', '[1]', '[25.00]', '{}'])(
    '%s is refused',
    (literal) => {
      expect(amountOf(literal)).toEqual(['amount must be a positive integer']);
    },
  );

  const IN_MINOR_UNITS = 'amount must be a positive integer of minor units: 2500 is 25 dollars';

  test.each([
    '25.00',
    '1.5',
    '-25.00',
    '0.0',
    '100.00000000000000001',
    '9007199254740993.5',
    '1.5e3',
    '1.0e400',
    '0.99999999999999999999',
    `${'1'.repeat(300)}.0`,
  ])('%s is refused for its decimal point, whatever digits follow it', (literal) => {
    expect(amountOf(literal)).toEqual([IN_MINOR_UNITS]);
  });

  test('a decimal point is noticed whatever white space surrounds it, and however the name is written', () => {
    const spaced = JSON.stringify(smallest).replace(':1500', '\t:\r\n 100.00000000000000001');
    expect(detailsOfText(spaced)).toEqual([IN_MINOR_UNITS]);
    const escaped = spaced.replace('"amount"', '"\\u0061moun\\u0074"');
    expect(detailsOfText(escaped)).toEqual([IN_MINOR_UNITS]);
  });
});

test('gaps §3: only the amount itself must have no decimal point, and no key of that name elsewhere', () => {
  const text = JSON.stringify(whole)
    .replace('"unitPrice":', '"amount":25.00,"unitPrice":')
    .replace(/"unitPrice":(\d+)/, '"unitPrice":$1.00')
    .replace(/^\{/, '{"x":{"amount":25.00,"captureAmount":5.0},');
  expect(text).toMatch(/"unitPrice":\d+\.00/);
  expect(created(json(text))).toEqual(created(whole));
});

describe('gaps §3: a name that is a field of the contract but for its spelling', () => {
  const captureNow = ['captureNow is misspelled'];
  const merchantReference = ['merchantReference is misspelled'];
  test.each<[string, unknown, string[]]>([
    ['capturenow', true, captureNow],
    ['Capture-Now', true, captureNow],
    ['captureNow_', null, captureNow],
    ['capture-now', { any: 'value' }, captureNow],
    ['Currency', 'USD', ['currency is misspelled']],
    ['payment_method', {}, ['paymentMethod is misspelled']],
    ['productitems', [], ['productItems is misspelled']],
    // One letter is missing, added or changed.
    ['captureNw', true, captureNow],
    ['aptureNow', true, captureNow],
    ['captureNo', null, captureNow],
    ['captureNoww', { any: 'value' }, captureNow],
    ['xcaptureNow', true, captureNow],
    ['captureMow', 'x', captureNow],
    ['capture_nw', true, captureNow],
    ['captureNoé', true, captureNow],
    ['merchantRefrence', 'order-1', merchantReference],
    ['merchantReferences', 'order-1', merchantReference],
    ['currencv', 'USD', ['currency is misspelled']],
    ['shippinng', {}, ['shipping is misspelled']],
    ['metadat', {}, ['metadata is misspelled']],
    // What others call it.
    ['capture', true, captureNow],
    ['autoCapture', false, captureNow],
    ['auto_capture', true, captureNow],
  ])('%s as %j is %j', (name, value, expected) => {
    expect(details(parseCreate({ ...whole, [name]: value }))).toEqual(expected);
    expect(details(parseCreate({ ...smallest, [name]: value }))).toEqual(expected);
  });

  test('is the one entry of that field, before those of the others', () => {
    const { currency: _, paymentMethod: __, ...rest } = smallest;
    const body = { ...rest, amount: 0, Currency: 'usd', payment_method: null, capturenow: 'x' };
    expect(details(parseCreate({ ...body, captureNow: 5 }))).toEqual([
      'currency is misspelled',
      'paymentMethod is misspelled',
      'captureNow is misspelled',
      'amount must be a positive integer',
    ]);
  });

  test('is found in a request with a token of the provider too', () => {
    const paymentMethod = { type: 'CARD', card: { token: 'tok_visa', holderName: 'Ada' } };
    const body = { ...smallest, paymentMethod, capture_now: true };
    expect(details(parseCreate(body))).toEqual(captureNow);
    const both = { ...paymentMethod, card: { ...paymentMethod.card, number: '4242424242424242' } };
    expect(details(parseCreate({ ...body, paymentMethod: both }))).toEqual([
      ...captureNow,
      'paymentMethod.card must hold either number or token',
    ]);
  });

  test.each([
    ...['x', 'captureNowPlease', 'capture now', 'encryptedCard', '_', ''],
    ...['captureN', 'captureNwo', 'captureNow2', 'captur', 'captures', 'captureAmount'],
    // Fields of fewer than eight letters.
    ...['amoun', 'amounts', 'bilings', 'sourc', 'billin'],
  ])('%j is no field of it, and is ignored', (name) => {
    expect(created({ ...whole, [name]: true })).toEqual(created(whole));
  });

  test('is looked for at the top level alone', () => {
    const nested = changed(whole, ['consumer', 'First_Name'], 'A');
    expect(created(nested)).toEqual(created(whole));
    expect(created({ ...whole, x: { captureNw: true } })).toEqual(created(whole));
  });
});

describe('gaps §3: a field that says how much money moves stands once', () => {
  const text = JSON.stringify({ ...smallest, captureNow: true });
  test.each([
    ['amount', '"amount":200'],
    ['amount', '"amount":1500'],
    ['amount', '"amount":null'],
    ['amount', '"\\u0061mount":200'],
    ['currency', '"currency" :\n"EUR"'],
    ['captureNow', '"captureNow":false'],
    ['captureNow', '"captureNow":{"a":[1.5]}'],
    ['captureAmount', '"captureAmount":1,"captureAmount":2'],
    ['captureAmount', '"captureAmount":1,"capture_amount":2'],
    ['refundAmount', '"refundAmount":1,"x":{},"REFUNDAMOUNT":2'],
  ])('%s beside %s', (field, more) => {
    expect(detailsOfText(text.replace('{', `{${more},`))).toEqual([`${field} stands twice`]);
    expect(detailsOfText(text.replace(/\}$/, `,${more}}`))).toEqual([`${field} stands twice`]);
  });

  test('is the one entry of that field, and the others keep theirs', () => {
    const broken = text
      .replace('"amount":1500', '"amount":"1","amount":25.00')
      .replace('USD', 'usd');
    expect(detailsOfText(broken)).toEqual([
      'amount stands twice',
      'currency must be three capital letters, as in USD',
    ]);
    expect(detailsOfText(text.replace('{', '{"Amount":1,'))).toEqual(['amount is misspelled']);
  });

  test.each([
    ['another field', '"descriptor":"a","descriptor":"a"'],
    ['a field of an object', '"x":{"amount":1,"amount":2},"y":[{"currency":1,"currency":1}]'],
    ['an unknown field', '"x":1,"x":2'],
    ['a value that reads like one', '"x":"\\"amount\\":1,\\"amount\\":1"'],
  ])('%s may stand twice', (_name, more) => {
    expect(detailsOfText(text.replace('{', `{${more},`))).toBe('accepted');
  });
});

describe('gaps §3: which fields of a create are kept', () => {
  test('the smallest request is an authorization', () => {
    const { amount, currency } = smallest;
    expect(created(smallest)).toEqual({ amount, currency, captureNow: false, card, details: {} });
  });

  test('every field of the contract is kept, the card apart from the others', () => {
    const { amount, currency, captureNow, paymentMethod, ...details } = whole;
    const { card } = paymentMethod;
    expect(created(whole)).toEqual({ amount, currency, captureNow, card, details });
  });

  test('the kept details fit the schema of stored events', () => {
    expect(paymentDetails.safeParse(created(whole).details).success).toBe(true);
  });

  test('unknown fields are dropped at every level, encryptedCard and __proto__ too', () => {
    const odd = json(
      JSON.stringify(whole)
        .replace('{"amount"', '{"__proto__":{"captureNow":false},"x":[{}],"amount"')
        .replace('"card":{', '"encryptedCard":{"bin":"1"},"card":{"x":1,')
        .replace('"address":{', '"firstName":"A","address":{"x":{},'),
    );
    expect(created(odd)).toEqual(created(whole));
  });

  test('null counts as absent at every level', () => {
    const nulls = changed(
      {
        ...{ ...smallest, captureNow: null, consumer: null, source: null },
        ...{ productItems: null, previousFailures: null },
      },
      ['billing'],
      { address: { street: null, city: 'c' } },
    );
    expect(created(nulls).details).toEqual({ billing: { address: { city: 'c' } } });
  });

  test('line1 and postalCode are read as street and zip, which win where both are given', () => {
    const address = { line1: 'old', postalCode: '1', city: 'c' };
    const request = { ...smallest, billing: { address }, shipping: { address } };
    const renamed = { street: 'old', zip: '1', city: 'c' };
    const given = { address: renamed };
    expect(created(request).details).toEqual({ billing: given, shipping: given });
    const both = { ...smallest, billing: { address: { ...address, street: 'new' } } };
    expect(created(both).details.billing?.address.street).toBe('new');
  });

  test('an empty optional reference, CVV or brand is none', () => {
    const empty = { ...card, cvv: '', brand: '' };
    const request = { ...smallest, merchantReference: '' };
    expect(created(changed(request, CARD_PATH, empty))).toEqual(created(smallest));
  });

  test('a listed currency that is not USD is accepted here: the business rules refuse it', () => {
    expect(created({ ...smallest, currency: 'EUR' }).currency).toBe('EUR');
  });

  test('2026-01-31T10:00:00z, an offset and a leap second are date-times', () => {
    for (const timestamp of [
      '2026-01-31T10:00:00z',
      '2024-02-29t10:00:00.123456+02:00',
      '2016-12-31T23:59:60Z',
    ]) {
      expect(parseCreate({ ...smallest, previousFailures: [{ timestamp }] }).ok).toBe(true);
    }
  });
});

const CARD_REQUIRED = [
  'paymentMethod.card.number is required',
  'paymentMethod.card.holderName is required',
  'paymentMethod.card.expiryMonth is required',
  'paymentMethod.card.expiryYear is required',
];
const METHOD_REQUIRED = ['paymentMethod.type is required', ...CARD_REQUIRED];
const ALL_REQUIRED = ['amount is required', 'currency is required', ...METHOD_REQUIRED];

describe('gaps §3: details of a rejected create', () => {
  test.each([
    ['no body', undefined, ALL_REQUIRED],
    ['{}', {}, ALL_REQUIRED],
    ['null', null, ['the body must be a JSON object']],
    ['an array', [], ['the body must be a JSON object']],
  ])('%s as the body', (_name, value, expected) => {
    expect(details(parseCreate(value))).toEqual(expected);
  });

  const CARD = 'paymentMethod.card';
  const ISO_4217 = 'must be a valid ISO 4217 code';
  const CAPITALS = 'must be three capital letters, as in USD';
  const DIGITS = 'must be 12 to 19 digits';
  const DATE_TIME = 'must be a date-time, as in 2026-01-31T08:00:00Z';
  test.each<[path: string, to: unknown, said: string]>([
    ['amount', undefined, 'is required'],
    ['amount', null, 'is required'],
    ['currency', '', 'is required'],
    ['currency', 'usd', CAPITALS],
    ['currency', 'Usd', CAPITALS],
    ['currency', 'dollars', CAPITALS],
    ['currency', 'US', ISO_4217],
    ['currency', 'us$', ISO_4217],
    ['currency', 'USD\n', ISO_4217],
    ['currency', 'ZZZ', ISO_4217],
    ['currency', 840, ISO_4217],
    ['paymentMethod', 'CARD', 'must be an object'],
    ['paymentMethod.type', '', 'is required'],
    ['paymentMethod.type', 1, 'must be a string'],
    [CARD, 7, 'must be an object'],
    [`${CARD}.number`, '', 'is required'],
    [`${CARD}.number`, 4242424242424242, 'must be a string'],
    [`${CARD}.number`, '42424242424', DIGITS],
    [`${CARD}.number`, '4'.repeat(20), DIGITS],
    [`${CARD}.number`, '4242 4242 4242 4242', DIGITS],
    [`${CARD}.expiryMonth`, '13', 'must be MM (01-12)'],
    [`${CARD}.expiryYear`, '30', 'must be YYYY'],
    ['captureNow', 'true', 'must be a boolean'],
    ['descriptor', 5, 'must be a string'],
    ['descriptor', 'x'.repeat(256), 'must be at most 255 characters'],
    ['goodsType', 'FOOD', 'must be one of PHYSICAL, DIGITAL, MIXED'],
    ['productItems', {}, 'must be an array'],
    ['productItems[0]', null, 'must be an object'],
    ['productItems[0].name', undefined, 'is required'],
    ['productItems[0].quantity', 0, 'must be a positive integer'],
    ['productItems[0].unitPrice', 2 ** 53, 'must be at most 9007199254740991'],
    ['productItems[0].goodsType', 'MIXED', 'must be one of PHYSICAL, DIGITAL'],
    ['billing.address.country', 'USA', 'must be a two-letter ISO 3166 code'],
    ['previousFailures[0].attemptNumber', '1', 'must be an integer'],
    ['previousFailures[0].attemptNumber', 2 ** 53, 'must be an integer'],
    ['previousFailures[0].timestamp', '2026-02-30T10:00:00Z', DATE_TIME],
    ['source.initiatedBy', 'BOT', 'must be one of CONSUMER, MERCHANT'],
  ])('%s as %j %s', (path, to, said) => {
    const steps = path.split(/[.[\]]+/).filter((step) => step !== '');
    const at = steps.map((step) => (/^\d+$/.test(step) ? Number(step) : step));
    expect(details(parseCreate(changed(whole, at, to)))).toEqual([`${path} ${said}`]);
  });

  test.each<[path: Path, to: unknown, expected: string[]]>([
    [['paymentMethod'], undefined, METHOD_REQUIRED],
    [['paymentMethod'], {}, METHOD_REQUIRED],
    [['paymentMethod'], { type: 'CARD' }, CARD_REQUIRED],
    [['paymentMethod'], { type: 'CARD', card: null }, CARD_REQUIRED],
    [['paymentMethod'], { type: 'PAYPAL' }, ['paymentMethod.type must be one of CARD']],
    [['consumer'], {}, ['consumer.firstName is required', 'consumer.email is required']],
    [['billing'], {}, ['billing.address is required']],
    [['billing', 'address'], { line1: 5 }, ['billing.address.line1 must be a string']],
    [['source'], {}, ['source.storeId is required']],
  ])('%j as %j: %j', (path, to, expected) => {
    expect(details(parseCreate(changed(whole, path, to)))).toEqual(expected);
  });

  test('several faults give one line for each field, in the order of the contract', () => {
    const value = {
      source: {},
      descriptor: 1,
      paymentMethod: { card: { ...card, number: '', expiryMonth: '0' } },
      amount: 0,
    };
    expect(details(parseCreate(value))).toEqual([
      'amount must be a positive integer',
      'currency is required',
      'paymentMethod.type is required',
      'paymentMethod.card.number is required',
      'paymentMethod.card.expiryMonth must be MM (01-12)',
      'descriptor must be a string',
      'source.storeId is required',
    ]);
  });

  test('255 UTF-16 units and 200 items are allowed, one more of each is not', () => {
    const [item] = whole.productItems;
    const at = (units: number, items: number) =>
      details(
        parseCreate({
          ...smallest,
          descriptor: '😀'.repeat(units / 2) + 'x'.repeat(units % 2),
          productItems: Array(items).fill(item),
        }),
      );
    expect(at(255, 200)).toBe('accepted');
    expect(at(256, 201)).toEqual([
      'descriptor must be at most 255 characters',
      'productItems must have at most 200 items',
    ]);
  });

  test('20 previous failures are allowed, 21 are not', () => {
    const at = (count: number) =>
      details(parseCreate({ ...smallest, previousFailures: Array(count).fill({}) }));
    expect(at(20)).toBe('accepted');
    expect(at(21)).toEqual(['previousFailures must have at most 20 items']);
  });

  test('of 1,000 faults in a body the response names 100', () => {
    const result = details(parseCreate({ ...smallest, productItems: Array(200).fill({}) }));
    expect(result).toHaveLength(100);
  });

  test('the details hold no value and no unknown name, whatever is sent', () => {
    const ours =
      /^(the body|an unknown field|[a-zA-Z]+(\[\d+\])?(\.[a-zA-Z0-9]+)*) (is required|must be (a positive integer|a string|an integer|a boolean|an array|an object|a JSON object|one of [A-Z, ]+|a valid ISO 4217 code|12 to 19 digits|MM \(01-12\)|YYYY|a date-time|a two-letter ISO 3166 code|at most \d+( characters)?)|must have at most \d+ items|must not hold the card number)$/;
    const paths: Path[] = [];
    const collect = (value: unknown, path: Path) => {
      if (path.length > 0) paths.push(path);
      if (typeof value !== 'object' || value === null) return;
      for (const [key, inner] of Object.entries(value)) collect(inner, [...path, key]);
    };
    collect(whole, []);
    fc.assert(
      fc.property(fc.constantFrom(...paths), fc.jsonValue(), (path, to) => {
        const result = parseCreate(changed(whole, path, to));
        if (result.ok) expect(paymentDetails.safeParse(result.request.details).success).toBe(true);
        else for (const line of result.details) expect(line).toMatch(ours);
      }),
      { numRuns: propertyRuns(600) },
    );
  });
});

describe('gaps §4: no text of a create may hold its own card number', () => {
  const blocks = '4242 4242-4242\u00a04242';
  const attemptNumber = Number(NUMBER);
  test.each<[string, unknown, string]>([
    ['descriptor', { descriptor: `no ${NUMBER}` }, 'descriptor'],
    ['blocks of four', { merchantReference: `x ${blocks}` }, 'merchantReference'],
    ['an array', { previousFailures: [{}, { reason: blocks }] }, 'previousFailures[1].reason'],
    ['a number', { previousFailures: [{ attemptNumber }] }, 'previousFailures[0].attemptNumber'],
    ['an alias', { billing: { address: { line1: NUMBER } } }, 'billing.address.line1'],
    ['an unknown field', { secretField: { number: NUMBER } }, 'an unknown field'],
    ['an unknown key', { [NUMBER]: 1 }, 'an unknown field'],
  ])('the card number in %s', (_name, more, field) => {
    expect(details(parseCreate({ ...smallest, ...(more as object) }))).toEqual([
      `${field} must not hold the card number`,
    ]);
  });

  test('the holder, the CVV and the Idempotency-Key are texts of the request', () => {
    const value = changed(smallest, CARD_PATH, { ...card, holderName: NUMBER, cvv: NUMBER });
    expect(details(parseCreate(value, `k-${blocks.replace(/\s/g, '-')}`))).toEqual([
      'Idempotency-Key must not hold the card number',
      'paymentMethod.card.holderName must not hold the card number',
      'paymentMethod.card.cvv must not hold the card number',
    ]);
  });

  test('another card number is no secret of this request', () => {
    expect(parseCreate({ ...smallest, descriptor: '4111111111111111' }, 'order-42').ok).toBe(true);
  });
});
