/** `GET /api/v1/payments`, the addition to the contract (docs/interface.md, "List payments"). */
import { describe, expect, test } from '@jest/globals';
import { cursorOf, placeAfter } from '../../shared/http/cursor.ts';
import { newPaymentId } from '../../shared/runtime/ids.ts';
import {
  type CommandResponse,
  expectError,
  PAYMENTS,
  serviceOfTests,
  token,
} from '../support/service-in-process.ts';

/** Of m_test, oldest first. */
const created: CommandResponse[] = [];

const list = (query = '', bearer?: string): Promise<CommandResponse> =>
  service.ask('GET', PAYMENTS + query, undefined, bearer === undefined ? {} : { token: bearer });
const idsOf = ({ json }: CommandResponse): string[] =>
  (json.payments as { paymentId: string }[]).map(({ paymentId }) => paymentId);
const ids = (): string[] => created.map(({ json }) => json.paymentId);

/** Newest first, as the list has them: by time, then by id. */
const newestFirst = (): string[] =>
  created
    .map(({ json }) => ({ id: json.paymentId, at: String(json.createdAt) }))
    .sort((a, b) => (a.at === b.at ? (a.id < b.id ? 1 : -1) : a.at < b.at ? 1 : -1))
    .map(({ id }) => id);

const service = await serviceOfTests();
await service.create({ merchantReference: '4242' }, { token: await token('m_other') });
for (let index = 0; index < 25; index += 1) {
  const fields = { captureNow: index % 5 === 0, merchantReference: `order-${index % 3}` };
  created.push(await service.create(fields));
}

describe('interface, list: a page', () => {
  test("holds the merchant's own payments alone, newest first, 20 without a limit", async () => {
    const response = await list();
    expect(response.status).toBe(200);
    expect(idsOf(response)).toEqual(newestFirst().slice(0, 20));
  });

  test('holds the bodies that GET gives, byte for byte', async () => {
    const { text } = await list('?limit=2');
    const [first = '', second = ''] = newestFirst();
    const bodies = [(await service.get(first)).text, (await service.get(second)).text];
    expect(text).toMatch(/^\{"payments":\[.*\],"nextCursor":"[\w-]+"\}$/);
    expect(text.startsWith(`{"payments":[${bodies.join(',')}],"nextCursor":"`)).toBe(true);
  });

  test('is empty for a merchant without payments', async () => {
    expect((await list('', await token('m_new'))).text).toBe('{"payments":[]}');
  });

  test('is stable: payments made meanwhile neither repeat a payment nor leave one out', async () => {
    const expected = newestFirst();
    const seen: string[] = [];
    let query = '?limit=7';
    for (let pages = 0; pages < 10 && query !== ''; pages += 1) {
      const response = await list(query);
      seen.push(...idsOf(response));
      created.push(await service.create());
      const cursor = response.json.nextCursor;
      query = cursor === undefined ? '' : `?limit=7&cursor=${cursor}`;
    }
    expect(seen).toEqual(expected);
  });
});

test('interface, list: a page ends at 256 KiB, and the cursor goes on from there', async () => {
  const bearer = await token('m_large');
  const productItems = Array.from({ length: 180 }, (_, n) => ({
    id: String(n),
    name: 'x'.repeat(200),
    goodsType: 'PHYSICAL',
    quantity: 1,
    unitPrice: 1,
  }));
  const large: string[] = [];
  for (let n = 0; n < 12; n += 1)
    large.push((await service.create({ productItems }, { token: bearer })).json.paymentId);
  const pages: string[][] = [];
  for (let query = '?limit=100'; query !== ''; ) {
    const response = await list(query, bearer);
    expect(Buffer.byteLength(response.text)).toBeLessThan(262_144 + 200);
    pages.push(idsOf(response));
    const cursor = response.json.nextCursor;
    query = cursor === undefined ? '' : `?limit=100&cursor=${cursor}`;
  }
  expect(pages.flat()).toEqual(large.toReversed());
  expect(pages.map(({ length }) => length)).toEqual([4, 4, 4]);
});

describe('interface, list: filters', () => {
  test('status selects payments of one status', async () => {
    const captured = created.filter(({ json }) => json.status === 'CAPTURED');
    const found = idsOf(await list('?status=CAPTURED&limit=100'));
    expect([...found].sort()).toEqual(captured.map(({ json }) => json.paymentId).sort());
    expect(found).toHaveLength(5);
  });

  test('merchantReference is compared as a whole, and with neither ids nor last four digits', async () => {
    const found = (await list('?merchantReference=order-1&limit=100')).json.payments as object[];
    expect(found).toHaveLength(8);
    for (const one of found) expect(one).toMatchObject({ merchantReference: 'order-1' });
    expect(idsOf(await list('?merchantReference=4242'))).toEqual([]);
    expect(idsOf(await list(`?merchantReference=${ids()[0]}`))).toEqual([]);
  });

  test('from is inclusive, to is exclusive, and both take any time offset', async () => {
    const at = String(created[10]?.json.createdAt);
    const since = idsOf(await list(`?from=${at}&limit=100`));
    const before = idsOf(await list(`?to=${at}&limit=100`));
    expect(since).toContain(ids()[10]);
    expect(before).not.toContain(ids()[10]);
    expect([...since, ...before]).toEqual(newestFirst());
    const shifted = new Date(Date.parse(at) + 7_200_000).toISOString().replace('Z', '%2B02:00');
    expect(idsOf(await list(`?from=${shifted}&limit=100`))).toEqual(since);
  });
});

describe('interface, list: errors', () => {
  const STATUSES = 'PENDING, AUTHORIZED, CAPTURED, REFUNDED, VOIDED, FAILED';
  test.each([
    ['limit=0', 'limit must be an integer from 1 to 100'],
    ['limit=101', 'limit must be an integer from 1 to 100'],
    ['limit=1&limit=2', 'limit must be a string'],
    ['status=PAID', `status must be one of ${STATUSES}`],
    ['from=yesterday', 'from must be a date-time, as in 2026-01-31T08:00:00Z'],
    ['to=2026-02-30T00:00:00Z', 'to must be a date-time, as in 2026-01-31T08:00:00Z'],
    ['merchantReference=', 'merchantReference must not be empty'],
    ['cursor=abc', 'cursor must be the nextCursor of an earlier answer'],
    ['stauts=CAPTURED', 'the parameters are status, from, to, merchantReference, limit, cursor'],
  ])('400: %s', async (query, detail) => {
    expectError(await list(`?${query}`), 400, 'INVALID_REQUEST', [detail]);
  });
});

const encoded = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

describe('the cursor of a page', () => {
  const createdAt = '2026-11-21T10:00:00.000Z';

  test('is read back as the place that it was made from', () => {
    const place = { createdAt, paymentId: newPaymentId() };
    expect(placeAfter(cursorOf(place))).toEqual(place);
  });

  test.each([
    // No page can have given one of these.
    ['no JSON', 'x'],
    ['three items', [createdAt, 'pay_1', 1]],
    ['a day that does not exist', ['2026-11-31T10:00:00.000Z', 'pay_1']],
    ['a time of another zone', ['2026-11-21T10:00:00.000+01:00', 'pay_1']],
    ['an id of another form', [createdAt, 'pay 1']],
  ])('is rejected when it holds %s', (_name, value) => {
    expect(placeAfter(encoded(value))).toBeUndefined();
  });
});
