/** A request body is read as JSON (gaps §3), and no body keeps the service busy for long (A5). */
import { describe, expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { WebhookEndpointRequest } from '../../command-api/endpoints/contract.ts';
import { ResolveRequest } from '../../command-api/operator/contract.ts';
import { textsOf } from '../../command-api/request/json.ts';
import { parseCreate } from '../../command-api/request/payment-request.ts';
import { readCreate } from '../../command-api/request/read-request.ts';
import payment from '../../examples/payment.json' with { type: 'json' };
import { textsHoldCard } from '../../shared/runtime/card-numbers.ts';
import { parseText, textOf } from '../../shared/runtime/json.ts';
import { receivedTraceparent } from '../../shared/runtime/tracing.ts';

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

describe('A5: no body keeps the service busy for long', () => {
  const CPU_MS_MAX = 300;
  /** The processor time that the work takes in this thread, however busy the machine is. */
  const cpuMsOf = (work: () => void): number => {
    const before = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  };

  test('every text of a body that is nested deeper than the stack is met', () => {
    const depth = 9_000;
    const text = `${'{"a":'.repeat(depth)}["b"]${'}'.repeat(depth)}`;
    expect(textsOf(json(text)).slice(-2)).toEqual(['a', 'b']);
    expect(textsOf(json(`${'['.repeat(30_000)}"b"${']'.repeat(30_000)}`))).toEqual(['b']);
  });

  test('a number of 60,000 zeros is read in 300 ms of processor time', () => {
    const body = Buffer.from(`{"amount":1${'0'.repeat(60_000)}1}`);
    expect(cpuMsOf(() => expect(parseText(textOf(body)).ok).toBe(true))).toBeLessThan(CPU_MS_MAX);
  });

  test('a text of 60,000 digits is searched for the card number in 300 ms of processor time', () => {
    const digits = '4'.repeat(60_000);
    expect(
      cpuMsOf(() => expect(textsHoldCard([digits], '444444', '4448')).toBe(false)),
    ).toBeLessThan(CPU_MS_MAX);
  });

  test('texts are searched for 2,000 numbers that the body spells in 300 ms of processor time', () => {
    const spelled = Array.from({ length: 2_000 }, (_, index) => 10 ** 11 + 7 * index);
    const item = {
      id: '9'.repeat(255),
      name: 'x',
      quantity: 1,
      unitPrice: 1,
      goodsType: 'DIGITAL',
    };
    const card = {
      number: '4'.repeat(16),
      holderName: 'Ada',
      expiryMonth: '12',
      expiryYear: '2030',
    };
    const body = {
      amount: 1,
      currency: 'USD',
      paymentMethod: { type: 'CARD', card },
      productItems: Array(100).fill(item),
      x: { number: spelled.join('x') },
    };
    const read = () => expect(parseCreate(body, undefined, JSON.stringify(body)).ok).toBe(true);
    expect(cpuMsOf(read)).toBeLessThan(CPU_MS_MAX);
  });

  test("an operator's evidence, a webhook's description and a trace's header are not searched beyond their sizes", () => {
    const evidence = '4 '.repeat(30_000);
    const description = '4 '.repeat(1_000_000);
    const later = `01-${'a'.repeat(32)}-${'b'.repeat(16)}-01-${description}`;
    const searched = () => {
      expect(ResolveRequest.safeParse({ outcome: 'approved', evidence }).success).toBe(false);
      const endpoint = { url: 'https://shop.example/', description };
      expect(WebhookEndpointRequest.safeParse(endpoint).success).toBe(false);
      expect(receivedTraceparent(later)).toBeDefined();
    };
    expect(cpuMsOf(searched)).toBeLessThan(CPU_MS_MAX);
  });
});

test('gaps §4: the bytes of a body are overwritten once they have been read', async () => {
  const app = Fastify();
  let bytes: unknown;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.post('/', async (request) => {
    bytes = request.body;
    return readCreate(request).ok;
  });
  const { body } = await app.inject({ method: 'POST', url: '/', payload: payment });
  await app.close();
  expect(body).toBe('true');
  expect(bytes).toEqual(Buffer.alloc(JSON.stringify(payment).length));
});
