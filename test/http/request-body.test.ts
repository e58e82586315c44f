/** A request body is read as JSON (gaps §3), and no body keeps the service busy for long (A5). */
import { describe, expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { SearchParameters } from '../../audit/parameters.ts';
import { ResolveRequest } from '../../command-api/back-office/by-hand/contract.ts';
import { textsOf } from '../../command-api/request/card-texts.ts';
import { AMOUNTS } from '../../command-api/request/json.ts';
import { parseCreate, readCreate } from '../../command-api/request/payment-request.ts';
import payment from '../../examples/payment.json' with { type: 'json' };
import { cleanCode } from '../../providers/transport.ts';
import { cursorOf } from '../../shared/http/cursor.ts';
import { longRuns, runsHoldCard } from '../../shared/runtime/card-numbers.ts';
import { parseText, textOf } from '../../shared/runtime/json.ts';
import { receivedTraceparent } from '../../shared/runtime/tracing.ts';
import { WebhookEndpointRequest } from '../../webhooks/endpoints/contract.ts';
import { TIMES_JSON_PARSE_MAX } from '../support/time-bounds.ts';

/** The JSON value of a text that is a whole body. */
const json = (text: string) => {
  const parsed = parseText(textOf(Buffer.from(text)));
  if (!parsed.ok) throw new Error('not JSON');
  return parsed.value;
};

describe('gaps §3: a body is read as JSON', () => {
  test.each([
    ['nothing', ''],
    ['white space', ' \r\n\t '],
    ['a byte order mark alone', '\ufeff'],
  ])('%s is no body', (_name, text) => {
    expect(parseText(textOf(Buffer.from(text)))).toEqual({ ok: true, value: undefined });
  });

  test('a byte order mark is skipped', () => {
    expect(json('\ufeff{"a":1}')).toEqual({ a: 1 });
  });

  test.each([
    ['invalid UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['a space that JSON does not know', Buffer.from('\u00a0')],
    ['a form feed', Buffer.from('\f')],
    ['half a JSON', Buffer.from('{"a":')],
    ['half a surrogate pair', Buffer.from('{"a":"\\ud800"}')],
    ['30,000 brackets', Buffer.from('['.repeat(30000))],
  ])('%s is not JSON', (_name, bytes) => {
    expect(parseText(textOf(bytes))).toMatchObject({ ok: false });
  });

  test.each([
    ['a body that breaks off', '{"amount":', 10],
    ['a comma before the end', '{"amount":1,}', 12],
    ['a second body behind the first', '{} {}', 3],
  ])('%s: the place is known', (_name, text, at) => {
    expect(parseText(text)).toEqual({ ok: false, at });
  });

  test('a place that the text itself names is none', () => {
    const text = 'x in JSON at position 42';
    expect(parseText(text)).toEqual({ ok: false });
  });

  test('a whole surrogate pair is one character', () => {
    expect(json('"\\ud83d\\ude00"')).toBe('😀');
  });
});

describe('A5: no request keeps the service busy for long, whatever is in it', () => {
  const BYTES = 65_536;

  /** The thread's clock goes in steps of up to 4 ms, so that work is repeated for a while. */
  const MEASURED_US = 10_000;
  const cpuUsOf = (work: () => unknown): number => {
    const start = process.threadCpuUsage();
    for (let times = 1; ; times += 1) {
      work();
      const { user, system } = process.threadCpuUsage(start);
      if (user + system >= MEASURED_US) return (user + system) / times;
    }
  };
  /** Of three times, the first of which meets code that is not compiled yet. */
  const leastCpuUsOf = (work: () => unknown): number =>
    Math.min(cpuUsOf(work), cpuUsOf(work), cpuUsOf(work));

  /** Of as many bytes in small values: JSON.parse takes one long text at once. */
  const SMALL_VALUES = JSON.stringify(Array(BYTES / 8).fill({ a: 1 }));
  const jsonParseUs = leastCpuUsOf(() => JSON.parse(SMALL_VALUES));
  /** Of the dearest of the searches. */
  const timesJsonParse = (text: string, searches: ((bytes: Buffer) => unknown)[]): number => {
    const bytes = Buffer.from(text);
    const searchUs = searches.map((search) => leastCpuUsOf(() => search(bytes)));
    return Math.max(...searchUs) / jsonParseUs;
  };

  const number = '4242424242424242';
  const card = { number, holderName: 'Ada', expiryMonth: '12', expiryYear: '2030' };
  const create = { amount: 1, currency: 'USD', paymentMethod: { type: 'CARD', card } };
  const filled = (unit: string): string =>
    unit.repeat(Math.floor((BYTES - 500) / Buffer.byteLength(unit)));
  const bodyWith = (field: string): string => JSON.stringify(create).replace('{', `{${field},`);
  const items = (name: string) => {
    const item = { id: name, name, quantity: 1, unitPrice: 1, goodsType: 'DIGITAL' };
    const count = Math.floor((BYTES - 2000) / Buffer.byteLength(JSON.stringify(item)));
    return { ...create, productItems: Array(Math.min(200, count)).fill(item) };
  };
  /** Numbers that differ in their ends, and texts that have all their beginnings. */
  const spelled = Array.from({ length: 1000 }, (_, at) => `${'0'.repeat(14)}${1000 + at}`);

  const searchCreate = (bytes: Buffer): void => {
    const text = textOf(bytes);
    const read = parseText(text, AMOUNTS);
    if (!read.ok) throw new Error('not JSON');
    expect(parseCreate(read.value, undefined, text, read.repeated).ok).toBe(true);
  };
  const searchChange =
    (bin: string | undefined) =>
    (bytes: Buffer): void => {
      const read = parseText(textOf(bytes), AMOUNTS);
      if (!read.ok) throw new Error('not JSON');
      expect(runsHoldCard(textsOf(read.value).flatMap(longRuns), bin, '7778')).toBe(false);
    };

  test.each([
    ['digits', bodyWith(`"x":"${filled('7')}"`)],
    ['zeros', bodyWith(`"x":"${filled('0')}"`)],
    ['Arabic digits', bodyWith(`"x":"${filled('\u0663')}"`)],
    ['circled numbers of two digits', bodyWith(`"x":"${filled('\u3251')}"`)],
    ['blocks of one digit', bodyWith(`"x":"${filled('4-')}"`)],
    ['letters', bodyWith(`"x":"${filled('a')}"`)],
    ['characters of two units', bodyWith(`"x":"${filled('\u{1f600}')}"`)],
    ['numbers of 300 digits', bodyWith(`"x":[${Array(217).fill('1'.repeat(300)).join()}]`)],
    ['one number of 60,000 zeros', bodyWith(`"x":1${'0'.repeat(60_000)}1`)],
    ['fractions', bodyWith(`"x":[${filled('1.5,')}1]`)],
    ['a spelled number of 60,000 digits', bodyWith(`"x":{"number":"${'5'.repeat(60_000)}"}`)],
    ['names', bodyWith(filled('"n":1,').slice(0, -1))],
    ['escapes', bodyWith(`"x":"${filled('\\u0034')}"`)],
    ['blocks of one digit in kept texts', JSON.stringify(items('4-'.repeat(60)))],
    ['zeros in kept texts', JSON.stringify(items('0'.repeat(110)))],
    ['Arabic digits in kept texts', JSON.stringify(items('\u0663'.repeat(60)))],
    [
      '1,000 spelled numbers and texts with the beginning of each',
      JSON.stringify({
        ...items('0'.repeat(240)),
        x: spelled.map((number) => ({ number })),
      }).replace(/(\{"id":[^}]*\},){60}/, ''),
    ],
  ])('a create and a capture of %s', (_name, text) => {
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(BYTES);
    const searches = [searchCreate, searchChange('777777'), searchChange(undefined)];
    expect(timesJsonParse(text, searches)).toBeLessThan(TIMES_JSON_PARSE_MAX);
  });

  const BLOCKS = filled('4-');
  test.each<[string, () => unknown, unknown]>([
    [
      "an operator's evidence",
      () => ResolveRequest.safeParse({ outcome: 'approved', evidence: BLOCKS }).success,
      false,
    ],
    [
      "a webhook's description",
      () =>
        WebhookEndpointRequest.safeParse({ url: 'https://shop.example/', description: BLOCKS })
          .success,
      false,
    ],
    ["an auditor's search", () => SearchParameters.safeParse({ q: BLOCKS }).success, false],
    [
      "an auditor's cursor",
      () =>
        SearchParameters.safeParse({
          cursor: `${cursorOf({ createdAt: '2026-11-29T00:00:00.000Z', paymentId: 'pay_1' })}=${BLOCKS}`,
        }).success,
      false,
    ],
    ["a provider's code", () => cleanCode(BLOCKS), BLOCKS.slice(0, 64)],
    [
      "a trace's header",
      () =>
        receivedTraceparent(`01-${'a'.repeat(32)}-${'b'.repeat(16)}-01-${BLOCKS}`) === undefined,
      false,
    ],
  ])('%s', (_name, search, found) => {
    const times = timesJsonParse(JSON.stringify(BLOCKS), [() => expect(search()).toBe(found)]);
    expect(times).toBeLessThan(TIMES_JSON_PARSE_MAX);
  });

  test('every text of a body that is nested deeper than the stack is met', () => {
    const depth = 9_000;
    const text = `${'{"a":'.repeat(depth)}["b"]${'}'.repeat(depth)}`;
    expect(textsOf(json(text)).slice(-2)).toEqual(['a', 'b']);
    expect(textsOf(json(`${'['.repeat(30_000)}"b"${']'.repeat(30_000)}`))).toEqual(['b']);
  });
});

test.each([
  ['of a request that is read', {}, 'true'],
  ['of one whose Idempotency-Key is malformed', { 'idempotency-key': 'two words' }, 'false'],
])('gaps §4: the bytes of the body %s are overwritten', async (_which, headers, isRead) => {
  const app = Fastify();
  let bytes: unknown;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.post('/', async (request) => {
    bytes = request.body;
    return readCreate(request).ok;
  });
  const { body } = await app.inject({ method: 'POST', url: '/', headers, payload: payment });
  await app.close();
  expect(body).toBe(isRead);
  expect(bytes).toEqual(Buffer.alloc(JSON.stringify(payment).length));
});
