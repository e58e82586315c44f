/** How the HTTP driver reads what a provider does wrong (provider.md, "How an answer is read"). */
import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from '@jest/globals';
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
import { APPROVED_CARD, authorize, CVV, followUp, JANE } from '../support/provider-operations.ts';
import { AWAITED_MS, ENDS_MS_MAX, HANGS_MS } from '../support/time-bounds.ts';
import { within } from '../support/until.ts';

/** For a server that leaves a call without an end, which has to be sent before. */
const HASTY = { connectTimeoutMs: AWAITED_MS, timeoutMs: AWAITED_MS };
/** For a server that responds at once. */
const PATIENT = { connectTimeoutMs: HANGS_MS, timeoutMs: HANGS_MS };

const unknown = { outcome: 'UNKNOWN', reason: expect.stringMatching(/^[a-z_]+$/) };
const NOT_SENT = { outcome: 'NOT_SENT' };
const FENCED = { outcome: 'FENCED' };

const opened: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

const clientOf = (url: string, times = PATIENT, token?: string): LoggedProvider => {
  const client = withLog(httpProvider({ url, token, ...times }));
  opened.push(client);
  return client;
};
const serving = (server: FaultyServer): FaultyServer => {
  opened.push(server);
  return server;
};

const operation = authorize();
const outcome = {
  operationId: operation.operationId,
  outcome: 'APPROVED',
  amount: operation.amount,
  currency: operation.currency,
  providerReference: 'ref_1',
};
const whole = JSON.stringify(outcome);

const answering = async (status: number, body: unknown): Promise<LoggedProvider> => {
  const server = await httpServer((_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  });
  return clientOf(serving(server).url);
};
/** Said to a PUT, a GET and a DELETE at once, each in time. */
const saidBy = ({ execute, lookUp, fence }: LoggedProvider, about = operation): Promise<object[]> =>
  Promise.all(
    [execute, lookUp, fence].map((call) => within<object>(ENDS_MS_MAX, () => call(about))),
  );
const ALL_UNKNOWN = [unknown, unknown, unknown];

test('provider.md: a ledger without since is one from the start, and one of another time is none', async () => {
  const since = '2026-01-01T00:00:00.000Z';
  const page = { operations: [], next: null };
  for (const said of [undefined, '2026-01-01T01:00:00+01:00']) {
    const client = await answering(200, { ...page, since: said });
    expect((await client.ledger(null, 1, since)).since).toBe(said && since);
  }
  const client = await answering(200, { ...page, since: '2026-01-01T00:00:00.001Z' });
  await expect(client.ledger(null, 1, since)).rejects.toThrow('another time');
  await expect(client.ledger(null, 1)).rejects.toThrow('another time');
});

describe('provider.md: what is said of a card token', () => {
  const CARD = { brand: 'VISA', last4: '4242', expiryMonth: '12', expiryYear: '2034' };
  const described = { outcome: 'DESCRIBED', ...CARD };
  const own = { ...CARD, brand: 'Visa!', more: 1 };
  test.each<[string, number, unknown, object]>([
    ['a card', 200, { ...CARD, bin: '42424242' }, { ...described, bin: '42424242' }],
    ['a brand of its own', 200, own, { ...described, brand: undefined }],
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
});

describe('provider.md: never connected is NotSent, and Unknown to a question', () => {
  const neverConnected = async (client: LoggedProvider): Promise<void> => {
    expect(await saidBy(client)).toEqual([NOT_SENT, unknown, unknown]);
    expect(await client.describeToken('tok_1', 'm_1')).toEqual(unknown);
    await expect(client.ledger(null, 1)).rejects.toThrow('ledger');
  };

  test('connection refused', async () => neverConnected(clientOf(await refusedUrl())));

  test('connection refused by every address of a name', async () =>
    neverConnected(clientOf((await refusedUrl()).replace('127.0.0.1', 'localhost'))));

  test('a name that does not exist', () => neverConnected(clientOf('http://no-such-host.invalid')));

  test('no connection in time', async () => {
    const hole = await blackHole();
    if ('skip' in hole) return process.stderr.write(`skipped: ${hole.skip}\n`);
    opened.push(hole);
    await neverConnected(clientOf(hole.url, { ...PATIENT, connectTimeoutMs: 200 }));
  });
});

describe('provider.md: everything else is Unknown, in time, and sent once', () => {
  const padded = (bytes: number) => JSON.stringify({ ...outcome, padding: 'x'.repeat(bytes) });
  const drip = (response: ServerResponse): void => {
    const text = padded(500);
    response.writeHead(200, { 'content-length': text.length });
    let at = 0;
    const timer = setInterval(() => {
      response.write(text.charAt(at));
      at += 1;
    }, 20);
    response.once('close', () => clearInterval(timer));
  };
  const ENDLESS: [string, (response: ServerResponse) => void][] = [
    ['no answer at all', () => undefined],
    ['headers and then nothing', (response) => response.writeHead(200).flushHeaders()],
    ['a slow drip', drip],
    ['a slow drip of a refusal', (response) => response.writeHead(404).write(' ')],
  ];
  const sentOnce = ['DELETE', 'GET', 'PUT'].map(
    (method) => `${method} /operations/${operation.operationId}`,
  );

  test.each(ENDLESS)('%s', async (_name, fault) => {
    const server = serving(await httpServer((_request, response) => fault(response)));
    expect(await saidBy(clientOf(server.url, HASTY))).toEqual(ALL_UNKNOWN);
    expect(server.requests.toSorted()).toEqual(sentOnce);
  });

  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n';
  test.each<[string, Parameters<typeof rawServer>[0]]>([
    ['a reset before the answer', (socket) => socket.resetAndDestroy()],
    ['a connection closed before the answer', (socket) => socket.end()],
    ['a reset within the answer', (socket) => socket.write(head, () => socket.resetAndDestroy())],
    ['an answer cut short', (socket) => socket.end(`${head}${whole}`)],
    ['no HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n')],
  ])('%s', async (_name, fault) => {
    const server = serving(await rawServer(fault));
    expect(await saidBy(clientOf(server.url))).toEqual(ALL_UNKNOWN);
    expect(server.requests.toSorted()).toEqual(sentOnce);
  });

  test.each([301, 302, 303, 307, 308])('a redirect, %s, to where an outcome is', async (status) => {
    const server = await httpServer(({ url }, response) => {
      if (url === '/outcome') response.writeHead(200).end(whole);
      else response.writeHead(status, { location: '/outcome' }).end();
    });
    expect(await saidBy(clientOf(serving(server).url))).toEqual(ALL_UNKNOWN);
  });

  const withAmount = (amount: string) => whole.replace(/"amount":[0-9]+/, `"amount":${amount}`);
  const opening = (more: string) => whole.replace('{', `{${more},`);
  test.each<[string, number, unknown]>([
    ['no content', 204, ''],
    ['still at work', 202, {}],
    ['an outcome with 202', 202, outcome],
    ['400', 400, {}],
    ['429', 429, {}],
    ['500', 500, outcome],
    ['HTML', 200, '<html><p>APPROVED</p></html>'],
    ['an empty body', 200, ''],
    ['null', 200, 'null'],
    ['cut JSON', 200, whole.slice(0, -1)],
    ['a body over 64 KiB', 200, padded(65_536)],
    ['a fraction too small for a double', 200, withAmount('2000.00000000000000001')],
    ['an exponent and a fraction', 200, withAmount('2.0000000000000000000001e3')],
    ['outcome twice', 200, whole.replace('"outcome"', '"outcome":"DECLINED","outcome"')],
    ['amount twice, once as an escape', 200, opening('"\\u0061mount":1')],
    ['a key twice in an object inside', 200, opening('"more":[{"a":1,"a":2}]')],
    ['bytes that are no UTF-8', 200, Buffer.from(opening('"more":"\xff"'), 'latin1')],
    ['half of a surrogate pair', 200, opening('"more":"\\ud83d"')],
    ["another operation's id", 200, { ...outcome, operationId: 'other' }],
    ['another amount', 200, { ...outcome, amount: 2001 }],
    ['an amount as text', 200, { ...outcome, amount: '2000' }],
    ['another currency', 200, { ...outcome, currency: 'EUR' }],
    ['another outcome', 200, { ...outcome, outcome: 'PENDING' }],
    ['no outcome', 200, { ...outcome, outcome: undefined }],
    ['no reference', 200, { ...outcome, providerReference: undefined }],
  ])('%s', async (_name, status, body) => {
    const client = await answering(status, body);
    expect(await saidBy(client)).toEqual(ALL_UNKNOWN);
    await expect(client.ledger(null, 1)).rejects.toThrow('ledger');
  });

  test.each<[string, string]>([
    ['2000.00', withAmount('2000.00')],
    ['2e3', withAmount('2e3')],
    ['colons, quotes and braces inside texts', opening('"a:\\"b":"\\\\","c":"{\\":\\":"')],
    ['one key in many objects', opening('"__proto__":{"a":1},"more":[{"a":1},{"a":2}]')],
    ['line breaks and a byte order mark', `\ufeff${JSON.stringify(outcome, null, 2)}`],
    ['just under 64 KiB, unknown fields and all', padded(65_000)],
  ])('but one with %s is read', async (_name, body) => {
    const approved = { outcome: 'APPROVED', providerReference: 'ref_1' };
    expect(await saidBy(await answering(200, body))).toEqual([approved, approved, approved]);
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
  const required = { outcome: 'ACTION_REQUIRED', url, expiresAt: '2026-01-15T10:15:00.000Z' };
  test.each<[string, object, object]>([
    ['as it should', {}, required],
    ['with another amount', { amount: 1 }, unknown],
    ['with another operation', { operationId: 'OP_other' }, unknown],
    ['with no time', { expiresAt: undefined }, unknown],
    ['with a time that is none', { expiresAt: 'soon' }, unknown],
    ['with no address', { nextAction: { type: 'REDIRECT' } }, unknown],
    ['with a script', { nextAction: { type: 'REDIRECT', url: 'javascript:1' } }, unknown],
    ['with another action', { nextAction: { type: 'POST', url } }, unknown],
  ])('%s, to a PUT and to a GET; a DELETE decides', async (_name, change, expected) => {
    const client = await answering(200, { ...wanted, ...change });
    expect(await saidBy(client, asking)).toEqual([expected, expected, unknown]);
  });

  test('of a capture it is Unknown', async () => {
    const capture = followUp('CAPTURE', asking, { operationId: asking.operationId });
    expect(await (await answering(200, wanted)).lookUp(capture)).toEqual(unknown);
  });
});

describe('provider.md: fences and look-ups, of this very operation alone', () => {
  const fenced = { operationId: operation.operationId, outcome: 'FENCED' };
  const neverSent = { ...NOT_SENT, byProvider: true, reason: 'fenced' };
  const atWork = { outcome: 'UNKNOWN', reason: 'at_work' };
  test.each<[string, number, object, object[]]>([
    ['409 FENCED', 409, fenced, [neverSent, unknown, unknown]],
    ['409 FENCED of another one', 409, { ...fenced, operationId: 'OP_other' }, ALL_UNKNOWN],
    ['409 with anything else', 409, outcome, ALL_UNKNOWN],
    ['200 FENCED', 200, fenced, [unknown, unknown, FENCED]],
    ['200 FENCED of another one', 200, { ...fenced, operationId: 'OP_other' }, ALL_UNKNOWN],
    ['404', 404, { error: 'nothing' }, [unknown, { outcome: 'NOT_FOUND' }, unknown]],
    ['202', 202, {}, [unknown, atWork, atWork]],
  ])('%s to a PUT, a GET and a DELETE', async (_name, status, body, expected) => {
    expect(await saidBy(await answering(status, body))).toEqual(expected);
  });
});

describe("provider.md: of an answer's text only the codes go on, cleaned", () => {
  const DECLINED = { outcome: 'DECLINED', failureCode: 'LOST_CARD' };
  const UNMAPPED = { outcome: 'DECLINED', failureCode: 'UNKNOWN_DECLINE' };
  const NETWORK = { advice: 'DO_NOT_RETRY', networkDeclineCode: '05', networkAdviceCode: 'R0' };
  const OTHER = { advice: 'CALL_ME', networkDeclineCode: '123456789', networkAdviceCode: '0-5' };
  const NONE = { advice: null, networkDeclineCode: 5, networkAdviceCode: { code: '05' } };
  const velocity = 'card_velocity';
  const unmapped = (providerFailureCode: string) => ({ ...UNMAPPED, providerFailureCode });
  test.each<[string, object, object]>([
    ['gaps §12: of the list', { failureCode: 'LOST_CARD' }, DECLINED],
    ['gaps §12: unmapped', { failureCode: velocity }, unmapped(velocity)],
    [
      'gaps §12: unmapped, with its own',
      { failureCode: velocity, providerFailureCode: '61' },
      unmapped('61'),
    ],
    ['none', {}, UNMAPPED],
    ['null', { failureCode: null, providerFailureCode: null }, UNMAPPED],
    ['empty', { failureCode: '' }, UNMAPPED],
    ['gaps §23: of the network', { ...DECLINED, ...NETWORK }, { ...DECLINED, ...NETWORK }],
    ['gaps §23: in another form', { ...DECLINED, ...OTHER }, DECLINED],
    ['gaps §23: of another type', { ...DECLINED, ...NONE }, DECLINED],
  ])('codes: %s', async (_name, codes, expected) => {
    const client = await answering(200, { ...outcome, ...codes, outcome: 'DECLINED' });
    expect(await client.execute(operation)).toEqual(expected);
  });

  test.each([
    ['41.lost-card_x', '41.lost-card_x'],
    ['x'.repeat(100), 'x'.repeat(64)],
    ['no: money <b>left</b>\n', 'nomoneybleftb'],
    ['42424242424', '42424242424'],
    ['424242424242', undefined],
    [APPROVED_CARD, undefined],
    ['4242 4242 4242 4242', undefined],
    ['4242-4242-4242-4242', undefined],
    [`${'x'.repeat(55)}${APPROVED_CARD}`, undefined],
    ['💳', undefined],
  ])('a code or reference %j becomes %j', async (providerFailureCode, kept) => {
    const declined = await answering(200, { ...outcome, ...DECLINED, providerFailureCode });
    const expected = { ...DECLINED, providerFailureCode: kept };
    expect(await declined.execute(operation)).toEqual(expected);
    const client = await answering(200, { ...outcome, providerReference: providerFailureCode });
    const approved = { outcome: 'APPROVED', providerReference: kept };
    expect(await client.execute(operation)).toEqual(approved);
  });

  test.each([
    ['2026-01-08T00:00:00.5+01:00', '2026-01-07T23:00:00.500Z'],
    ['2026-01-08', undefined],
    ['9999-12-31T23:59:59-05:00', undefined],
    [1_767_830_400, undefined],
  ])('gaps §24: an end of the authorization %j is read as %j', async (sent, read) => {
    const client = await answering(200, { ...outcome, authorizationExpiresAt: sent });
    const { providerReference } = outcome;
    const approved = { outcome: 'APPROVED', providerReference, authorizationExpiresAt: read };
    expect(await client.execute(operation)).toEqual(approved);
  });
});

describe('provider.md: what the driver sends', () => {
  const received = async (sent: ProviderOperation, path = '') => {
    const arrived: { url?: string; headers?: object; body?: unknown } = {};
    const server = await httpServer(async (request, response) => {
      const body = JSON.parse(Buffer.concat(await request.toArray()).toString('utf8'));
      Object.assign(arrived, { url: request.url, headers: request.headers, body });
      response.end('{}');
    });
    await clientOf(serving(server).url + path, PATIENT, 'the-token').execute(sent);
    return arrived;
  };

  test('an authorization with its card, and the bearer token', async () => {
    const address = { street: '1 High St', city: 'Berlin', zip: '10115', country: 'DE' };
    const ofMerchant = {
      descriptor: 'SHOP',
      merchantReference: 'order-7',
      metadata: { order: '7' },
      initiatedBy: 'CONSUMER' as const,
      billing: { address },
      consumer: { firstName: 'Jane', email: 'jane@example.com' },
    };
    const sent = authorize(undefined, ofMerchant);
    const card = { number: APPROVED_CARD, ...JANE, cvv: CVV };
    const common = { paymentId: 'pay_1', amount: 2000, currency: 'USD' };
    expect(await received(sent, '/v1/')).toEqual({
      url: `/v1/operations/${sent.operationId}`,
      headers: expect.objectContaining({
        authorization: 'Bearer the-token',
        'content-type': 'application/json',
      }),
      body: { kind: 'AUTHORIZE', ...common, card, ...ofMerchant },
    });
  });

  test('a refund with its authorization and no card', async () => {
    const { body } = await received(followUp('REFUND', operation, { amount: 5 }));
    const authorizationId = operation.operationId;
    const common = { paymentId: 'pay_1', amount: 5, currency: 'USD' };
    expect(body).toEqual({ kind: 'REFUND', ...common, authorizationId });
  });
});
