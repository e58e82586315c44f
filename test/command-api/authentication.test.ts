/** gaps §21: the shopper authenticates through the provider. */
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { httpServer } from '../support/faulty-server.ts';
import { providerHere } from '../support/provider-here.ts';
import { JANE } from '../support/provider-operations.ts';
import {
  type CommandResponse,
  expectError,
  type InProcess,
  idOf,
  locatedId,
  NO_RETRIES,
  openInProcess,
  PAYMENTS,
  payment,
  token,
} from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { AWAITED_MS } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const RETURN_URL = 'https://shop.example/back?order=7';
const NEEDS_SHOPPER = '4000000000003220';
const DETAIL = 'paymentMethod.card.authentication';

const service = await openInProcess();
await service.listen();
const short = await openInProcess({ AUTHENTICATION_TIMEOUT_MS: '400' });
await short.listen();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await short[Symbol.asyncDispose]();
});

const AT_SHOP = { number: NEEDS_SHOPPER, ...JANE, authentication: { returnUrl: RETURN_URL } };
const BY_TOKEN = { token: 'tok_authenticate', holderName: 'Jane Doe' };
const bodyOf = (card: object = {}, fields: object = {}) =>
  payment({ ...fields, paymentMethod: { type: 'CARD', card: { ...AT_SHOP, ...card } } });
const create = (at: InProcess, key?: string, body = bodyOf()) =>
  at.ask('POST', PAYMENTS, body, key === undefined ? {} : { key });

type NextAction = { type: string; url?: string; expiresAt: string };
const nextOf = ({ json }: CommandResponse) => json.nextAction as NextAction | undefined;
const press = (url: string | undefined, action: 'authenticate' | 'fail') =>
  fetch(`${url}/${action}`, { method: 'POST', redirect: 'manual' });
const statusAt = async (at: InProcess, id: string) => (await at.get(id)).json.status;
const ended = async (at: InProcess, id: string): Promise<CommandResponse> => {
  await until('it has its outcome', async () => (await statusAt(at, id)) !== 'PENDING');
  return at.get(id);
};
const failureIn = ({ json }: CommandResponse) =>
  (json.transactions as { failure?: object }[] | undefined)?.[0]?.failure;
const NOT_AUTHENTICATED = { failureCode: 'AUTHENTICATION_REQUIRED', advice: 'AUTHENTICATE' };

describe('the provider wants the shopper', () => {
  test.each([
    ['a number', {}],
    ['a token', { ...BY_TOKEN, number: null, expiryMonth: null, expiryYear: null, cvv: null }],
  ])('by %s: 202 with the address, which GET does not show', async (_name, card) => {
    const response = await create(service, undefined, bodyOf(card));
    expect([response.status, response.json.status]).toEqual([202, 'PENDING']);
    const { url, ...shown } = nextOf(response) as NextAction;
    expect(url).toMatch(/^http:\/\/localhost:\d+\/simulator\/authentications\/[\w-]{32}$/);
    expect(shown).toEqual({ type: 'REDIRECT', expiresAt: expect.stringMatching(/Z$/) });
    const got = await service.get(idOf(response));
    expect([got.json.status, got.json.nextAction]).toEqual(['PENDING', shown]);
    expect(got.text).not.toContain(String(url));
  });

  test.each([
    [false, 'AUTHORIZED', 'AUTH'],
    [true, 'CAPTURED', 'SALE'],
  ])(
    'captureNow %s: who authenticates is led back, and the payment is %s',
    async (captureNow, status, type) => {
      const response = await create(service, undefined, bodyOf({}, { captureNow }));
      const page = await fetch(String(nextOf(response)?.url));
      expect([page.status, await page.text()]).toEqual([
        200,
        expect.stringContaining('Authenticate'),
      ]);
      const led = await press(nextOf(response)?.url, 'authenticate');
      expect([led.status, led.headers.get('location')]).toEqual([303, RETURN_URL]);
      const { json } = await ended(service, idOf(response));
      expect([json.status, json.nextAction]).toEqual([status, undefined]);
      expect(json.transactions).toMatchObject([{ type, result: 'SUCCEEDED' }]);
    },
  );

  test.each([
    [
      'https://日本.example/戻る?a=é\u2028',
      'https://xn--wgv71a.example/%E6%88%BB%E3%82%8B?a=%C3%A9%E2%80%A8',
    ],
    ['HTTPS://Shop.example:443/a/../b ', 'https://shop.example/b'],
    ['http://127.0.0.1:3000', 'http://127.0.0.1:3000/'],
  ])('%s is sent to the provider as the URL standard writes it', async (returnUrl, written) => {
    const response = await create(service, undefined, bodyOf({ authentication: { returnUrl } }));
    expect(service.faults.calls.at(-1)).toMatchObject({ authentication: { returnUrl: written } });
    const led = await press(nextOf(response)?.url, 'authenticate');
    expect([led.status, led.headers.get('location')]).toEqual([303, written]);
  });

  test('who fails is led back, and the payment is declined', async () => {
    const response = await create(service);
    expect((await press(nextOf(response)?.url, 'fail')).status).toBe(303);
    const got = await ended(service, idOf(response));
    expect([got.json.status, failureIn(got)]).toMatchObject(['FAILED', NOT_AUTHENTICATED]);
    expect((await press(nextOf(response)?.url, 'authenticate')).status).toBe(409);
    expect(await service.ledger(idOf(response))).toMatchObject([{ outcome: 'DECLINED' }]);
  });

  test('a card that needs no shopper is approved as ever, and no page is made up', async () => {
    const response = await create(service, undefined, bodyOf({ number: '4242424242424242' }));
    expect([response.status, nextOf(response)]).toEqual([200, undefined]);
    const unknown = await fetch(`${await pageOf(service)}x`);
    expect(unknown.status).toBe(404);
  });

  test('without authentication: 402, AUTHENTICATION_REQUIRED', async () => {
    const { status, json } = await create(service, undefined, bodyOf({ authentication: null }));
    expect([status, json.failure]).toMatchObject([402, NOT_AUTHENTICATED]);
  });

  test('with results brought along it is approved', async () => {
    const threeDSecure = {
      version: '2.2.0',
      eci: '05',
      cryptogram: 'A'.repeat(32),
      transactionId: '4bd1d5b8-7c1e-4b42-9d55-3f1a8c2e6b70',
    };
    const body = bodyOf({ authentication: null, threeDSecure });
    expect((await create(service, undefined, body)).status).toBe(200);
  });
});

const pageOf = async (at: InProcess) => String(nextOf(await create(at))?.url);

describe('400', () => {
  const PUBLIC = 'must be a public https address';
  const CONTROL = 'must not hold a control character';
  const LONG = 'must be at most 255 characters';
  const expectRejected = async (at: InProcess, body: object, detail: string): Promise<void> => {
    expectError(await create(at, undefined, body), 400, 'INVALID_REQUEST', [`${DETAIL}${detail}`]);
    expect(at.faults.calls).toHaveLength(0);
  };

  test('no public address, one with a control character, one too long as the URL standard writes it', async () => {
    await using own = await openInProcess();
    for (const [returnUrl, detail] of [
      [undefined, 'is required'],
      ['http://shop.example', PUBLIC],
      ['https://10.0.0.1/x', PUBLIC],
      ['shop', PUBLIC],
      ...['\r\nx', '\n', '\t', '\0', '\u0085'].map((end) => [
        `https://shop.example/${end}`,
        CONTROL,
      ]),
      [`https://shop.example/${'é'.repeat(40)}`, LONG],
      [`https://shop.example/${'x'.repeat(255)}`, LONG],
    ])
      await expectRejected(own, bodyOf({ authentication: { returnUrl } }), `.returnUrl ${detail}`);
    const fields = { source: { storeId: 's', initiatedBy: 'MERCHANT' } };
    await expectRejected(own, bodyOf({}, fields), ' needs a shopper who is there');
  });

  test('an address of the same machine is taken with the simulator alone', async () => {
    const body = bodyOf({ authentication: { returnUrl: 'http://localhost:3000/back' } });
    expect((await create(service, undefined, body)).status).toBe(202);
    await using other = await openInProcess({ PROVIDER_URL: 'https://pay.example' });
    await expectRejected(other, body, `.returnUrl ${PUBLIC}`);
  });
});

describe('while the shopper is waited for', () => {
  test.each([
    ['capture', 'CAPTURE_NOT_ALLOWED', 'an AUTHORIZED payment can be captured'],
    ['void', 'VOID_NOT_ALLOWED', 'an AUTHORIZED payment can be voided'],
    ['refund', 'REFUND_NOT_ALLOWED', 'a CAPTURED payment can be refunded'],
  ] as const)('%s is 422 without a call to the provider', async (change, code, only) => {
    const id = idOf(await create(service));
    const { questions, calls } = service.faults;
    const before = [questions, calls.length];
    expectError(await service.change(change, id), 422, code, [`only ${only}; this one is PENDING`]);
    expect([service.faults.questions, service.faults.calls.length]).toEqual(before);
  });

  test('nothing is unresolved: not in the list, the metrics, the state topic or by hand', async () => {
    const id = idOf(await create(service));
    const admin = { token: await token('*', 'ops:admin audit:read') };
    const { json } = await service.ask('GET', '/ops/v1/unresolved', undefined, admin);
    expect(json).toMatchObject({ unresolved: [] });
    expect(await service.metric('payments_unresolved')).toBe(0);
    const path = `/audit/v1/payments/${id}/explain?command=capture`;
    const explained = await service.ask('GET', path, undefined, admin);
    expect(explained.json).toMatchObject({ allowed: false, code: 'CAPTURE_NOT_ALLOWED' });
  });
});

describe('a shopper who does not come in time', () => {
  test('the payment is FAILED by the fence, and a repeat under the key is told so', async () => {
    const response = await create(short, 'late');
    const got = await ended(short, idOf(response));
    expect([got.json.status, failureIn(got)]).toEqual(['FAILED', NOT_AUTHENTICATED]);
    const late = await press(nextOf(response)?.url, 'authenticate');
    expect(late.status).toBe(409);
    const again = await create(short, 'late');
    expect([again.status, again.json.failure]).toEqual([402, NOT_AUTHENTICATED]);
    expect(await short.ledger(idOf(response))).toEqual([]);
  });

  test('in time is in time, whenever the provider is asked: the fence finds it', async () => {
    await using own = await openInProcess({ AUTHENTICATION_TIMEOUT_MS: String(AWAITED_MS) });
    await own.listen();
    own.faults.respondsToLookUps = false;
    const response = await create(own);
    expect((await press(nextOf(response)?.url, 'authenticate')).status).toBe(303);
    const over = Date.parse(String(nextOf(response)?.expiresAt));
    await until('the time is over', () => Date.now() > over);
    own.faults.respondsToLookUps = true;
    expect((await ended(own, idOf(response))).json.status).toBe('AUTHORIZED');
    expect(await own.ledger(idOf(response))).toMatchObject([{ outcome: 'APPROVED' }]);
  });
});

test('gaps §8: a unique reference of a payment that waits is taken, and gives the address again', async () => {
  await using unique = await openInProcess({ MERCHANT_REFERENCE: 'unique' });
  const body = bodyOf({}, { merchantReference: 'order-7' });
  const first = await create(unique, undefined, body);
  const equal = await create(unique, undefined, body);
  expect([equal.status, equal.text]).toEqual([202, first.text]);
  const other = bodyOf({}, { merchantReference: 'order-7', amount: 1 });
  expectError(await create(unique, undefined, other), 422, 'BUSINESS_RULE_VIOLATION', [
    `merchantReference names another payment already, ${idOf(first)}`,
  ]);
});

/** The service over an HTTP provider that says this of each operation; a method without an outcome is 500. */
const overProviderThatSays = async (
  outcomes: { [method: string]: object },
  settings: Record<string, string> = NO_RETRIES,
) => {
  const provider = await httpServer(async ({ method = '', url = '' }, response) => {
    const operationId = url.split('/').at(-1);
    const said = { operationId, amount: 2500, currency: 'USD', ...outcomes[method] };
    response.writeHead(outcomes[method] === undefined ? 500 : 200).end(JSON.stringify(said));
  });
  const own = await openInProcess({ PROVIDER_URL: provider.url, ...settings });
  return {
    own,
    provider,
    [Symbol.asyncDispose]: async () => {
      await own[Symbol.asyncDispose]();
      await provider.close();
    },
  };
};
const WAITS_FOR_EVER = {
  outcome: 'ACTION_REQUIRED',
  nextAction: { type: 'REDIRECT', url: 'https://pay.example/3ds' },
  expiresAt: '9999-12-31T23:59:59Z',
};

test('a provider that would wait for ever is waited for as long as the setting says', async () => {
  const outcomes = { PUT: WAITS_FOR_EVER, GET: WAITS_FOR_EVER, DELETE: { outcome: 'FENCED' } };
  const settings = { AUTHENTICATION_TIMEOUT_MS: '400' };
  await using over = await overProviderThatSays(outcomes, settings);
  const response = await create(over.own);
  expect(response.status).toBe(202);
  const endsMs = Date.parse(nextOf(response)?.expiresAt ?? '');
  expect(endsMs).toBeLessThanOrEqual(Date.now() + 400);
  const got = await ended(over.own, idOf(response));
  expect([got.json.status, failureIn(got)]).toEqual(['FAILED', NOT_AUTHENTICATED]);
});

test.each([
  ['to the PUT', { PUT: WAITS_FOR_EVER }],
  ['to a GET alone', {}],
])(
  'an answer that asks for the shopper unasked is Unknown %s, as to each GET',
  async (_at, put) => {
    await using over = await overProviderThatSays({ ...put, GET: WAITS_FOR_EVER });
    for (const _attempt of ['first', 'repeat']) {
      const response = await create(over.own, 'unasked', bodyOf({ authentication: null }));
      expectError(response, 503, 'PROVIDER_UNAVAILABLE', response.json.details);
      const { json } = await over.own.get(locatedId(response));
      expect([json.status, json.nextAction]).toEqual(['PENDING', undefined]);
    }
    const calls = over.provider.requests.filter((request) => request.includes('/operations/'));
    const methods = calls.map((request) => request.split(' ')[0]);
    expect(methods.filter((one) => one !== 'GET')).toEqual(['PUT']);
    expect(methods).toContain('GET');
  },
);

test('where the merchant asked and the answer to the PUT was lost, a GET gives the address', async () => {
  await using over = await overProviderThatSays({ GET: WAITS_FOR_EVER });
  expect((await create(over.own, 'lost')).status).toBe(503);
  await over.own.restart();
  const again = await create(over.own, 'lost');
  expect([again.status, nextOf(again)?.url]).toEqual([202, 'https://pay.example/3ds']);
});

test('the simulator in another process: the same, seen when the provider is asked', async () => {
  using folder = temporaryFolder();
  await using provider = await providerHere(join(folder.path, 'ledger.sqlite'), 'the-token');
  const { url } = provider;
  await using own = await openInProcess({ PROVIDER_URL: url, PROVIDER_TOKEN: 'the-token' });
  const first = await create(own, 'over-http');
  expect([first.status, nextOf(first)?.url]).toEqual([
    202,
    expect.stringContaining(`${url}/simulator/authentications/`),
  ]);
  const led = await press(nextOf(first)?.url, 'authenticate');
  expect([led.status, led.headers.get('location')]).toEqual([303, RETURN_URL]);
  const again = await create(own, 'over-http');
  expect([again.status, again.json.status]).toEqual([200, 'AUTHORIZED']);
  const waiting = await create(own, 'still-waits');
  expect((await create(own, 'still-waits')).text).toBe(waiting.text);
});
