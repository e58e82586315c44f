/**
 * Ledger and log of a data folder whose service has ended: what our events say happened at the
 * provider, and what the provider's own ledger says.
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from '@jest/globals';
import { openSimulator } from '../../providers/simulator/simulator.ts';
import { foldStream } from '../../shared/event-store/fold-stream.ts';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { paymentOf } from '../../shared/payment/events.ts';
import { foldReadModel, foldState } from '../../shared/payment/fold.ts';
import { type PaymentState, unresolvedOperations } from '../../shared/payment/state.ts';
import { eventsOf } from './many-payments.ts';
import { openerIn } from './personal-data.ts';
import type { Body } from './service-client.ts';
import { HANGS_MS } from './time-bounds.ts';
import type { Acknowledged } from './writers.ts';

const PAGE = 2000;

/** One operation that the provider carried out, in words that ledger and log share. */
type Entry = `${string} ${string} ${string} ${number} ${string}`;

export type LoggedPayment = { state: PaymentState; body: string };

/** Every event has to be one that today's code can read. */
const readEvents = async (dataDir: string): Promise<RecordedEvent[]> => {
  const store = await openSqliteEventStore({ file: join(dataDir, 'events.sqlite') });
  return eventsOf(store).finally(() => store.close());
};

/** Every payment of the event store by its id, folded. Throws where a stream is damaged. */
export const paymentsOfLog = async (dataDir: string): Promise<Map<string, LoggedPayment>> => {
  await using opener = await openerIn(dataDir);
  const streams = Map.groupBy(await readEvents(dataDir), ({ stream }) => stream);
  const payments = new Map<string, LoggedPayment>();
  for (const [stream, events] of streams) {
    const paymentId = paymentOf(stream);
    if (paymentId === undefined) continue;
    const readModel = foldStream(events, foldReadModel);
    const state = foldStream(events, foldState);
    if (readModel === undefined || state === undefined) throw new Error(`nothing in ${stream}?`);
    payments.set(paymentId, { state, body: await opener.bodyOf(readModel) });
  }
  return payments;
};

const KINDS = { create: 'AUTHORIZE', capture: 'CAPTURE', void: 'VOID', refund: 'REFUND' } as const;

/** What our events say the provider carried out, sorted. */
export const entriesOfEvents = (payments: ReadonlyMap<string, LoggedPayment>): Entry[] =>
  [...payments.values()]
    .flatMap(({ state }): Entry[] => {
      const { paymentId, captureNow } = state;
      return state.operations
        .filter(({ ended }) => ended?.outcome === 'APPROVED' || ended?.outcome === 'DECLINED')
        .map(({ operationId, kind, amount, ended }): Entry => {
          const providerKind = kind === 'create' && captureNow ? 'SALE' : KINDS[kind];
          return `${operationId} ${providerKind} ${paymentId} ${amount} ${ended?.outcome ?? ''}`;
        });
    })
    .sort();

/** What the provider's ledger says it carried out, sorted. */
export const entriesOfLedger = async (dataDir: string): Promise<Entry[]> => {
  const file = join(dataDir, 'provider-ledger.sqlite');
  const provider = await openSimulator({ file, timeoutMs: HANGS_MS });
  const entries: Entry[] = [];
  let after: string | null | undefined;
  while (after !== null) {
    const page = await provider.ledger(after ?? null, PAGE);
    for (const { operationId, kind, paymentId, amount, outcome } of page.entries) {
      entries.push(`${operationId} ${kind} ${paymentId} ${amount} ${outcome}`);
    }
    after = page.next;
  }
  await provider.close();
  return entries.sort();
};

/**
 * M5, once all is resolved: no operation is open, and the provider's ledger equals the fold of our
 * events. Gives the payments of the log.
 */
export const expectLedgerMatchesLog = async (
  dataDir: string,
  ledgerDir = dataDir,
): Promise<Map<string, LoggedPayment>> => {
  const payments = await paymentsOfLog(dataDir);
  expect([...payments.values()].flatMap(({ state }) => unresolvedOperations(state))).toEqual([]);
  expect(await entriesOfLedger(ledgerDir)).toEqual(entriesOfEvents(payments));
  return payments;
};

/** What was acknowledged is in `body`: all of it, or as its beginning when more was under way. */
export const expectKept = ({ body: acknowledged, touched }: Acknowledged, body: string): void => {
  if (!touched) {
    expect(body).toBe(acknowledged);
    return;
  }
  const before = JSON.parse(acknowledged) as Body;
  const now = JSON.parse(body) as Body;
  expect(now.transactions.slice(0, before.transactions.length)).toEqual(before.transactions);
  expect(now.capturedAmount).toBeGreaterThanOrEqual(before.capturedAmount);
  expect(now.refundedAmount).toBeGreaterThanOrEqual(before.refundedAmount);
};

/** Nothing acknowledged is lost, nothing is open, and ledger and log say the same. */
export const expectAllKept = async (
  dataDir: string,
  kept: ReadonlyMap<string, Acknowledged>,
  ledgerDir = dataDir,
): Promise<void> => {
  const payments = await expectLedgerMatchesLog(dataDir, ledgerDir);
  for (const [paymentId, known] of kept) {
    expectKept(known, payments.get(paymentId)?.body ?? 'not in the event store');
  }
};

/** The payments of a running service that have an intent without an outcome, oldest first. */
export const openPaymentsIn = (dataDir: string): string[] => {
  const readModels = new DatabaseSync(join(dataDir, 'read-models.sqlite'), {
    readOnly: true,
    timeout: 1000,
  });
  const rows = readModels
    .prepare(
      'SELECT payment_id FROM payment WHERE unresolved_since IS NOT NULL ORDER BY unresolved_since',
    )
    .all();
  readModels.close();
  return rows.map((row) => String(row.payment_id));
};
