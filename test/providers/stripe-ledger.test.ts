/** The books of Stripe as the driver reads them: the ledger, and what was made elsewhere (gaps §15, §28). */
import { describe, expect, test } from '@jest/globals';
import { LedgerEndNotFound, type PaymentQuestion } from '../../providers/port.ts';
import { authorize, followUp } from '../support/provider-operations.ts';
import { createBooks } from '../support/stripe-double/books.ts';
import {
  approvedBy,
  driverOver,
  keepIt,
  overDouble,
  TEST_ACCOUNT,
} from '../support/stripe-fault-rounds.ts';
import { takeAll } from './opened.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const WEEK_MS = 168 * HOUR_MS;
const over = overDouble(true);
const nowMs = (): number => Date.now() + over.aheadMs;
const nowS = (): number => Math.floor(nowMs() / 1_000);

const made = (kind: 'SALE' | 'AUTHORIZE', paymentId = 'pay_1') =>
  approvedBy(over.provider, authorize(undefined, { kind, paymentId }));
type Made = Awaited<ReturnType<typeof made>>;
const change = async (kind: 'CAPTURE' | 'VOID' | 'REFUND', of: Made, amount = 2000) => {
  const { operation, authorizationReference } = of;
  const changed = followUp(kind, operation, { authorizationReference, amount });
  expect((await over.provider.execute(changed, keepIt)).outcome).toBe('APPROVED');
  return changed;
};
/** In the books alone, by the operation `op_<n>`; `created` in seconds since 1970. */
const authorizedAt = (n: number, created: number): void => {
  const form = {
    amount: '100',
    currency: 'usd',
    capture_method: 'manual',
    'metadata[operationId]': `op_${n}`,
    'metadata[paymentId]': `pay_${n}`,
  };
  const { body } = over.double.books.open(new Map(Object.entries(form)));
  const latest_charge = { object: 'charge', status: 'succeeded' };
  const intent = over.double.books.intents.get((body as { id: string }).id) ?? {};
  Object.assign(intent, { created, status: 'requires_capture', latest_charge });
};
const ofOthersAt = (count: number, created: number): void => {
  for (let n = 0; n < count; n += 1) Object.assign(over.double.books.dashboard.open(), { created });
};
const idsOf = (entries: { operationId: string }[]) => entries.map((one) => one.operationId);
const opsFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, n) => `op_${first + n}`);
const endIds = async (after: string | null = null) => idsOf(await over.provider.ledgerEnd(after));
const allIds = async () => idsOf((await over.provider.ledger(null, 100)).entries);

describe('the ledger', () => {
  test('names captures, voids and refunds by our operations, and leaves out what others made', async () => {
    const changes = [
      await change('CAPTURE', await made('AUTHORIZE'), 500),
      await change('VOID', await made('AUTHORIZE')),
      await change('REFUND', await made('SALE'), 7),
    ];
    over.double.books.dashboard.open();
    const { entries, next } = await over.provider.ledger(null, 100);
    expect([next, entries.length]).toEqual([null, 6]);
    for (const { operationId, kind, amount, paymentId } of changes) {
      const entry = { operationId, kind, amount, paymentId, outcome: 'APPROVED' };
      expect(entries).toContainEqual(expect.objectContaining(entry));
    }
  });

  test('has what the Dashboard did by its own id; a refund does not make the log an older one', async () => {
    const { dashboard } = over.double.books;
    const captured = await made('AUTHORIZE', 'pay_captured');
    const canceled = await made('AUTHORIZE', 'pay_canceled');
    const sale = await made('SALE', 'pay_refunded');
    dashboard.capture(captured.reference, 1200);
    dashboard.cancel(canceled.reference);
    const refundId = dashboard.refund(sale.reference, 300);
    const { entries } = await over.provider.ledger(null, 100);
    const of = (kind: string) => entries.filter((one) => one.kind === kind);
    const byId = (operationId: string) => ({ operationId, outcome: 'APPROVED' });
    expect(of('CAPTURE')).toMatchObject([{ ...byId(captured.reference), amount: 1200 }]);
    expect(of('VOID')).toMatchObject([{ ...byId(canceled.reference), amount: 2000 }]);
    const refund = { ...byId(refundId), paymentId: 'pay_refunded', amount: 300 };
    expect(of('REFUND')).toMatchObject([refund]);
    const own = [captured, canceled, sale].map(({ operation }) => operation.operationId);
    expect((await endIds()).toSorted()).toEqual(own.toSorted());
  });

  test('its end goes back past a second, an idle hour, and what is none of ours', async () => {
    const last = nowS() - 3_600;
    for (let n = 0; n < 2_000; n += 1) authorizedAt(n, last - Math.floor((2_000 - n) / 5));
    ofOthersAt(700, last + 100);
    const end = await over.provider.ledgerEnd(null);
    expect(idsOf(end)).toEqual(opsFrom(1_900, 100));
    expect(over.double.received.length).toBeLessThan(15);
    expect(await endIds(end.at(-4)?.cursor)).toEqual(opsFrom(1_997, 3));
    expect(await endIds(end.at(-1)?.cursor)).toEqual([]);
  });

  test('its end is searched for where 2,000 objects of others follow it; without search it is not found', async () => {
    authorizedAt(0, nowS() - 900);
    ofOthersAt(2_050, nowS() - 800);
    expect(await endIds()).toEqual(['op_0']);
    over.double.endSearch();
    await expect(endIds()).rejects.toThrow(LedgerEndNotFound);
    authorizedAt(1, nowS());
    expect(await endIds()).toEqual(['op_1']);
  });

  test('is read past objects of others in any form and of any size; one of ours that is broken ends it', async () => {
    authorizedAt(0, nowS() - 900);
    ofOthersAt(100, nowS() - 800);
    const names = Array.from({ length: 50 }, (_, name) => [`name_${name}`, 'x'.repeat(490)]);
    const [own, ...others] = over.double.books.intents.values();
    for (const intent of others)
      Object.assign(intent, { metadata: Object.fromEntries(names), capture_method: null });
    const { entries, next } = await over.provider.ledger(null, 100);
    expect([idsOf(entries), next, await endIds()]).toEqual([['op_0'], null, ['op_0']]);
    Object.assign(own ?? {}, { amount: null });
    await expect(over.provider.ledger(null, 100)).rejects.toThrow();
  });

  test.each([-10, 10])(
    'is read to its end by Stripe’s clock, with ours %p minutes off',
    async (minutes) => {
      const { operation, reference } = await made('SALE');
      over.double.books.dispute(reference);
      const atMs = nowMs() + minutes * MINUTE_MS;
      const wrong = driverOver(over.double.url, { nowMs: () => atMs });
      const ids = [operation.operationId];
      expect(idsOf((await wrong.ledger(null, 100)).entries)).toEqual(ids);
      expect(idsOf(await wrong.ledgerEnd(null))).toEqual(ids);
      expect(await wrong.disputes()).toHaveLength(1);
      await wrong.close();
    },
  );

  test('waits where Stripe limits its reads or fails, and goes on', async () => {
    authorizedAt(0, nowS() - 900);
    for (const fault of ['429 rate_limit', '500 before acting'] as const)
      over.double.plan('list', fault);
    expect(await allIds()).toEqual(['op_0']);
    for (let failed = 0; failed < 12; failed += 1) over.double.plan('list', '403');
    await expect(over.provider.ledger(null, 100)).rejects.toThrow('status 403');
  });

  test('its end has the latest of payments and refunds, each at its own time', async () => {
    const second = nowS();
    const sale = await made('SALE');
    Object.assign(over.double.books.intents.get(sale.reference) ?? {}, { created: second - 9_000 });
    for (let n = 0; n < 150; n += 1) authorizedAt(n, second - 8_000 + n);
    for (const [at, created] of [second - 8_500, second - 7_900].entries()) {
      await change('REFUND', sale, 1 + at);
      Object.assign(over.double.books.refunds[at] ?? {}, { created });
    }
    const end = await over.provider.ledgerEnd(null);
    expect(end).toHaveLength(100);
    expect(end.filter(({ kind }) => kind === 'REFUND')).toMatchObject([{ amount: 2 }]);
    const seconds = end.map(({ cursor }) => Number(cursor.split('.')[0]));
    expect(seconds).toEqual(seconds.toSorted((a, b) => a - b));
  });

  test('of more than a window is read in order, each entry once, with few of them in memory', async () => {
    const first = nowS() - 100_000;
    for (let n = 0; n < 1_200; n += 1) authorizedAt(n, first + n * 40);
    const since = async (n: number) => {
      const time = new Date((first + n * 40) * 1_000).toISOString();
      return idsOf((await over.provider.ledger(null, 100, time)).entries);
    };
    // Of a time to come there is none, and the next one is read as if it had not been.
    expect(await since(2_600)).toEqual([]);
    const all = idsOf(await takeAll(over.provider, 300));
    expect(all).toEqual(opsFrom(0, 1_200));
    expect(over.double.received.length).toBeLessThan(150);
    expect((await endIds()).at(-1)).toBe('op_1199');
    for (const n of [1_100, 1_190]) expect(await since(n)).toEqual(all.slice(n));
  });
});

describe('what was made elsewhere is a reason to ask', () => {
  const ended = async (sinceMs = nowMs() - MINUTE_MS) => {
    const { made: found, ...said } = await over.provider.madeElsewhere(sinceMs);
    return [said, found.map(({ paymentId }) => paymentId).toSorted()];
  };
  const FOUND = { outcome: 'FOUND' };

  test('an authorization of a week ago that was captured or canceled in the Dashboard a minute ago', async () => {
    const payments = ['pay_1', 'pay_2', 'pay_3'];
    const all = [];
    for (const paymentId of payments) all.push((await made('AUTHORIZE', paymentId)).reference);
    const [captured = '', partly = '', canceled = ''] = all;
    over.aheadMs = WEEK_MS - HOUR_MS;
    expect(await ended()).toEqual([FOUND, []]);
    over.double.books.dashboard.capture(captured);
    over.double.books.dashboard.capture(partly, 1);
    over.double.books.dashboard.cancel(canceled);
    expect(await ended()).toEqual([FOUND, payments]);
    // An event that is listed minutes after its time is not lost.
    expect(await ended(nowMs() + 4 * MINUTE_MS)).toEqual([FOUND, payments]);
    over.aheadMs = WEEK_MS + HOUR_MS;
    expect(await ended()).toEqual([FOUND, []]);
  });

  test('a refund in the Dashboard of a sale of a year ago, but none that was made here', async () => {
    const sale = await made('SALE');
    over.aheadMs = 52 * WEEK_MS;
    await change('REFUND', sale, 5);
    expect(await ended()).toEqual([FOUND, []]);
    const refundId = over.double.books.dashboard.refund(sale.reference, 7);
    const { made: found } = await over.provider.madeElsewhere(nowMs() - MINUTE_MS);
    expect(found).toEqual([{ paymentId: 'pay_1', refundId }]);
  });

  test('neither a sale, nor what was captured here, nor what others made', async () => {
    await made('SALE');
    await change('CAPTURE', await made('AUTHORIZE'));
    over.double.books.dashboard.cancel(over.double.books.dashboard.open().id);
    expect(await ended()).toEqual([FOUND, []]);
  });

  test('beyond a page, newest first', async () => {
    const all: string[] = [];
    const { books } = over.double;
    for (let n = 0; n < 230; n += 1) {
      const paymentId = `pay_${String(n).padStart(3, '0')}`;
      const form = { amount: '500', capture_method: 'manual', 'metadata[paymentId]': paymentId };
      const { id } = books.open(new Map(Object.entries(form))).body as { id: string };
      books.confirm(id, new Map([['payment_method', 'pm_card_visa']]));
      books.dashboard.capture(id);
      all.push(paymentId);
    }
    expect(await ended()).toEqual([FOUND, all]);
  });

  test('a key without the permission is named, and the other accounts are looked at; HTML says nothing', async () => {
    const own = { secretKey: 'sk_test_of_its_own', name: 'the key of m_keyed' };
    const accounts = { installation: TEST_ACCOUNT, merchants: new Map([['m_keyed', own]]) };
    await over.provider.close();
    over.provider = driverOver(over.double.url, { accounts });
    over.double.openAccount(own.secretKey, createBooks());
    over.double.books.dashboard.cancel((await made('AUTHORIZE')).reference);
    over.double.withhold('/v1/events', own.secretKey);
    const barred = { outcome: 'UNKNOWN', reason: 'forbidden', account: own.name };
    expect(await ended()).toEqual([barred, ['pay_1']]);
    over.double.permitAll();
    expect(await ended()).toEqual([FOUND, ['pay_1']]);
    over.double.plan('list', 'HTML');
    expect((await ended())[0]).toMatchObject({ outcome: 'UNKNOWN', reason: 'malformed' });
  });
});

/** Each state that Stripe's objects may have: stripe-sdk.test.ts. */
describe('what has become of a payment', () => {
  const question = ({ operation, reference }: Made): PaymentQuestion => {
    const { paymentId, merchantId, amount, currency, operationId: authorizationId } = operation;
    const about = { paymentId, merchantId, amount, currency, refunds: [], observed: [] };
    return { ...about, authorizationId, authorizationReference: reference };
  };
  const results = async (about: PaymentQuestion) => {
    const found = await over.provider.laterResults(about);
    return found.outcome === 'FOUND' ? found.results : found;
  };

  test('what this service captured and refunded is not observed', async () => {
    const payment = await made('AUTHORIZE');
    await change('CAPTURE', payment);
    const { operationId, amount } = await change('REFUND', payment, 300);
    expect(await results({ ...question(payment), refunds: [{ operationId, amount }] })).toEqual([]);
  });

  test('a refund in the Dashboard of exactly what a capture of part left is observed', async () => {
    const payment = await made('AUTHORIZE');
    await change('CAPTURE', payment, 1000);
    const refundId = over.double.books.dashboard.refund(payment.reference, 1000);
    const observed = { kind: 'REFUND_OBSERVED', refundId, amount: 1000 };
    expect(await results(question(payment))).toEqual([observed]);
  });

  test('disputes: an undisputed charge needs no permission for them; nothing is concluded in another currency', async () => {
    const payment = await made('SALE');
    expect(await results(question(payment))).toEqual([]);
    const paths = over.double.received.map(({ path }) => path);
    expect(paths.filter((path) => path.startsWith('/v1/disputes'))).toEqual([]);
    over.double.books.dispute(payment.reference, { currency: 'eur' });
    const unknown = { outcome: 'UNKNOWN', reason: 'mismatch' };
    expect(await results(question(payment))).toEqual(unknown);
  });

  test.each(['403', '500 before acting', 'cut JSON'] as const)(
    'a list that is %s says nothing, also of what was read before it',
    async (fault) => {
      const payment = await made('SALE');
      over.double.books.dashboard.refund(payment.reference, 500);
      over.double.plan('list', fault);
      expect(await results(question(payment))).toMatchObject({ outcome: 'UNKNOWN' });
    },
  );

  test('a PaymentIntent names its payment, and one that was made elsewhere none', async () => {
    const { reference } = await made('SALE');
    const paymentOf = (id: string) => over.provider.paymentOf(id, {});
    expect(await paymentOf(reference)).toEqual({ outcome: 'FOUND', paymentId: 'pay_1' });
    for (const other of [over.double.books.dashboard.open().id, 'pi_nobody', '../x'])
      expect(await paymentOf(other)).toEqual({ outcome: 'NOT_FOUND' });
    over.double.plan('read', '500 before acting');
    expect(await paymentOf(reference)).toMatchObject({ outcome: 'UNKNOWN' });
  });
});
