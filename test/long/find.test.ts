/**
 * Find at many payments: what each kind of search takes by its route, request by request, until all
 * expected matches are there or everything was searched. FIND_PAYMENTS sets how many there are.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { type PaymentEvent, streamOf } from '../../shared/payment/payment-events.ts';
import { authorized, created, failed, newEvent } from '../support/payment-events.ts';
import { metricOf, type Service, startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { FILLED_MS_MAX, INDEXED_MS_MAX, SEARCHED_MS_MAX } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const PAYMENTS = Number(process.env.FIND_PAYMENTS ?? 200_000);
const AT_ONCE = 1_000;
/** So many matches are searched for at most: a page may bring more of them with its last slice. */
const SHOWN = 50;
const MERCHANTS = 4;
/** One of so many payments failed, and one has an amount that no other has: at the far end of the log. */
const RARE = Math.floor(PAYMENTS / 10);

const idOf = (n: number): string => `pay_${String(n).padStart(26, '0')}`;
const START = Date.parse('2026-01-01T00:00:00.000Z');
/** A payment each three seconds: a million of them take a month. */
const timeOf = (n: number): string => new Date(START + n * 3_000).toISOString();

const last4Of = (n: number): string => (n === RARE ? '9995' : String(1000 + (n % 5_000)));

const lifeOf = (n: number): PaymentEvent[] => {
  const amount = n === RARE ? 777_777 : 1_000 + (n % 50_000);
  const card = { last4: last4Of(n), holderName: 'Jane Doe', cvvPresentDuringAttempt: true };
  const intent = created({
    paymentId: idOf(n),
    merchantId: `m_${n % MERCHANTS}`,
    amount,
    card: { ...card, bin: '424242', expiryMonth: '12', expiryYear: '2030' },
    details: { merchantReference: `order-${n}` },
  });
  return [intent, n === RARE ? failed({ amount }) : authorized({ amount })];
};

const folder = temporaryFolder();
let service: Service;
let headers: Record<string, string>;

const fill = async (): Promise<void> => {
  const store = await openSqliteEventStore({ file: join(folder.path, 'events.sqlite') });
  for (let at = 0; at < PAYMENTS; at += AT_ONCE) {
    const group = Array.from({ length: Math.min(AT_ONCE, PAYMENTS - at) }, (_, n) => {
      const events = lifeOf(at + n).map((event) => newEvent(event, timeOf(at + n)));
      return store.append(streamOf(idOf(at + n)), 'none', events);
    });
    await Promise.all(group);
  }
  await store.close();
};

beforeAll(async () => {
  await fill();
  const env = { RATE_LIMIT_PER_SECOND: '0', VERIFY_INTERVAL_MS: '0', LOG_LEVEL: 'warn' };
  service = await startService({ dataDir: folder.path, env });
  const isCaughtUp = async () => (await metricOf(service, 'payments_projection_lag_events')) === 0;
  await until('the read models hold every payment', isCaughtUp, FILLED_MS_MAX);
  headers = { authorization: `Bearer ${await service.token('*', 'audit:read')}` };
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  folder.remove();
});

type Page = { payments: { paymentId: string }[]; next: string | null; searchedTo?: string };

/** Requests until so many matches are there or everything was searched. */
const search = async (query: string, count: number) => {
  const times: number[] = [];
  const found: Page['payments'] = [];
  let cursor = '';
  for (;;) {
    const from = performance.now();
    const response = await fetch(`${service.url}/audit/v1/payments?${query}${cursor}`, { headers });
    const page = (await response.json()) as Page;
    times.push(performance.now() - from);
    found.push(...page.payments);
    if ((count > 0 && found.length >= count) || page.next === null) return { times, found };
    cursor = `&cursor=${encodeURIComponent(page.next)}`;
  }
};

const middle = Math.floor(PAYMENTS / 2);
/**
 * `isAtOnce`: an index leads there, however old the payment is. It stands in each row: without it Jest
 * gives the test a callback in its place, and waits for it.
 */
const SEARCHES: [what: string, query: string, found: number, isAtOnce: boolean][] = [
  ['a payment id', `q=${idOf(RARE)}`, 1, true],
  ['a merchant reference', `q=order-${RARE}`, 1, true],
  ['a reference that is not there', 'q=order-none', 0, true],
  ['last four digits of many', 'q=4242', Math.min(SHOWN, Math.floor(PAYMENTS / 5_000)), false],
  ['last four digits of one', 'q=9995', 1, false],
  ['last four digits of none', 'q=9996', 0, false],
  ['a status of most', 'status=AUTHORIZED', SHOWN, true],
  ['a status of one', 'status=FAILED', 1, true],
  ['a status of none', 'status=VOIDED', 0, true],
  ['an amount of one', 'minAmount=777777&maxAmount=777777', 1, false],
  ['an amount of none', 'minAmount=900000', 0, false],
  ['an hour', `from=${timeOf(middle)}&to=${timeOf(middle + 1_200)}`, SHOWN, false],
  [
    'an hour and a status of none',
    `from=${timeOf(middle)}&to=${timeOf(middle + 1_200)}&status=VOIDED`,
    0,
    false,
  ],
  ['a merchant and a status of none', 'merchant=m_1&status=VOIDED', 0, true],
];

test.each(SEARCHES)('%s is found, or found missing', async (what, query, count, isAtOnce) => {
  // The first search starts the thread that searches.
  await search('q=warm', 0);
  const { times, found } = await search(query, count);
  const whole = times.reduce((sum, ms) => sum + ms, 0);
  process.stderr.write(
    `find: ${PAYMENTS} payments, ${what}: ${times.length} requests, the longest ${Math.max(...times).toFixed(0)} ms, ${whole.toFixed(0)} ms in all\n`,
  );
  expect(Math.min(found.length, SHOWN)).toBe(count);
  expect(Math.max(...times)).toBeLessThan(SEARCHED_MS_MAX);
  if (isAtOnce) expect(whole).toBeLessThan(INDEXED_MS_MAX);
});
