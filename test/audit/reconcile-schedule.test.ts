/** The reconciliation that runs by itself: its metrics, its log lines, and what it does when it cannot. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createIdentities } from '../../command-api/idempotency.ts';
import type { LedgerEntry } from '../../command-api/provider/port.ts';
import { openTurns } from '../../command-api/reconcile/checkpoint.ts';
import { LedgerUnavailable } from '../../command-api/reconcile/reconcile.ts';
import { openReconciling } from '../../command-api/reconcile/reconciling.ts';
import { openCheckRecord } from '../../shared/check-record.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../shared/event-store/sqlite/event-store.ts';
import type { KeyDocument } from '../../shared/key-document.ts';
import { type PaymentEvent, streamOf } from '../../shared/payment/payment-events.ts';
import type { ParkedPayment } from '../../shared/read-models/port.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { openInProcess, token } from '../support/in-process.ts';
import { manualClock } from '../support/manual-clock.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { memoryDocument } from '../support/memory-feed.ts';
import { authorized, created, newEvent, operationId } from '../support/payment-events.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;
const ENTRY: LedgerEntry = {
  cursor: '1',
  operationId: operationId(0),
  kind: 'AUTHORIZE',
  paymentId: 'pay_1',
  outcome: 'APPROVED',
  amount: 2500,
  currency: 'USD',
  providerReference: 'sim-1',
};

/** A schedule over one payment; `ledger` can be replaced between its runs. */
const scheduled = async (
  events: PaymentEvent[],
  everyMs = HOUR_MS,
  store: EventStore = memoryEventStore(),
  document: KeyDocument = memoryDocument(),
) => {
  await store.append(
    streamOf('pay_1'),
    'none',
    events.map((event) => newEvent(event)),
  );
  const lines: [level: string, message: string][] = [];
  const logTo = (level: string) => (_fields: object, message: string) => {
    lines.push([level, message]);
  };
  const provider = {
    calls: 0,
    ledger: async (): Promise<{ entries: LedgerEntry[]; next: null }> => {
      provider.calls += 1;
      return provider.respond();
    },
    respond: async (): Promise<{ entries: LedgerEntry[]; next: null }> => ({
      entries: [ENTRY],
      next: null,
    }),
  };
  const clock = manualClock();
  const turns = openTurns({
    document,
    checkOf: createIdentities(['a secret of this installation']).checkOf,
    store,
    provider: undefined,
    nowMs: clock.nowMs,
  });
  const parked: ParkedPayment[] = [];
  const metrics = createMetrics();
  const reconciling = openReconciling({
    store,
    provider,
    everyMs,
    metrics,
    logger: { info: logTo('info'), warn: logTo('warn'), error: logTo('error') },
    record: openCheckRecord(memoryDocument()),
    turns,
    nowMs: clock.nowMs,
    onNeverSent: async () => undefined,
    readModels: { parked: async () => parked },
    untoldDisputes: async () => [],
    askAboutUntold: async () => false,
    lookForEnded: async () => undefined,
    startTimer: clock.startTimer,
  });
  const metric = async (name: string): Promise<string | undefined> =>
    (await metrics.text()).split('\n').find((line) => line.startsWith(name));
  return { clock, lines, metric, provider, reconciling, parked };
};

describe('the log is compared with the ledger on a schedule', () => {
  test('soon after the start and then each hour; the time of the last one is measured', async () => {
    const { clock, lines, metric, provider, reconciling } = await scheduled([
      created(),
      authorized(),
    ]);
    reconciling.start();
    expect(await metric('payments_reconcile_interval_seconds ')).toMatch(/ 3600$/);
    expect(await metric('payments_reconcile_last_timestamp_seconds ')).toMatch(/ 0$/);
    await clock.advance(70_000);
    await until('the first one has run', () => lines.length === 1);
    expect(lines).toEqual([['info', "log and provider's ledger were compared"]]);
    expect(await metric('payments_reconcile_last_timestamp_seconds ')).toMatch(/ 1[0-9]{9}$/);
    const calls = provider.calls;
    await until('the next one is planned', () => clock.timers() === 1);
    await clock.advance(HOUR_MS * 0.8);
    expect(provider.calls).toBe(calls);
    await clock.advance(HOUR_MS * 0.4);
    await until('the second one has run', () => lines.length === 2);
    reconciling.stop();
  });

  test('a difference is one error line and a gauge that stays until one finds none', async () => {
    const { lines, metric, provider, reconciling } = await scheduled([
      created(),
      authorized({ amount: 9500 }),
    ]);
    await reconciling.once();
    expect(lines).toEqual([
      ['error', 'log and provider differ in 1 place; next: payments reconcile lists it'],
    ]);
    const gauge = 'payments_reconcile_differences{kind="AMOUNT_DIFFERS"}';
    expect(await metric(gauge)).toMatch(/ 1$/);
    provider.respond = () => Promise.reject(new Error('connection refused'));
    await expect(reconciling.once()).rejects.toThrow('connection refused');
    expect(await metric(gauge)).toMatch(/ 1$/);
  });

  test('a parked payment is not agreed on: its stream may be gone, and then no event is left to compare', async () => {
    const { reconciling, parked } = await scheduled([created(), authorized()]);
    expect(await reconciling.once()).toMatchObject({ ok: true });
    const reason = 'deleted at the server of the event store';
    parked.push({ paymentId: 'pay_gone', revision: 2, reason, since: '2026-01-01T00:00:00.000Z' });
    expect(await reconciling.once()).toMatchObject({
      ok: false,
      unreadable: 1,
      unreadableEvents: [{ paymentId: 'pay_gone', position: '', revision: 2, reason }],
    });
  });

  test('an operation that recovery still asks for is counted, and is no error line', async () => {
    const { lines, metric, reconciling } = await scheduled([created()]);
    await reconciling.once();
    expect(lines.map(([level]) => level)).toEqual(['info']);
    const gauge = 'payments_reconcile_differences{kind="UNRESOLVED_IN_LOG"}';
    expect(await metric(gauge)).toMatch(/ 1$/);
  });

  test('where the ledger cannot be read it says so, keeps its age, and tries again sooner', async () => {
    const { clock, lines, metric, provider, reconciling } = await scheduled([
      created(),
      authorized(),
    ]);
    const right = provider.respond;
    provider.respond = () => Promise.reject(new Error('connection refused'));
    reconciling.start();
    await clock.advance(70_000);
    await until('it has failed', () => lines.length === 1);
    const line = "reconciliation could not run: the provider's ledger cannot be read now";
    expect(lines).toEqual([['warn', line]]);
    expect(await metric('payments_reconcile_last_timestamp_seconds ')).toMatch(/ 0$/);
    provider.respond = right;
    await until('the next one is planned', () => clock.timers() === 1);
    await clock.advance(HOUR_MS / 6);
    await until('it has run', () => lines.length === 2);
    expect(lines[1]?.[0]).toBe('info');
    reconciling.stop();
  });

  test('an interval of 0 plans none, and one that is requested still runs', async () => {
    const { clock, metric, reconciling } = await scheduled([created(), authorized()], 0);
    reconciling.start();
    expect(clock.timers()).toBe(0);
    expect(await metric('payments_reconcile_interval_seconds ')).toMatch(/ 0$/);
    expect(await reconciling.once()).toMatchObject({ ok: true });
  });

  test('one runs at a time: who requests one meanwhile gets the same result', async () => {
    const { provider, reconciling } = await scheduled([created(), authorized()]);
    const [one, other] = await Promise.all([reconciling.once(), reconciling.once()]);
    expect(one).toBe(other);
    const calls = provider.calls;
    await reconciling.once();
    expect(provider.calls).toBe(2 * calls);
  });

  test('a stop ends the one under way and plans no other', async () => {
    const { clock, reconciling } = await scheduled([created(), authorized()]);
    reconciling.start();
    const running = reconciling.once();
    reconciling.stop();
    await expect(running).rejects.toThrow('the service is stopping');
    expect(clock.timers()).toBe(0);
  });
});

test('the service runs it by RECONCILE_INTERVAL_MS; the ledger of the simulator is read from the start alone', async () => {
  await using service = await openInProcess({ RECONCILE_INTERVAL_MS: '20' });
  await service.create();
  await until('one has run', async () => {
    const { text } = await service.ask('GET', '/metrics');
    return /^payments_reconcile_last_timestamp_seconds 1\d{9}$/m.test(text);
  });
  const own = await token('*', 'audit:read');
  for (const [since, detail] of [
    [
      '2026-11-01T00:00:00Z',
      'since is not for this provider: its ledger can only be read from the start',
    ],
    ['yesterday', 'since must be a date-time'],
  ])
    expect(
      await service.ask('POST', `/audit/v1/reconcile?since=${since}`, undefined, { token: own }),
    ).toMatchObject({ status: 400, json: { error: 'INVALID_REQUEST', details: [detail] } });
});

describe('ADR-0185: a SQLite log is compared in a thread of its own', () => {
  const folder = temporaryFolder();
  let store: SqliteEventStore;
  beforeEach(async () => {
    store = await openSqliteEventStore({ file: join(folder.path, `${randomUUID()}.sqlite`) });
  });
  afterEach(() => store.close());
  afterAll(folder.remove);

  test('with the same result', async () => {
    const { reconciling } = await scheduled([created(), authorized()], 0, store);
    expect(await reconciling.once()).toMatchObject({ ok: true, operations: 1, entries: 1 });
  });

  test('a ledger that cannot be read is told from a log that cannot be read', async () => {
    const { reconciling, provider } = await scheduled([created()], 0, store);
    provider.respond = () => Promise.reject(new Error('out of reach'));
    const failed = reconciling.once();
    await expect(failed).rejects.toThrow(LedgerUnavailable);
    await expect(failed).rejects.toThrow('out of reach');
  });

  test('a stop ends it while it waits for the ledger', async () => {
    const { reconciling, provider } = await scheduled([created()], 0, store);
    const page = Promise.withResolvers<{ entries: LedgerEntry[]; next: null }>();
    provider.respond = () => page.promise;
    const stopped = reconciling.once();
    await until('the ledger is asked for', () => provider.calls === 1);
    reconciling.stop();
    page.resolve({ entries: [], next: null });
    await expect(stopped).rejects.toThrow('the service is stopping');
  });
});
