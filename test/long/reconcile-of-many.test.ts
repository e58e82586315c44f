/** ADR-0263: the second comparison of a long log takes as long as what is new. */
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import type { LedgerEntry, LedgerPage } from '../../command-api/provider/port.ts';
import { type Mark, reconcile } from '../../command-api/reconcile/reconcile.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../shared/event-store/sqlite/event-store.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { authorized, created, newEvent } from '../support/payment-events.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const PAYMENTS = 200_000;
const NEW = 500;
const AT_ONCE = 1_000;

const folder = temporaryFolder();
afterAll(folder.remove);

const pay = async (store: SqliteEventStore, from: number, to: number): Promise<void> => {
  for (let next = from; next < to; next += AT_ONCE) {
    const numbers = Array.from({ length: Math.min(AT_ONCE, to - next) }, (_, n) => next + n);
    await Promise.all(
      numbers.map((n) => {
        const [paymentId, operationId] = [`pay_${n}`, `op_${n}`];
        const events = [created({ paymentId, operationId }), authorized({ operationId })];
        return store.append(
          streamOf(paymentId),
          'none',
          events.map((event) => newEvent(event)),
        );
      }),
    );
  }
};

const ledgerOf = (length: number) => {
  const read = { pages: 0 };
  const entry = (n: number): LedgerEntry => ({
    cursor: String(n + 1),
    operationId: `op_${n}`,
    paymentId: `pay_${n}`,
    kind: 'AUTHORIZE',
    outcome: 'APPROVED',
    amount: 2500,
    currency: 'USD',
    providerReference: `sim_${n}`,
  });
  const ledger = async (after: string | null, limit: number): Promise<LedgerPage> => {
    read.pages += 1;
    const from = Number(after);
    const to = Math.min(from + limit, length);
    const entries = Array.from({ length: to - from }, (_, n) => entry(from + n));
    return { entries, next: to < length ? String(to) : null };
  };
  return { read, provider: { ledger } };
};

test('of many operations the second run reads only what is new', async () => {
  const store = await openSqliteEventStore({ file: join(folder.path, 'events.sqlite') });
  await pay(store, 0, PAYMENTS);
  const timed = async (length: number, part?: Mark) => {
    const { read, provider } = ledgerOf(length);
    const begun = performance.now();
    const compared = await reconcile({ store, provider, part });
    const seconds = (performance.now() - begun) / 1_000;
    return { ...compared, pages: read.pages, seconds };
  };
  const whole = await timed(PAYMENTS);
  expect(whole).toMatchObject({ result: { ok: true, operations: PAYMENTS } });
  expect(whole.pages).toBeGreaterThanOrEqual(PAYMENTS / 100);

  await pay(store, PAYMENTS, PAYMENTS + NEW);
  const part = await timed(PAYMENTS + NEW, whole.mark);
  expect(part).toMatchObject({ result: { ok: true, operations: NEW, entries: NEW } });
  expect(part.pages).toBeLessThanOrEqual(NEW / 100 + 1);
  expect(part.seconds).toBeLessThan(whole.seconds / 10);
  process.stderr.write(
    `compared ${PAYMENTS} operations in ${whole.seconds.toFixed(1)} s, then ${NEW} in ${part.seconds.toFixed(2)} s\n`,
  );
  await store.close();
});
