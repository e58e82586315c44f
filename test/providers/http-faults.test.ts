/** How the HTTP driver reads what a provider does wrong (provider.md, "How an answer is read"). */
import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { httpProvider } from '../../providers/http/provider.ts';
import type { ProviderOperation } from '../../providers/port.ts';
import {
  blackHole,
  type FaultyServer,
  httpServer,
  rawServer,
  refusedUrl,
} from '../support/faulty-server.ts';
import { type LoggedProvider, withLog } from '../support/logged-provider.ts';
import { APPROVED_CARD, authorize, CVV, followUp } from '../support/provider-operations.ts';
import { AWAITED_MS, ENDS_MS_MAX, HANGS_MS } from '../support/time-bounds.ts';
import { within } from '../support/until.ts';

/** For the tests of a server that leaves a call without an end, which has to be sent before. */
const HASTY = { connectTimeoutMs: AWAITED_MS, timeoutMs: AWAITED_MS };
const CONNECT_TIMEOUT_MS = 200;
/** For the tests of a server that responds at once. */
const PATIENT = { connectTimeoutMs: HANGS_MS, timeoutMs: HANGS_MS };

const unknown = { outcome: 'UNKNOWN', reason: expect.stringMatching(/^[a-z_]+$/) };

let provider: LoggedProvider | undefined;
let server: FaultyServer | undefined;

afterEach(async () => {
  await provider?.close();
  await server?.close();
  provider = undefined;
  server = undefined;
});

const clientOf = (url: string, times = PATIENT, token?: string): LoggedProvider => {
  provider = withLog(httpProvider({ url, token, ...times }));
  return provider;
};

const operation = authorize();
const outcome = {
  operationId: operation.operationId,
  outcome: 'APPROVED',
  amount: operation.amount,
  currency: operation.currency,
  providerReference: 'ref_1',
};

const answering = async (status: number, body: unknown): Promise<LoggedProvider> => {
  server = await httpServer((_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  return clientOf(server.url);
};

test('provider.md: a ledger without since is one from the start, and one of another time is none', async () => {
  const since = '2026-01-01T00:00:00.000Z';
  const page = { operations: [], next: null };
  for (const said of [undefined, '2026-01-01T01:00:00+01:00']) {
    const found = (await answering(200, { ...page, since: said })).ledger(null, 1, since);
    expect((await found).since).toBe(said && since);
    await provider?.close();
    await server?.close();
  }
  const client = await answering(200, { ...page, since: '2026-01-01T00:00:00.001Z' });
  await expect(client.ledger(null, 1, since)).rejects.toThrow('another time');
  await expect(client.ledger(null, 1)).rejects.toThrow('another time');
});

describe('provider.md: what is said of a card token', () => {
  const CARD = { brand: 'VISA', last4: '4242', expiryMonth: '12', expiryYear: '2034' };
  const described = { outcome: 'DESCRIBED', ...CARD };
  test.each<[string, number, unknown, object]>([
    ['a card', 200, { ...CARD, bin: '42424242' }, { ...described, bin: '42424242' }],
    [
      'a brand of its own',
      200,
      { ...CARD, brand: 'Visa!', more: 1 },
      { ...described, brand: undefined },
    ],
    ['that it is not known', 404, {}, { outcome: 'NOT_FOUND' }],
    ['that there are none', 501, '<html>', { outcome: 'NOT_FOUND' }],
    ['a whole number', 200, { ...CARD, last4: '4242424242424242' }, unknown],
    ['no expiry', 200, { ...CARD, expiryYear: undefined }, unknown],
    ['that the token of this service is bad', 401, {}, unknown],
    ['nothing but a status', 500, CARD, unknown],
    ['a redirect', 302, CARD, unknown],
    ['other text', 200, '<html>', unknown],
  ])('%s', async (_what, status, body, expected) => {
    expect(await (await answering(status, body)).describeToken('tok_1', 'm_1')).toEqual(expected);
  });

  test('out of reach', async () => {
    expect(await clientOf(await refusedUrl()).describeToken('tok_1', 'm_1')).toEqual(unknown);
  });
});

describe('provider.md: never connected is NotSent', () => {
  test('connection refused', async () => {
    const client = clientOf(await refusedUrl());
    expect(await within(ENDS_MS_MAX, () => client.execute(operation))).toEqual({
      outcome: 'NOT_SENT',
    });
    expect(await client.lookUp(operation)).toEqual(unknown);
    expect(await client.fence(operation)).toEqual(unknown);
    await expect(client.ledger(null, 1)).rejects.toThrow('ledger');
  });

  test('connection refused by every address of a name', async () => {
    const url = (await refusedUrl()).replace('127.0.0.1', 'localhost');
    expect(await clientOf(url).execute(operation)).toEqual({ outcome: 'NOT_SENT' });
  });

  describe('with time enough for the name service', () => {
    test('a name that does not exist', async () => {
      provider = httpProvider({ url: 'http://no-such-host.invalid', ...PATIENT });
      expect(await provider.execute(operation)).toEqual({ outcome: 'NOT_SENT' });
    });
  });

  describe('no connection in time', () => {
    let hole: Awaited<ReturnType<typeof blackHole>>;
    beforeAll(async () => {
      hole = await blackHole();
    });
    afterAll(() => hole.close());

    test('NotSent within the connect time-out, Unknown on a look-up', async () => {
      if ('skip' in hole) return process.stderr.write(`skipped: ${hole.skip}\n`);
      const client = clientOf(hole.url, { ...PATIENT, connectTimeoutMs: CONNECT_TIMEOUT_MS });
      const response = await within(ENDS_MS_MAX, () => client.execute(operation));
      expect(response).toEqual({ outcome: 'NOT_SENT' });
      expect(await within(ENDS_MS_MAX, () => client.lookUp(operation))).toEqual(unknown);
    });
  });
});

describe('provider.md: everything else is Unknown, in time', () => {
  const pad = (bytes: number) => JSON.stringify({ ...outcome, padding: 'x'.repeat(bytes) });
  const drip = (response: ServerResponse): void => {
    const text = pad(500);
    response.writeHead(200, { 'content-length': text.length });
    let at = 0;
    const timer = setInterval(() => {
      response.write(text.charAt(at));
      at += 1;
    }, 20);
    response.once('close', () => clearInterval(timer));
  };

  type HttpFault = [string, (response: ServerResponse) => void];
  const endless: HttpFault[] = [
    ['no answer at all', () => undefined],
    ['headers and then nothing', (response) => response.writeHead(200).flushHeaders()],
    ['a slow drip', drip],
    ['a slow drip of a refusal', (response) => response.writeHead(404).write(' ')],
  ];
  const httpFaults: HttpFault[] = [
    ['no content', (response) => response.writeHead(204).end()],
    ['still at work', (response) => response.writeHead(202).end('{}')],
    ['an outcome with 202', (response) => response.writeHead(202).end(JSON.stringify(outcome))],
    ['400', (response) => response.writeHead(400).end('{}')],
    ['429', (response) => response.writeHead(429, { 'retry-after': '1' }).end('{}')],
    ['500', (response) => response.writeHead(500).end(JSON.stringify(outcome))],
    ['HTML', (response) => response.writeHead(200).end('<html><p>APPROVED</p></html>')],
    ['an empty body', (response) => response.writeHead(200).end()],
    ['null', (response) => response.writeHead(200).end('null')],
    ['cut JSON', (response) => response.writeHead(200).end(JSON.stringify(outcome).slice(0, -1))],
    ['a body over 64 KiB', (response) => response.writeHead(200).end(pad(65_536))],
  ];

  test.each([301, 302, 303, 307, 308])('a redirect, %s, to where an outcome is', async (status) => {
    server = await httpServer(({ url }, response) => {
      if (url === '/outcome') response.writeHead(200).end(JSON.stringify(outcome));
      else response.writeHead(status, { location: '/outcome' }).end();
    });
    const client = clientOf(server.url);
    expect(await client.execute(operation)).toEqual(unknown);
    expect(await client.lookUp(operation)).toEqual(unknown);
    expect(await client.fence(operation)).toEqual(unknown);
  });

  const expectUnknown = async (
    fault: (response: ServerResponse) => void,
    times = PATIENT,
  ): Promise<void> => {
    server = await httpServer((_request, response) => fault(response));
    const client = clientOf(server.url, times);
    expect(await within(ENDS_MS_MAX, () => client.execute(operation))).toEqual(unknown);
    expect(await within(ENDS_MS_MAX, () => client.fence(operation))).toEqual(unknown);
    expect(server.requests).toEqual([
      `PUT /operations/${operation.operationId}`,
      `DELETE /operations/${operation.operationId}`,
    ]);
  };
  test.each(endless)('%s', (_name, fault) => expectUnknown(fault, HASTY));
  test.each(httpFaults)('%s', (_name, fault) => expectUnknown(fault));

  const text = JSON.stringify(outcome);
  const withAmount = (amount: string) => text.replace(/"amount":[0-9]+/, `"amount":${amount}`);
  test.each<[string, string | Buffer]>([
    ['an amount with a fraction too small for a double', withAmount('2000.00000000000000001')],
    ['an amount with an exponent and a fraction', withAmount('2.0000000000000000000001e3')],
    ['outcome twice', text.replace('"outcome"', '"outcome":"DECLINED","outcome"')],
    ['amount twice, once as an escape', text.replace('"amount"', '"\\u0061mount":1,"amount"')],
    ['a key twice in an object inside', text.replace('{', '{"more":[{"a":1,"a":2}],')],
    ['bytes that are no UTF-8', Buffer.from(text.replace('{', '{"more":"\xff",'), 'latin1')],
    ['half of a surrogate pair', text.replace('{', '{"more":"\\ud83d",')],
  ])('an answer with %s', async (_name, body) => {
    server = await httpServer((_request, response) => response.writeHead(200).end(body));
    const client = clientOf(server.url);
    expect(await client.execute(operation)).toEqual(unknown);
    expect(await client.lookUp(operation)).toEqual(unknown);
    await expect(client.ledger(null, 1)).rejects.toThrow('ledger');
  });

  test.each<[string, string]>([
    ['2000.00', withAmount('2000.00')],
    ['2e3', withAmount('2e3')],
    [
      'colons, quotes and braces inside texts',
      text.replace('{', '{"a:\\"b":"\\\\","c":"{\\":\\":",'),
    ],
    [
      'one key in many objects',
      text.replace('{', '{"__proto__":{"a":1},"more":[{"a":1},{"a":2}],'),
    ],
    ['line breaks and a byte order mark', `\ufeff${JSON.stringify(outcome, null, 2)}`],
  ])('but one with %s is read', async (_name, body) => {
    const client = await answering(200, body);
    expect(await client.execute(operation)).toMatchObject({ outcome: 'APPROVED' });
  });

  test('a body of just under 64 KiB is read, unknown fields and all', async () => {
    const client = await answering(200, pad(65_000));
    expect(await client.execute(operation)).toEqual({
      outcome: 'APPROVED',
      providerReference: 'ref_1',
    });
  });

  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n';
  test.each<[string, Parameters<typeof rawServer>[0]]>([
    ['a reset before the answer', (socket) => socket.resetAndDestroy()],
    ['a connection closed before the answer', (socket) => socket.end()],
    ['a reset within the answer', (socket) => socket.write(head, () => socket.resetAndDestroy())],
    ['an answer cut short', (socket) => socket.end(`${head}${JSON.stringify(outcome)}`)],
    ['no HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n')],
  ])('%s', async (_name, fault) => {
    server = await rawServer(fault);
    const client = clientOf(server.url);
    expect(await within(ENDS_MS_MAX, () => client.execute(operation))).toEqual(unknown);
    expect(await within(ENDS_MS_MAX, () => client.lookUp(operation))).toEqual(unknown);
    // Sent once each, whatever happened: a call is never sent again.
    expect(server.requests).toEqual([
      `PUT /operations/${operation.operationId}`,
      `GET /operations/${operation.operationId}`,
    ]);
  });

  test.each<[string, object]>([
    ["another operation's id", { operationId: 'other' }],
    ['another amount', { amount: 2001 }],
    ['an amount as text', { amount: '2000' }],
    ['another currency', { currency: 'EUR' }],
    ['another outcome', { outcome: 'PENDING' }],
    ['no outcome', { outcome: undefined }],
    ['no reference', { providerReference: undefined }],
    ['a fence with 200 to a PUT', { outcome: 'FENCED' }],
  ])('an answer with %s', async (_name, change) => {
    const client = await answering(200, { ...outcome, ...change });
    expect(await client.execute(operation)).toEqual(unknown);
    expect(await client.lookUp(operation)).toEqual(unknown);
  });
});

describe('provider.md: the shopper is needed', () => {
  const asking = authorize(undefined, { authentication: { returnUrl: 'https://shop.example' } });
  const url = 'https://pay.example/page';
  const wanted = {
    ...outcome,
    operationId: asking.operationId,
    outcome: 'ACTION_REQUIRED',
    nextAction: { type: 'REDIRECT', url },
    expiresAt: '2026-01-15T10:15:00Z',
  };

  test('to a PUT and to a GET; a DELETE decides', async () => {
    const client = await answering(200, wanted);
    const required = { outcome: 'ACTION_REQUIRED', url, expiresAt: '2026-01-15T10:15:00.000Z' };
    expect(await client.execute(asking)).toEqual(required);
    expect(await client.lookUp(asking)).toEqual(required);
    expect(await client.fence(asking)).toEqual(unknown);
  });

  test.each<[string, object]>([
    ['another amount', { amount: 1 }],
    ['another operation', { operationId: 'OP_other' }],
    ['no time', { expiresAt: undefined }],
    ['a time that is none', { expiresAt: 'soon' }],
    ['no address', { nextAction: { type: 'REDIRECT' } }],
    ['an address that is a script', { nextAction: { type: 'REDIRECT', url: 'javascript:1' } }],
    ['another action', { nextAction: { type: 'POST', url } }],
  ])('with %s it is Unknown', async (_name, change) => {
    const client = await answering(200, { ...wanted, ...change });
    expect(await client.execute(asking)).toEqual(unknown);
    expect(await client.lookUp(asking)).toEqual(unknown);
  });

  test('of a capture it is Unknown', async () => {
    const capture = followUp('CAPTURE', asking, { operationId: asking.operationId });
    const client = await answering(200, wanted);
    expect(await client.lookUp(capture)).toEqual(unknown);
  });
});

describe('provider.md: fences and look-ups', () => {
  const fenced = { operationId: operation.operationId, outcome: 'FENCED' };

  test('409 FENCED to a PUT is NotSent, for this very operation alone', async () => {
    const client = await answering(409, fenced);
    expect(await client.execute(operation)).toEqual({
      outcome: 'NOT_SENT',
      byProvider: true,
      reason: 'fenced',
    });
    expect(await client.execute(authorize())).toEqual(unknown);
    expect(await client.fence(operation)).toEqual(unknown);
  });

  test('409 with anything else is Unknown', async () => {
    const client = await answering(409, outcome);
    expect(await client.execute(operation)).toEqual(unknown);
  });

  test('200 FENCED to a DELETE is the fence, for this very operation alone', async () => {
    const client = await answering(200, fenced);
    expect(await client.fence(operation)).toEqual({ outcome: 'FENCED' });
    expect(await client.fence(authorize())).toEqual(unknown);
    expect(await client.lookUp(operation)).toEqual(unknown);
  });

  test('404 is NotFound to a GET and Unknown to a PUT or DELETE', async () => {
    const client = await answering(404, { error: 'nothing' });
    expect(await client.lookUp(operation)).toEqual({ outcome: 'NOT_FOUND' });
    expect(await client.execute(operation)).toEqual(unknown);
    expect(await client.fence(operation)).toEqual(unknown);
  });

  test('202 to a GET or DELETE: still at work', async () => {
    const client = await answering(202, {});
    expect(await client.lookUp(operation)).toEqual({ outcome: 'UNKNOWN', reason: 'at_work' });
    expect(await client.fence(operation)).toEqual({ outcome: 'UNKNOWN', reason: 'at_work' });
  });
});

describe("provider.md: of an answer's text only the codes go on, cleaned", () => {
  const declinedBy = async (codes: object, sent: ProviderOperation = operation) =>
    (await answering(200, { ...outcome, outcome: 'DECLINED', ...codes })).execute(sent);

  test('gaps §12: a code of the list goes on as it is', async () => {
    const codes = { failureCode: 'LOST_CARD', providerFailureCode: '41.lost-card_x' };
    expect(await declinedBy(codes)).toEqual({ outcome: 'DECLINED', ...codes });
  });

  test('gaps §12: an unmapped code becomes UNKNOWN_DECLINE and is kept beside it', async () => {
    expect(await declinedBy({ failureCode: 'card_velocity' })).toEqual({
      outcome: 'DECLINED',
      failureCode: 'UNKNOWN_DECLINE',
      providerFailureCode: 'card_velocity',
    });
    await provider?.close();
    await server?.close();
    expect(await declinedBy({ failureCode: 'card_velocity', providerFailureCode: '61' })).toEqual({
      outcome: 'DECLINED',
      failureCode: 'UNKNOWN_DECLINE',
      providerFailureCode: '61',
    });
  });

  test.each([{}, { failureCode: null, providerFailureCode: null }, { failureCode: '' }])(
    'a decline without a code is UNKNOWN_DECLINE (%#)',
    async (codes) => {
      expect(await declinedBy(codes)).toEqual({
        outcome: 'DECLINED',
        failureCode: 'UNKNOWN_DECLINE',
      });
    },
  );

  test.each([
    ['x'.repeat(100), 'x'.repeat(64)],
    ['no: money <b>left</b>\n', 'nomoneybleftb'],
    ['42424242424', '42424242424'],
    ['424242424242', undefined],
    [APPROVED_CARD, undefined],
    ['4242 4242 4242 4242', undefined],
    ['4242-4242-4242-4242', undefined],
    [`${'x'.repeat(55)}${APPROVED_CARD}`, undefined],
    ['💳', undefined],
  ])('a code %j becomes %j', async (sent, kept) => {
    const codes = { failureCode: 'LOST_CARD', providerFailureCode: sent };
    const response = await declinedBy(codes);
    expect(response).toEqual({
      outcome: 'DECLINED',
      failureCode: 'LOST_CARD',
      ...(kept === undefined ? {} : { providerFailureCode: kept }),
    });
  });

  test.each([
    [{ advice: 'DO_NOT_RETRY', networkDeclineCode: '05', networkAdviceCode: 'R0' }, {}],
    [{}, { advice: 'CALL_ME', networkDeclineCode: '123456789', networkAdviceCode: '0-5' }],
    [{}, { advice: null, networkDeclineCode: 5, networkAdviceCode: { code: '05' } }],
  ])(
    'gaps §23: of advice and the network codes it keeps %j, and drops %j',
    async (kept, dropped) => {
      expect(await declinedBy({ failureCode: 'LOST_CARD', ...kept, ...dropped })).toEqual({
        outcome: 'DECLINED',
        failureCode: 'LOST_CARD',
        ...kept,
      });
    },
  );

  test.each([
    ['2026-01-08T00:00:00.5+01:00', '2026-01-07T23:00:00.500Z'],
    ['2026-01-08', undefined],
    ['9999-12-31T23:59:59-05:00', undefined],
    [1_767_830_400, undefined],
  ])('gaps §24: an end of the authorization %j is read as %j', async (sent, read) => {
    const client = await answering(200, { ...outcome, authorizationExpiresAt: sent });
    const { providerReference } = outcome;
    expect(await client.execute(operation)).toEqual({
      outcome: 'APPROVED',
      providerReference,
      authorizationExpiresAt: read,
    });
  });

  test('a reference that holds a card number is dropped', async () => {
    const client = await answering(200, { ...outcome, providerReference: APPROVED_CARD });
    expect(await client.execute(operation)).toEqual({ outcome: 'APPROVED' });
  });
});

describe('provider.md: what the driver sends', () => {
  const received = async (
    sent: ProviderOperation,
    path = '',
  ): Promise<{ url: string; headers: NodeJS.Dict<string | string[]>; body: unknown }> => {
    const arrived = Promise.withResolvers<Awaited<ReturnType<typeof received>>>();
    server = await httpServer(async (request, response) => {
      const chunks = await request.toArray();
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8'));
      arrived.resolve({ url: request.url ?? '', headers: request.headers, body });
      response.end('{}');
    });
    await clientOf(server.url + path, PATIENT, 'the-token').execute(sent);
    return arrived.promise;
  };

  test('an authorization with its card, and the bearer token', async () => {
    const address = { street: '1 High St', city: 'Berlin', zip: '10115', country: 'DE' };
    const ofMerchant = {
      merchantReference: 'order-7',
      metadata: { order: '7' },
      initiatedBy: 'CONSUMER' as const,
      billing: { address },
      consumer: { firstName: 'Jane', email: 'jane@example.com' },
    };
    const sent = authorize(undefined, { descriptor: 'SHOP', ...ofMerchant });
    const { url, headers, body } = await received(sent, '/v1/');
    expect(url).toBe(`/v1/operations/${sent.operationId}`);
    expect(headers).toMatchObject({
      authorization: 'Bearer the-token',
      'content-type': 'application/json',
    });
    const card = {
      number: APPROVED_CARD,
      holderName: 'Jane Doe',
      expiryMonth: '12',
      expiryYear: '2030',
      cvv: CVV,
    };
    const common = { paymentId: 'pay_1', amount: 2000, currency: 'USD' };
    expect(body).toEqual({ kind: 'AUTHORIZE', ...common, card, descriptor: 'SHOP', ...ofMerchant });
  });

  test('a refund with its authorization and no card', async () => {
    const { body } = await received(followUp('REFUND', operation, { amount: 5 }));
    const authorizationId = operation.operationId;
    const common = { paymentId: 'pay_1', amount: 5, currency: 'USD' };
    expect(body).toEqual({ kind: 'REFUND', ...common, authorizationId });
  });
});
