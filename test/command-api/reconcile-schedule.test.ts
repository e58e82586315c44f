/** The reconciliation that runs by itself: its metrics, its log lines, and what it does when it cannot. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openCheckRecord } from '../../audit/check-record.ts';
import type { Difference } from '../../command-api/back-office/reconcile/differences.ts';
import { LedgerUnavailable } from '../../command-api/back-office/reconcile/reconcile.ts';
import { openReconciling, openTurns } from '../../command-api/back-office/reconcile/reconciling.ts';
import type { LedgerEntry } from '../../providers/port.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../shared/event-store/sqlite/event-store.ts';
import type { PaymentEvent } from '../../shared/payment/events.ts';
import { ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import type { ParkedPayment } from '../../shared/read-models/port.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { manualClock } from '../support/manual-clock.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { memoryDocument } from '../support/memory-feed.ts';
import { appendPayment, authorized, created, operationId } from '../support/payment-events.ts';
import { ledgerEntry } from '../support/provider-operations.ts';
import { openInProcess, token } from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const GAUGE = 'payments_reconcile_differences{kind="AMOUNT_DIFFERS"}';
const WINDOW = { since: undefined, all: 'false' } as const;
const ALL = { since: undefined, all: 'true' } as const;
const ENTRY = ledgerEntry();
const HELD = [created(), authorized()];

type Page = { entries: LedgerEntry[]; next: null; since?: string | undefined };

/** What several processes share. */
const sharedParts = () => {
  const clock = manualClock();
  const worked = { ms: 0 };
  const nowMs = () => Date.parse('2026-03-01T00:00:00.000Z') + clock.nowMs() + worked.ms;
  const documents = { turn: memoryDocument(), record: memoryDocument() };
  return { clock, worked, nowMs, documents, store: memoryEventStore() as EventStore };
};

/** A schedule over one payment; the response of its ledger can be replaced between its runs. */
const scheduled = async (
  events: PaymentEvent[],
  {
    everyMs = HOUR_MS,
    ...others
  }: Partial<ReturnType<typeof sharedParts>> & { everyMs?: number } = {},
) => {
  const { clock, worked, nowMs, documents, store } = { ...sharedParts(), ...others };
  if (events.length > 0)
    await appendPayment(store, 'pay_1', events, () => new Date(nowMs()).toISOString());
  const lines: [level: string, message: string][] = [];
  const logTo = (level: string) => (_fields: object, message: string) => {
    lines.push([level, message]);
  };
  const provider = {
    calls: 0,
    /** How long the comparisons take. */
    takesMs: 0,
    since: undefined as string | undefined,
    ledger: async (_after: string | null, limit: number, since?: string): Promise<Page> => {
      provider.calls += 1;
      provider.since = since;
      // Once in each comparison of a window it is asked whether the ledger knows times.
      if (limit === 1) worked.ms += provider.takesMs;
      return { since, ...(await provider.respond()) };
    },
    respond: async (): Promise<Page> => ({ entries: [ENTRY], next: null }),
  };
  const parked = { list: [] as ParkedPayment[], read: async () => parked.list };
  const metrics = createMetrics();
  const logger = { info: logTo('info'), warn: logTo('warn'), error: logTo('error') };
  const record = openCheckRecord(documents.record, logger, nowMs);
  const seen = { looks: [] as (number | undefined)[], again: [] as Difference[], stands: true };
  const reconciling = openReconciling({
    ...{ store, provider, everyMs, metrics, record, nowMs },
    logger,
    turns: openTurns(documents.turn, logger, nowMs),
    agreesOn: async () => true,
    stillDiffers: async (difference) => {
      seen.again.push(difference);
      return seen.stands;
    },
    onNeverSent: async () => undefined,
    readModels: { parked: () => parked.read() },
    untoldDisputes: async () => [],
    askAboutUntold: async () => false,
    lookElsewhere: async (lastMs) => {
      seen.looks.push(lastMs);
      return nowMs();
    },
    startTimer: clock.startTimer,
  });
  const metric = async (name: string): Promise<string | undefined> =>
    (await metrics.text()).split('\n').find((line) => line.startsWith(name));
  /** Lets so much time pass, and the turns of it end. */
  const pass = async (ms: number): Promise<void> => {
    await clock.advance(ms);
    await until('the next one is planned', () => clock.timers() > 0);
  };
  return { clock, nowMs, lines, metric, provider, reconciling, parked, seen, record, pass };
};

describe('the log is compared with the ledger on a schedule', () => {
  test('soon after the start and then each hour; the time of the last one is measured', async () => {
    const { clock, lines, metric, provider, reconciling } = await scheduled(HELD);
    reconciling.start();
    expect(await metric('payments_reconcile_interval_seconds ')).toMatch(/ 3600$/);
    expect(await metric('payments_reconcile_last_timestamp_seconds ')).toMatch(/ 0$/);
    await clock.advance(70_000);
    await until('the first one has run', () => lines.length === 1);
    expect(lines).toEqual([
      [
        'info',
        expect.stringContaining(
          "log and provider's ledger were compared: what began since 2026-01-15T",
        ),
      ],
    ]);
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
    await reconciling.compare(WINDOW);
    expect(lines).toEqual([
      ['error', 'log and provider differ in 1 place; next: payments reconcile lists it'],
    ]);
    expect(await metric(GAUGE)).toMatch(/ 1$/);
    provider.respond = () => Promise.reject(new Error('connection refused'));
    await expect(reconciling.compare(WINDOW)).rejects.toThrow('connection refused');
    expect(await metric(GAUGE)).toMatch(/ 1$/);
  });

  test('a parked payment is not agreed on: its stream may be gone, and then no event is left to compare', async () => {
    const { reconciling, parked } = await scheduled(HELD);
    expect(await reconciling.compare(WINDOW)).toMatchObject({ ok: true });
    const reason = 'deleted at the server of the event store';
    parked.list.push({
      paymentId: 'pay_gone',
      revision: 2,
      reason,
      since: '2026-01-01T00:00:00.000Z',
    });
    expect(await reconciling.compare(WINDOW)).toMatchObject({
      ok: false,
      unreadable: 1,
      unreadableEvents: [{ paymentId: 'pay_gone', position: '', revision: 2, reason }],
    });
  });

  test.each<['log' | 'stream', string]>([
    ['log', 'agrees'],
    ['stream', 'is rejected'],
  ])('without read models a comparison of a log checked by %s %s', async (guarantee, what) => {
    const store = memoryEventStore() as EventStore;
    const stored = { ...store.stored, guarantee };
    const { reconciling, parked } = await scheduled(HELD, { store: { ...store, stored } });
    parked.read = () => Promise.reject(new ReadModelsUnavailable('not reached'));
    const compared = reconciling.compare(WINDOW).then(
      ({ ok }) => (ok ? 'agrees' : 'differs'),
      (error: Error) => (error instanceof ReadModelsUnavailable ? 'is rejected' : error),
    );
    expect(await compared).toBe(what);
  });

  test('an operation that recovery still asks for is counted, and is no error line', async () => {
    const { lines, metric, reconciling } = await scheduled([created()]);
    await reconciling.compare(WINDOW);
    expect(lines.map(([level]) => level)).toEqual(['info']);
    const gauge = 'payments_reconcile_differences{kind="UNRESOLVED_IN_LOG"}';
    expect(await metric(gauge)).toMatch(/ 1$/);
  });

  test('where the ledger cannot be read it says so, keeps its age, and tries again sooner', async () => {
    const { clock, lines, metric, provider, reconciling } = await scheduled(HELD);
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
    const { clock, metric, reconciling } = await scheduled(HELD, { everyMs: 0 });
    reconciling.start();
    expect(clock.timers()).toBe(0);
    expect(await metric('payments_reconcile_interval_seconds ')).toMatch(/ 0$/);
    expect(await reconciling.compare(WINDOW)).toMatchObject({ ok: true });
  });

  test('one runs at a time: who requests one meanwhile gets the same result', async () => {
    const { provider, reconciling } = await scheduled(HELD);
    const running = [reconciling.compare(WINDOW), reconciling.compare(WINDOW)];
    const [one, other] = await Promise.all(running);
    expect(one).toBe(other);
    const calls = provider.calls;
    await reconciling.compare(WINDOW);
    expect(provider.calls).toBe(2 * calls);
  });

  test('a stop ends the one under way and plans no other', async () => {
    const { clock, reconciling } = await scheduled(HELD);
    reconciling.start();
    const running = reconciling.compare(WINDOW);
    reconciling.stop();
    await expect(running).rejects.toThrow('the service is stopping');
    expect(clock.timers()).toBe(0);
  });
});

describe('gaps §28: the schedule compares a window, for a hundredth of the time', () => {
  test('after a look for what was made elsewhere, from the time of the last one on', async () => {
    const { seen, provider, reconciling, pass, nowMs } = await scheduled([created()]);
    reconciling.start();
    await pass(70_000);
    const first = nowMs();
    await pass(1.2 * HOUR_MS);
    expect(seen.looks).toEqual([undefined, expect.any(Number)]);
    expect(seen.looks[1]).toBeLessThanOrEqual(first);
    const windowMs = nowMs() - Date.parse(provider.since ?? '');
    expect(Math.floor(windowMs / DAY_MS)).toBe(45);
  });

  test('where the last one took long a later turn does, and each turn looks all the same', async () => {
    const { seen, lines, provider, reconciling, pass, metric } = await scheduled([created()]);
    provider.takesMs = 3 * 60_000;
    reconciling.start();
    await pass(70_000);
    for (let hours = 0; hours < 4; hours += 1) await pass(HOUR_MS);
    expect(lines).toHaveLength(1);
    expect(seen.looks.length).toBeGreaterThanOrEqual(3);
    expect(await metric('payments_reconcile_last_timestamp_seconds ')).toMatch(/ 1[0-9]{9}$/);
    for (let hours = 0; hours < 5; hours += 1) await pass(HOUR_MS);
    expect(lines).toHaveLength(2);
  });

  test('one that failed took its time too', async () => {
    const { lines, provider, reconciling, pass } = await scheduled([created()]);
    provider.takesMs = 60_000;
    provider.respond = () => Promise.reject(new Error('connection refused'));
    reconciling.start();
    await pass(70_000);
    for (let minutes = 0; minutes < 90; minutes += 5) await pass(5 * 60_000);
    expect(lines.map(([level]) => level)).toEqual(['warn']);
  });

  test('of several processes one has the turn, and the others show what it found', async () => {
    const parts = sharedParts();
    const one = await scheduled([created(), authorized({ amount: 9500 })], parts);
    const other = await scheduled([], parts);
    one.reconciling.start();
    other.reconciling.start();
    for (let minutes = 0; minutes < 5 * 60; minutes += 1) {
      await parts.clock.advance(60_000);
      await until('both have planned', () => parts.clock.timers() === 2);
    }
    // At most every 0.9 h; two that do not take turns look eight times at least.
    const looks = one.seen.looks.length + other.seen.looks.length;
    expect(looks).toBeGreaterThan(3);
    expect(looks).toBeLessThanOrEqual(6);
    for (const { metric } of [one, other]) expect(await metric(GAUGE)).toMatch(/ 1$/);
  });

  test('where the turn cannot be kept each one compares, and says that it cannot', async () => {
    const parts = sharedParts();
    parts.documents.turn.failSaves(Number.POSITIVE_INFINITY);
    const { lines, reconciling, seen, pass } = await scheduled(HELD, parts);
    reconciling.start();
    await pass(70_000);
    expect(seen.looks).toEqual([undefined]);
    expect(lines.filter(([level]) => level === 'warn')).toEqual([
      ['warn', expect.stringMatching(/^the turn of this reconciliation could not be kept/)],
    ]);
  });

  test('a day after the loss of the one that had begun, another one compares', async () => {
    const parts = sharedParts();
    const lost = await scheduled([created()], parts);
    const never = Promise.withResolvers<Page>();
    lost.provider.respond = () => never.promise;
    lost.reconciling.start();
    await parts.clock.advance(70_000);
    await until('it has begun', () => lost.provider.calls > 0);
    const other = await scheduled([], parts);
    other.reconciling.start();
    for (let hours = 0; hours < 22; hours += 1) await other.pass(HOUR_MS);
    expect([other.seen.looks.length > 1, other.lines]).toEqual([true, []]);
    for (let hours = 0; hours < 4 && other.lines.length === 0; hours += 1)
      await other.pass(HOUR_MS);
    expect(other.lines).toHaveLength(1);
    lost.reconciling.stop();
    never.resolve({ entries: [], next: null });
  });

  test.each([
    ['is damaged', '{"ranMs":1'],
    ['is of an earlier version', '{"kept":"{}","check":"c"}'],
    [
      'was kept by a clock that was ahead',
      `{"ranMs":${8e15},"compared":{"atMs":${8e15},"tookMs":1}}`,
    ],
  ])('where what was kept %s, it is compared', async (_how, text) => {
    const parts = sharedParts();
    await parts.documents.turn.save(text, 0);
    const { lines, reconciling, pass } = await scheduled([created()], parts);
    reconciling.start();
    await pass(70_000);
    expect(lines).toHaveLength(1);
  });
});

describe('gaps §28: a difference that was found is asked about again at each turn', () => {
  const other = async (): Promise<Page> => ({ entries: [{ ...ENTRY, amount: 1 }], next: null });
  const found = { kind: 'AMOUNT_DIFFERS', operationId: operationId(0), paymentId: 'pay_1' };
  /** A comparison that has found it, and later ones that it lies before. */
  const withFound = async () => {
    const at = await scheduled(HELD);
    const right = at.provider.respond;
    at.provider.respond = other;
    expect((await at.reconciling.compare(WINDOW)).differences).toMatchObject([found]);
    at.provider.respond = right;
    const standing = () => at.record.now().standing?.keys;
    return { ...at, standing };
  };

  test('and stands until it is gone, also where it is older than the window', async () => {
    const { reconciling, seen, metric, standing } = await withFound();
    expect(await reconciling.compare(WINDOW)).toMatchObject({ ok: false, differences: [found] });
    expect(seen.again).toEqual([found]);
    expect(await metric(GAUGE)).toMatch(/ 1$/);
    seen.stands = false;
    expect(await reconciling.compare(WINDOW)).toMatchObject({ ok: true, differences: [] });
    expect(await metric(GAUGE)).toMatch(/ 0$/);
    expect(standing()).toBeUndefined();
  });

  test('also in a turn that compares nothing', async () => {
    const { reconciling, seen, provider, pass, standing } = await withFound();
    provider.takesMs = DAY_MS;
    reconciling.start();
    await pass(70_000);
    const calls = provider.calls;
    seen.stands = false;
    await pass(1.2 * HOUR_MS);
    expect(standing()).toBeUndefined();
    expect(provider.calls).toBe(calls);
  });

  test('and not by a comparison of everything, which says it itself, nor by one since a time', async () => {
    const { reconciling, seen, standing } = await withFound();
    expect(
      await reconciling.compare({ since: '2026-02-28T00:00:00.000Z', all: 'false' }),
    ).toMatchObject({ ok: true });
    expect(standing()).toHaveLength(1);
    expect(await reconciling.compare(ALL)).toMatchObject({ ok: true });
    expect(standing()).toBeUndefined();
    expect(seen.again).toEqual([]);
  });
});

test('the service runs it by RECONCILE_INTERVAL_MS, and its route compares a part', async () => {
  await using service = await openInProcess({ RECONCILE_INTERVAL_MS: '20' });
  await service.create();
  const lastRun = () => service.metric('payments_reconcile_last_timestamp_seconds');
  await until('one has run', async () => (await lastRun()) > 1_000_000_000);
  const own = await token('*', 'audit:read');
  const compared = (query: string) =>
    service.ask('POST', `/audit/v1/reconcile${query}`, undefined, { token: own });
  const later = new Date(Date.now() + HOUR_MS).toISOString();
  for (const [query, operations] of [
    ['', 1],
    ['?all=true', 1],
    [`?since=${later}`, 0],
  ] as const)
    expect((await compared(query)).json).toMatchObject({ ok: true, operations });
  for (const [query, detail] of [
    ['?since=yesterday', 'since must be a date-time, as in 2026-01-31T08:00:00Z'],
    [`?since=${later}&all=true`, 'all must not stand beside since'],
    ['?all=yes', 'all must be true or false'],
  ])
    expect(await compared(query ?? '')).toMatchObject({
      status: 400,
      json: { error: 'INVALID_REQUEST', details: [detail] },
    });
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
    const { reconciling } = await scheduled(HELD, { everyMs: 0, store });
    const result = await reconciling.compare(WINDOW);
    expect(result).toMatchObject({ ok: true, operations: 1, entries: 1 });
  });

  test('a ledger that cannot be read is told from a log that cannot be read', async () => {
    const { reconciling, provider } = await scheduled([created()], { everyMs: 0, store });
    provider.respond = () => Promise.reject(new Error('out of reach'));
    const failed = reconciling.compare(WINDOW);
    await expect(failed).rejects.toThrow(LedgerUnavailable);
    await expect(failed).rejects.toThrow('out of reach');
  });

  test('a stop ends it while it waits for the ledger', async () => {
    const { reconciling, provider } = await scheduled([created()], { everyMs: 0, store });
    const page = Promise.withResolvers<{ entries: LedgerEntry[]; next: null }>();
    provider.respond = () => page.promise;
    const stopped = reconciling.compare(WINDOW);
    await until('the ledger is asked for', () => provider.calls === 1);
    reconciling.stop();
    page.resolve({ entries: [], next: null });
    await expect(stopped).rejects.toThrow('the service is stopping');
  });
});
