/** The provider's ledger compared with the event log: each kind of difference has a name (docs/audit.md). */
import { describe, expect, test } from '@jest/globals';
import type { LedgerEntry } from '../../command-api/provider/port.ts';
import { reconcile } from '../../command-api/reconcile/reconcile.ts';
import { memoryEventStore } from '../../shared/event-store/memory/event-store.ts';
import { type PaymentEvent, streamOf } from '../../shared/payment/payment-events.ts';
import {
  authorized,
  captured,
  captureRequested,
  created,
  failed,
  newEvent,
  operationId,
} from '../support/payment-events.ts';

const CREATE = operationId(0);
const CAPTURE = operationId(1);

const entry = (fields: Partial<LedgerEntry> = {}): LedgerEntry => ({
  sequence: 1,
  operationId: CREATE,
  kind: 'AUTHORIZE',
  paymentId: 'pay_1',
  outcome: 'APPROVED',
  amount: 2500,
  currency: 'USD',
  providerReference: 'sim-1',
  ...fields,
});

/** A ledger with one entry on each page. */
const ledgerOf = (entries: LedgerEntry[]) => ({
  ledger: async (after: number) => {
    const [next, more] = entries.filter(({ sequence }) => sequence > after);
    return {
      entries: next === undefined ? [] : [next],
      next: more === undefined ? null : (next?.sequence ?? null),
    };
  },
});

const compare = async (events: PaymentEvent[], entries: LedgerEntry[]) => {
  const store = memoryEventStore();
  if (events.length > 0) {
    await store.append(
      streamOf('pay_1'),
      'none',
      events.map((event) => newEvent(event)),
    );
  }
  return reconcile({ store, provider: ledgerOf(entries) });
};

const authorization = [created(), authorized()];
const capturing = [...authorization, captureRequested()];

test('a ledger whose next page does not come later is an error, for it would never end', async () => {
  const ledger = async (after: number) => ({ entries: [entry()], next: Math.max(after, 1) });
  const store = memoryEventStore();
  await expect(reconcile({ store, provider: { ledger } })).rejects.toThrow('does not go on');
});

describe('M5: ledger and log agree', () => {
  test.each<[string, PaymentEvent[], LedgerEntry[]]>([
    ['on nothing at all', [], []],
    ['on an authorization', authorization, [entry()]],
    ['on a decline', [created(), failed()], [entry({ outcome: 'DECLINED' })]],
    [
      'on a sale, which is one operation and two events',
      [created({ captureNow: true }), authorized(), captured()],
      [entry({ kind: 'SALE' })],
    ],
    [
      'on a capture beside its authorization',
      [...capturing, captured({ operationId: CAPTURE })],
      [entry(), entry({ sequence: 2, operationId: CAPTURE, kind: 'CAPTURE' })],
    ],
    ['that nothing was sent', [created(), failed({ outcome: 'NOT_SENT' })], []],
    ['that an unresolved intent was not carried out', capturing, [entry()]],
  ])('%s', async (_name, events, entries) => {
    expect(await compare(events, entries)).toMatchObject({ ok: true, differences: [], more: 0 });
  });
});

describe('M5: ledger and log differ', () => {
  test.each<[string, PaymentEvent[], LedgerEntry[]]>([
    ['MISSING_AT_PROVIDER', authorization, []],
    ['MISSING_IN_LOG', [], [entry()]],
    ['UNRESOLVED_IN_LOG', [created()], [entry()]],
    ['NEVER_SENT_IN_LOG', [created(), failed({ outcome: 'FENCED' })], [entry()]],
    ['OUTCOME_DIFFERS', authorization, [entry({ outcome: 'DECLINED' })]],
    ['AMOUNT_DIFFERS', authorization, [entry({ amount: 2501 })]],
    ['AMOUNT_DIFFERS', authorization, [entry({ currency: 'EUR' })]],
    ['OPERATION_DIFFERS', authorization, [entry({ kind: 'SALE' })]],
    ['OPERATION_DIFFERS', authorization, [entry({ paymentId: 'pay_2' })]],
  ])('%s', async (kind, events, entries) => {
    const { ok, differences } = await compare(events, entries);
    expect(ok).toBe(false);
    expect(differences).toEqual([expect.objectContaining({ kind, operationId: CREATE })]);
  });
});

describe('M5: what happens during the comparison is no difference', () => {
  test('an outcome that is recorded while both are read', async () => {
    const store = memoryEventStore();
    const stream = streamOf('pay_1');
    const [first] = await store.append(stream, 'none', [newEvent(created())]);
    const { ledger } = ledgerOf([entry()]);
    let pages = 0;
    const provider = {
      ledger: async (after: number) => {
        pages += 1;
        if (pages === 2 && first !== undefined) {
          await store.append(stream, first, [newEvent(authorized())]);
        }
        return ledger(after);
      },
    };
    expect(await reconcile({ store, provider })).toMatchObject({ ok: true });
  });

  test('a payment that begins and ends after the ledger was first read', async () => {
    const store = memoryEventStore();
    const entries: LedgerEntry[] = [];
    const { ledger } = { ledger: (after: number) => ledgerOf(entries).ledger(after) };
    let pages = 0;
    const provider = {
      ledger: async (after: number) => {
        const page = await ledger(after);
        pages += 1;
        if (pages === 1) {
          await store.append(
            streamOf('pay_1'),
            'none',
            authorization.map((e) => newEvent(e)),
          );
          entries.push(entry());
        }
        return page;
      },
    };
    expect(await reconcile({ store, provider })).toMatchObject({ ok: true, entries: 1 });
  });
});
