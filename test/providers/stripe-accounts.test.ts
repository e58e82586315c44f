/** Each merchant's payments are made, asked about and listed in that merchant's account of Stripe. */
import { beforeEach, expect, test } from '@jest/globals';
import { authorize, followUp } from '../support/provider-operations.ts';
import { type Books, createBooks } from '../support/stripe-double/books.ts';
import {
  approvedBy,
  driverOver,
  keepIt,
  overDouble,
  questionOf,
  TEST_ACCOUNT,
} from '../support/stripe-fault-rounds.ts';

const OWN_KEY = 'sk_test_of_its_own';
const ACCOUNTS = {
  installation: TEST_ACCOUNT,
  merchants: new Map([
    ['m_connected', { ...TEST_ACCOUNT, account: 'acct_1', name: 'acct_1' }],
    ['m_keyed', { secretKey: OWN_KEY, name: 'the key of m_keyed' }],
  ]),
};
const MERCHANTS = ['m_other', 'm_connected', 'm_keyed'] as const;

const over = overDouble();
let books: Record<(typeof MERCHANTS)[number], Books>;
beforeEach(async () => {
  const { double } = over;
  await over.provider.close();
  over.provider = driverOver(double.url, { accounts: ACCOUNTS });
  books = {
    m_other: double.books,
    m_connected: double.openAccount('acct_1', createBooks()),
    m_keyed: double.openAccount(OWN_KEY, createBooks()),
  };
});

const sold = (merchantId: string) => {
  const parts = { merchantId, kind: 'SALE', paymentId: `pay_${merchantId}` } as const;
  return approvedBy(over.provider, authorize(undefined, parts));
};

test('a payment, its refund, its look-up and its fence go to the account of its merchant', async () => {
  for (const merchantId of MERCHANTS) {
    const { operation, reference } = await sold(merchantId);
    const kept = Object.entries(books).filter(([, own]) => own.intents.has(reference));
    expect(kept.map(([name]) => name)).toEqual([merchantId]);
    const refund = followUp('REFUND', operation, { authorizationReference: reference, amount: 7 });
    expect((await over.provider.execute(refund, keepIt)).outcome).toBe('APPROVED');
    expect(books[merchantId].refundedOf(reference)).toBe(7);
    const question = questionOf(operation, reference);
    expect((await over.provider.lookUp(question)).outcome).toBe('APPROVED');
    expect((await over.provider.fence(question)).outcome).toBe('APPROVED');
    // Asked in another account it is not there, and nothing is concluded from that.
    const elsewhere = { ...question, merchantId: merchantId === 'm_other' ? 'm_keyed' : 'm_other' };
    expect((await over.provider.lookUp(elsewhere)).outcome).toBe('UNKNOWN');
    expect((await over.provider.fence(elsewhere)).outcome).toBe('UNKNOWN');
  }
});

test('a payment that was made in another account cannot be changed, and nothing is concluded of it', async () => {
  const { operation, reference } = await sold('m_other');
  const daysAgo = new Date(Date.now() - 3 * 86_400_000).toISOString();
  for (const kind of ['CAPTURE', 'VOID', 'REFUND'] as const) {
    const change = {
      ...followUp(kind, operation, { authorizationReference: reference }),
      merchantId: 'm_keyed',
    };
    expect(await over.provider.execute(change, keepIt)).toMatchObject({
      outcome: 'DECLINED',
      providerFailureCode: 'resource_missing',
    });
    // Of one that was sent to the other account days ago there is no trace here, and no proof.
    const question = { ...change, requestedAt: daysAgo };
    expect((await over.provider.fence(question)).outcome).toBe('UNKNOWN');
  }
});

test('the ledger is that of all accounts, in the order of time', async () => {
  for (const merchantId of MERCHANTS) await sold(merchantId);
  const { entries, next } = await over.provider.ledger(null, 100);
  expect(next).toBeNull();
  expect(entries.map(({ paymentId }) => paymentId).sort()).toEqual(
    MERCHANTS.map((merchantId) => `pay_${merchantId}`).sort(),
  );
  const seconds = entries.map(({ cursor }) => Number(cursor.split('.')[0]));
  expect(seconds).toEqual([...seconds].sort((a, b) => a - b));
  expect(await over.provider.ledgerEnd(null)).toHaveLength(3);
  for (const [at, { cursor }] of entries.entries()) {
    expect((await over.provider.ledger(cursor, 100)).entries).toEqual(entries.slice(at + 1));
  }
});

test('a notice is read in the account that it comes from', async () => {
  const keyed = { merchantId: 'm_keyed' };
  const origins = { m_other: {}, m_connected: { account: 'acct_1' }, m_keyed: keyed };
  for (const merchantId of MERCHANTS) {
    const { reference } = await sold(merchantId);
    for (const [of, origin] of Object.entries(origins)) {
      const found = await over.provider.paymentOf(reference, origin);
      expect([of, found.outcome]).toEqual([of, of === merchantId ? 'FOUND' : 'NOT_FOUND']);
    }
    expect(await over.provider.paymentOf(reference, { account: 'acct_of_nobody' })).toEqual({
      outcome: 'NOT_FOUND',
    });
  }
});

test.each([
  ['401', 'unauthorized'],
  ['403', 'forbidden'],
  ['429 rate_limit', 'rate_limited'],
] as const)('%s of one account names it, and says nothing of the others', async (fault, reason) => {
  over.double.plan('open', fault);
  const notSent = { outcome: 'NOT_SENT', byProvider: true, reason };
  const own = authorize(undefined, { merchantId: 'm_keyed' });
  const named = { ...notSent, account: 'the key of m_keyed' };
  expect(await over.provider.execute(own, keepIt)).toEqual(named);
  over.double.plan('open', fault);
  expect(await over.provider.execute(authorize(), keepIt)).toEqual(notSent);
});

test('one merchant that uses up its rate takes none from another account', async () => {
  const paced = driverOver(over.double.url, { accounts: ACCOUNTS, perSecondMax: 1 });
  const send = (merchantId: string) => paced.execute(authorize(undefined, { merchantId }), keepIt);
  const flood = Promise.all(Array.from({ length: 6 }, () => send('m_connected')));
  expect((await send('m_keyed')).outcome).toBe('APPROVED');
  const reasons = (await flood).map((one) => ('reason' in one ? one.reason : one.outcome));
  expect(reasons.filter((reason) => reason === 'rate_limited').length).toBeGreaterThan(0);
  await paced.close();
});
