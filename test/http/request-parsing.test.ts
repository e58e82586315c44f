/** Reads requests as gaps §2 to §4 and §8 say: what is kept, what is refused, in which words. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseCapture, parseRefund } from '../../command-api/request/change-request.ts';
import { parseJson } from '../../command-api/request/json.ts';
import { parseCreate } from '../../command-api/request/payment-request.ts';
import { parseIdempotencyKey } from '../../command-api/request/read-request.ts';
import { parsePaymentId } from '../../shared/http/payment-id.ts';
import { paymentDetails } from '../../shared/payment/payment-events.ts';
import { textsHoldCard } from '../../shared/runtime/card-numbers.ts';

const NUMBER = '4242424242424242';
const card = { number: NUMBER, holderName: 'Ada L', expiryMonth: '12', expiryYear: '2030' };
const smallest = { amount: 1500, currency: 'USD', paymentMethod: { type: 'CARD', card } };

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
  previousFailures: [
    {
      gateway: 'g',
      attemptNumber: 1,
      responseCode: '05',
      reason: 'r',
      timestamp: '2026-01-31T10:00:00.000Z',
    },
  ],
  source: { storeId: 's1', initiatedBy: 'CONSUMER', externalMerchantId: 'm' },
};

type Path = readonly (string | number)[];
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
const json = (text: string) => {
  const parsed = parseJson(Buffer.from(text));
  if (!parsed.ok) throw new Error('not JSON');
  return parsed.value;
};

describe('gaps §3: a body is read as JSON', () => {
  test.each([
    ['nothing', ''],
    ['white space', ' \r\n\t '],
    ['a byte order mark alone', '\ufeff'],
  ])('%s is no body', (_name, text) => {
    expect(parseJson(Buffer.from(text))).toEqual({ ok: true, value: undefined });
  });

  test('a byte order mark is skipped', () => {
    expect(json('\ufeff{"a":1}')).toEqual({ a: 1 });
  });

  test.each([
    ['invalid UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['an overlong form', Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
    ['half a JSON', Buffer.from('{"a":')],
    ['half a surrogate pair', Buffer.from('{"a":"\\ud800"}')],
    ['NaN', Buffer.from('{"a":NaN}')],
    ['gzip', Buffer.from([0x1f, 0x8b, 8, 0])],
    ['30,000 brackets', Buffer.from('['.repeat(30000))],
  ])('%s is not JSON', (_name, bytes) => {
    expect(parseJson(bytes)).toEqual({ ok: false });
  });

  test('a whole pair of surrogates is a character', () => {
    expect(json('"\\ud83d\\ude00"')).toBe('😀');
  });
});

describe('A5: one request does not stop the others', () => {
  const CPU_MS_MAX = 300;
  /** What the work costs this thread, however busy the machine is. */
  const cpuMsOf = (work: () => void): number => {
    const before = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  };

  test('a number of 60,000 zeros', () => {
    const body = Buffer.from(`{"amount":1${'0'.repeat(60_000)}1}`);
    expect(cpuMsOf(() => expect(parseJson(body).ok).toBe(true))).toBeLessThan(CPU_MS_MAX);
  });

  test('a text of 60,000 digits, looked through for the card of the payment', () => {
    const digits = '4'.repeat(60_000);
    expect(
      cpuMsOf(() => expect(textsHoldCard([digits], '444444', '4448')).toBe(false)),
    ).toBeLessThan(CPU_MS_MAX);
  });
});

describe('gaps §3: amounts are JSON integers from 1', () => {
  const amountOf = (literal: string) => {
    const body = JSON.stringify(smallest).replace('1500', literal);
    const result = parseCreate(json(body));
    return result.ok ? result.request.amount : result.details;
  };

  test.each([
    ['1', 1],
    ['1.0', 1],
    ['1e3', 1000],
    ['1E+3', 1000],
    ['12.50e1', 125],
    ['1500e-2', 15],
    ['99999999', 99_999_999],
    ['9007199254740991', 9_007_199_254_740_991],
  ])('%s is %d', (literal, amount) => {
    expect(amountOf(literal)).toBe(amount);
  });

  test.each(['9007199254740992', '9007199254740993.0', '1e300', '9'.repeat(400)])(
    '%s is over any maximum, for the rules to refuse',
    (literal) => {
      expect(amountOf(literal)).toBe('too large');
    },
  );

  test.each([
    '0',
    '-0',
    '-1',
    '1.5',
    '100.00000000000000001',
    '9007199254740993.5',
    '0.99999999999999999999',
    '1e-1',
    '1e-400',
    '1e400',
    '-1e400',
    'true',
    '"100"',
    '[1]',
    '{}',
  ])('%s is refused', (literal) => {
    expect(amountOf(literal)).toEqual(['amount must be a positive integer']);
  });

  test('a fraction is seen wherever white space stands', () => {
    const body = JSON.stringify(smallest).replace(':1500', '\t:\r\n 100.00000000000000001');
    expect(details(parseCreate(json(body)))).toEqual(['amount must be a positive integer']);
  });
});

describe('gaps §3: the smallest and the whole create request', () => {
  test('the smallest is an authorization', () => {
    expect(created(smallest)).toEqual({
      amount: 1500,
      currency: 'USD',
      captureNow: false,
      card,
      details: {},
    });
  });

  test('the whole request is kept, the card apart', () => {
    const { amount: _, currency: __, captureNow: ___, paymentMethod, ...kept } = whole;
    expect(created(whole)).toEqual({
      amount: 1500,
      currency: 'USD',
      captureNow: true,
      card: paymentMethod.card,
      details: kept,
    });
  });

  test('what is kept can be stored as it is', () => {
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
      { ...smallest, captureNow: null, consumer: null, productItems: null, source: null },
      ['billing'],
      { address: { street: null, city: 'c' } },
    );
    expect(created(nulls).details).toEqual({ billing: { address: { city: 'c' } } });
  });

  test('line1 and postalCode are read as street and zip, which win where both are given', () => {
    const address = { line1: 'old', postalCode: '1', city: 'c' };
    const request = { ...smallest, billing: { address }, shipping: { address } };
    const renamed = { street: 'old', zip: '1', city: 'c' };
    expect(created(request).details).toEqual({
      billing: { address: renamed },
      shipping: { address: renamed },
    });
    const both = { ...smallest, billing: { address: { ...address, street: 'new' } } };
    expect(created(both).details.billing?.address.street).toBe('new');
  });

  test('an empty optional reference, CVV or brand is none', () => {
    const empty = changed({ ...smallest, merchantReference: '' }, ['paymentMethod', 'card'], {
      ...card,
      cvv: '',
      brand: '',
    });
    expect(created(empty)).toEqual(created(smallest));
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
    ['a string', 'x', ['the body must be a JSON object']],
    ['a number', 1, ['the body must be a JSON object']],
  ])('%s', (_name, value, expected) => {
    expect(details(parseCreate(value))).toEqual(expected);
  });

  const number = ['paymentMethod', 'card', 'number'];
  const currencyWording = 'currency must be a valid ISO 4217 code';
  const long = 'x'.repeat(256);
  const cases: [path: Path, to: unknown, expected: string[]][] = [
    [['amount'], undefined, ['amount is required']],
    [['amount'], null, ['amount is required']],
    [['currency'], null, ['currency is required']],
    [['currency'], '', ['currency is required']],
    [['currency'], 'usd', [currencyWording]],
    [['currency'], 'US', [currencyWording]],
    [['currency'], 'USDX', [currencyWording]],
    [['currency'], 'USD\n', [currencyWording]],
    [['currency'], 'ZZZ', [currencyWording]],
    [['currency'], 840, [currencyWording]],
    [['paymentMethod'], undefined, METHOD_REQUIRED],
    [['paymentMethod'], null, METHOD_REQUIRED],
    [['paymentMethod'], {}, METHOD_REQUIRED],
    [['paymentMethod'], 'CARD', ['paymentMethod must be an object']],
    [['paymentMethod'], [], ['paymentMethod must be an object']],
    [['paymentMethod'], { type: 'CARD' }, CARD_REQUIRED],
    [['paymentMethod'], { type: 'CARD', card: null }, CARD_REQUIRED],
    [['paymentMethod'], { type: 'PAYPAL' }, ['paymentMethod.type must be one of CARD']],
    [['paymentMethod', 'type'], 'card', ['paymentMethod.type must be one of CARD']],
    [['paymentMethod', 'type'], '', ['paymentMethod.type is required']],
    [['paymentMethod', 'type'], 1, ['paymentMethod.type must be a string']],
    [['paymentMethod', 'card'], 7, ['paymentMethod.card must be an object']],
    [number, '', ['paymentMethod.card.number is required']],
    [number, 4242424242424242, ['paymentMethod.card.number must be a string']],
    [number, '42424242424', ['paymentMethod.card.number must be 12 to 19 digits']],
    [number, '4'.repeat(20), ['paymentMethod.card.number must be 12 to 19 digits']],
    [number, '4242 4242 4242 4242', ['paymentMethod.card.number must be 12 to 19 digits']],
    [
      ['paymentMethod', 'card', 'expiryMonth'],
      '13',
      ['paymentMethod.card.expiryMonth must be MM (01-12)'],
    ],
    [
      ['paymentMethod', 'card', 'expiryMonth'],
      1,
      ['paymentMethod.card.expiryMonth must be a string'],
    ],
    [['paymentMethod', 'card', 'expiryYear'], '30', ['paymentMethod.card.expiryYear must be YYYY']],
    [['paymentMethod', 'card', 'cvv'], 123, ['paymentMethod.card.cvv must be a string']],
    [['captureNow'], 'true', ['captureNow must be a boolean']],
    [['descriptor'], 5, ['descriptor must be a string']],
    [['descriptor'], long, ['descriptor must be at most 255 characters']],
    [['goodsType'], 'FOOD', ['goodsType must be one of PHYSICAL, DIGITAL, MIXED']],
    [['goodsType'], [], ['goodsType must be a string']],
    [['productItems'], {}, ['productItems must be an array']],
    [['productItems', 0], null, ['productItems[0] must be an object']],
    [['productItems', 0, 'name'], undefined, ['productItems[0].name is required']],
    [['productItems', 0, 'name'], '', ['productItems[0].name is required']],
    [['productItems', 0, 'quantity'], 0, ['productItems[0].quantity must be a positive integer']],
    [
      ['productItems', 0, 'unitPrice'],
      2 ** 53,
      ['productItems[0].unitPrice must be at most 9007199254740991'],
    ],
    [
      ['productItems', 0, 'goodsType'],
      'MIXED',
      ['productItems[0].goodsType must be one of PHYSICAL, DIGITAL'],
    ],
    [['consumer'], {}, ['consumer.firstName is required', 'consumer.email is required']],
    [['consumer'], 'Ada', ['consumer must be an object']],
    [['billing'], {}, ['billing.address is required']],
    [['billing', 'address'], 'x', ['billing.address must be an object']],
    [['billing', 'address'], { line1: 5 }, ['billing.address.line1 must be a string']],
    [
      ['billing', 'address', 'country'],
      'USA',
      ['billing.address.country must be a two-letter ISO 3166 code'],
    ],
    [['shipping', 'address', 'zip'], 94103, ['shipping.address.zip must be a string']],
    [
      ['previousFailures', 0, 'attemptNumber'],
      '1',
      ['previousFailures[0].attemptNumber must be an integer'],
    ],
    [
      ['previousFailures', 0, 'attemptNumber'],
      2 ** 53,
      ['previousFailures[0].attemptNumber must be an integer'],
    ],
    [
      ['previousFailures', 0, 'timestamp'],
      '2026-02-30T10:00:00Z',
      ['previousFailures[0].timestamp must be a date-time'],
    ],
    [
      ['previousFailures', 0, 'timestamp'],
      '2026-02-03',
      ['previousFailures[0].timestamp must be a date-time'],
    ],
    [['source'], {}, ['source.storeId is required']],
    [['source', 'initiatedBy'], 'BOT', ['source.initiatedBy must be one of CONSUMER, MERCHANT']],
  ];
  test.each(cases)('%j as %j: %j', (path, to, expected) => {
    expect(details(parseCreate(changed(whole, path, to)))).toEqual(expected);
  });

  test('several faults come one per field, in the order of the contract', () => {
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

  test('no value, no unknown name and no words but ours, whatever is sent', () => {
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
      { numRuns: 1500 },
    );
  });
});

describe('gaps §4: no text of a create may hold its own card number', () => {
  const blocks = '4242 4242-4242\u00a04242';
  test.each<[string, unknown, string]>([
    ['descriptor', { descriptor: `no ${NUMBER}` }, 'descriptor'],
    ['blocks', { merchantReference: `x ${blocks}` }, 'merchantReference'],
    ['an array', { previousFailures: [{}, { reason: blocks }] }, 'previousFailures[1].reason'],
    [
      'a number',
      { previousFailures: [{ attemptNumber: 4242424242424242 }] },
      'previousFailures[0].attemptNumber',
    ],
    ['an alias', { billing: { address: { line1: NUMBER } } }, 'billing.address.line1'],
    ['an unknown field', { secretField: { number: NUMBER } }, 'an unknown field'],
    ['an unknown key', { [NUMBER]: 1 }, 'an unknown field'],
  ])('%s', (_name, more, field) => {
    expect(details(parseCreate({ ...smallest, ...(more as object) }))).toEqual([
      `${field} must not hold the card number`,
    ]);
  });

  test('the holder, the CVV and the Idempotency-Key are texts of the request', () => {
    const value = changed(smallest, ['paymentMethod', 'card'], {
      ...card,
      holderName: NUMBER,
      cvv: NUMBER,
    });
    expect(details(parseCreate(value, `k-${blocks.replace(/\s/g, '-')}`))).toEqual([
      'Idempotency-Key must not hold the card number',
      'paymentMethod.card.holderName must not hold the card number',
      'paymentMethod.card.cvv must not hold the card number',
    ]);
  });

  test('another number is no secret of this request', () => {
    expect(parseCreate({ ...smallest, descriptor: '4111111111111111' }, 'order-42').ok).toBe(true);
  });
});

describe('gaps §4: texts of a capture or refund, by first six and last four', () => {
  test.each([
    ['plain', '4242424242424242', true],
    ['inside other digits and words', 'order 12 4242 4242-4242 4242, again', true],
    ['12 digits', '424242004242', true],
    ['19 digits', '4242420000000004242', true],
    ['11 digits', '42424204242', false],
    ['20 digits', '42424200000000004242', false],
    ['another end', '4242420000001111', false],
    ['letters between', '424242x000000004242', false],
  ])('%s', (_name, text, expected) => {
    expect(textsHoldCard([text], '42424242', '4242')).toBe(expected);
  });

  test('every text and key of the body is handed on to be looked at', () => {
    const parsed = parseCapture({ captureAmount: 1, reason: 'a', odd: [{ deep: 'b' }] });
    expect(parsed.ok && parsed.texts).toEqual(expect.arrayContaining(['a', 'b', 'odd', 'deep']));
  });
});

describe.each([
  ['captureAmount', parseCapture],
  ['refundAmount', parseRefund],
] as const)('gaps §3: %s', (name, parse) => {
  const requestOf = (value: unknown) => {
    const result = parse(value);
    return result.ok ? result.request : result.details;
  };

  test.each([
    ['no body', undefined, { amount: undefined }],
    ['{}', {}, { amount: undefined }],
    ['a reason alone', { reason: 'r' }, { amount: undefined, reason: 'r' }],
    ['a reason that is null', { reason: null }, { amount: undefined }],
    ['its name', { [name]: 5 }, { amount: 5 }],
    ['the alias', { amount: 5, reason: 'r', other: 1 }, { amount: 5, reason: 'r' }],
    ['both and equal', { [name]: 5, amount: 5 }, { amount: 5 }],
    ['over any maximum', { [name]: 2 ** 53 }, { amount: 'too large' }],
  ])('%s', (_case, value, request) => {
    expect(requestOf(value)).toEqual(request);
  });

  test.each<[string, unknown, string]>([
    ['null as the body', null, 'the body must be a JSON object'],
    ['an array', [5], 'the body must be a JSON object'],
    ['a number', 5, 'the body must be a JSON object'],
    ['null', { [name]: null }, `${name} must be a positive integer`],
    ['null as the alias', { amount: null }, 'amount must be a positive integer'],
    ['zero', { [name]: 0 }, `${name} must be a positive integer`],
    ['a string', { [name]: '5' }, `${name} must be a positive integer`],
    ['a fraction', json(`{"${name}":5.5}`), `${name} must be a positive integer`],
    ['both and unequal', { [name]: 5, amount: 6 }, `amount must be equal to ${name}`],
    ['a mistyped name', { amuont: 5 }, `${name} is required beside other fields`],
    ['a mistyped name with null', { amuont: null }, `${name} is required beside other fields`],
    ['__proto__', json('{"__proto__":{"amount":5}}'), `${name} is required beside other fields`],
    ['a reason of 256', { reason: 'x'.repeat(256) }, 'reason must be at most 255 characters'],
    ['a reason that is none', { reason: 5 }, 'reason must be a string'],
  ])('%s is refused', (_case, value, detail) => {
    expect(requestOf(value)).toEqual([detail]);
  });
});

describe('gaps §2: a paymentId in a path', () => {
  test.each(['pay_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'a', 'A-_9', 'x'.repeat(32)])('%s', (id) => {
    expect(parsePaymentId(id)).toBe(id);
  });
  test.each(['', 'x'.repeat(33), 'x'.repeat(5000), 'a/b', '\0', 'a b', 'ä', '%zz', 'a\n', 'a.b'])(
    '%j is not well formed',
    (id) => {
      expect(parsePaymentId(id)).toBeUndefined();
    },
  );
});

describe('gaps §8: the Idempotency-Key', () => {
  test('is optional, and kept as it is', () => {
    expect(parseIdempotencyKey([])).toEqual({ ok: true, key: undefined });
    const key = `!~${'x'.repeat(253)}`;
    expect(parseIdempotencyKey(['idempotency-KEY', key])).toEqual({ ok: true, key });
  });
  test.each(['', ' ', 'a b', 'ä', 'x'.repeat(256), '\t', '\x7f'])('%j is refused', (key) => {
    expect(details(parseIdempotencyKey(['Idempotency-Key', key]))).toEqual([
      'Idempotency-Key must be 1 to 255 visible ASCII characters',
    ]);
  });
  test('two Idempotency-Key headers are rejected, equal ones too', () => {
    const twice = ['Idempotency-Key', 'a', 'Accept', '*/*', 'idempotency-key', 'a'];
    expect(details(parseIdempotencyKey(twice))).toEqual(['Idempotency-Key must be given once']);
  });
});
