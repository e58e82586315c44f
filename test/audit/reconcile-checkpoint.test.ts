/** ADR-0263: the schedule goes on from where log and ledger agreed, and one process at a time does it. */
import { describe, expect, test } from '@jest/globals';
import { createIdentities } from '../../command-api/idempotency.ts';
import type { LedgerEntry, LedgerPage } from '../../command-api/provider/port.ts';
import { openTurns } from '../../command-api/reconcile/checkpoint.ts';
import type { Logged } from '../../command-api/reconcile/differences.ts';
import { openReconciling } from '../../command-api/reconcile/reconciling.ts';
import { openCheckRecord } from '../../shared/check-record.ts';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { type PaymentEvent, streamOf } from '../../shared/payment/payment-events.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { manualClock } from '../support/manual-clock.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { memoryDocument } from '../support/memory-feed.ts';
import {
  authorized,
  captured,
  captureRequested,
  created,
  newEvent,
  refunded,
  refundRequested,
} from '../support/payment-events.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const SECRET = 'a secret of this installation';

type Read = { entries: number; events: number; lookedUp: string[] };

/** A log, a ledger and what the processes share; any number of processes compare them. */
const installation = () => {
  const store = memoryEventStore();
  const ledger: LedgerEntry[] = [];
  const document = memoryDocument();
  const recordDocument = memoryDocument();
  const clock = manualClock();
  const nowMs = () => Date.UTC(2026, 0, 15) + clock.nowMs();
  const last = new Map<string, RecordedEvent>();
  /** What the provider says of an operation that the ledger lists earlier. */
  const agreed = new Set<string>();

  const append = async (paymentId: string, ...events: PaymentEvent[]): Promise<void> => {
    const before = last.get(paymentId);
    const at = before === undefined ? ('none' as const) : before;
    const made = events.map((event) => newEvent(event));
    const stored = await store.append(streamOf(paymentId), at, made);
    last.set(paymentId, stored.at(-1) as RecordedEvent);
  };
  const list = (
    paymentId: string,
    operationId: string,
    fields: Partial<LedgerEntry> = {},
  ): void => {
    const cursor = String(ledger.length + 1);
    const money = { amount: 2500, currency: 'USD' };
    const own = { cursor, operationId, paymentId, providerReference: `sim_${cursor}` };
    ledger.push({ ...own, ...money, kind: 'AUTHORIZE', outcome: 'APPROVED', ...fields });
  };
  const pay = async (paymentId: string): Promise<void> => {
    const operationId = `op_${paymentId}`;
    await append(paymentId, created({ paymentId, operationId }), authorized({ operationId }));
    list(paymentId, operationId);
  };

  const open = (secret = SECRET, over = store) => {
    const read: Read = { entries: 0, events: 0, lookedUp: [] };
    const lines: [level: string, message: string][] = [];
    const logTo = (level: string) => (_fields: object, message: string) => {
      lines.push([level, message]);
    };
    const metrics = createMetrics();
    const turns = openTurns({
      document,
      checkOf: createIdentities([secret]).checkOf,
      store: over,
      provider: 'simulator',
      nowMs,
    });
    const reconciling = openReconciling({
      store: {
        ...over,
        readAll: async (...range) => {
          const page = await over.readAll(...range);
          read.events += page.length;
          return page;
        },
      },
      provider: {
        ledger: async (after, limit): Promise<LedgerPage> => {
          const from = ledger.filter(({ cursor }) => Number(cursor) > Number(after));
          const entries = from.slice(0, limit);
          read.entries += entries.length;
          return { entries, next: from.length > limit ? (entries.at(-1)?.cursor ?? null) : null };
        },
      },
      agreesOn: async ({ operationId }: Logged) => {
        read.lookedUp.push(operationId);
        return agreed.has(operationId);
      },
      everyMs: HOUR_MS,
      metrics,
      logger: { info: logTo('info'), warn: logTo('warn'), error: logTo('error') },
      record: openCheckRecord(recordDocument, nowMs),
      turns,
      nowMs,
      onNeverSent: async () => undefined,
      readModels: { parked: async () => [] },
      untoldDisputes: async () => [],
      askAboutUntold: async () => false,
      lookForEnded: async () => undefined,
      startTimer: clock.startTimer,
    });
    const differences = async (): Promise<number> => {
      const text = await metrics.text();
      const found = text.matchAll(/^payments_reconcile_differences\{.*\} ([0-9]+)$/gm);
      return [...found].reduce((sum, [, count]) => sum + Number(count), 0);
    };
    return { reconciling, turns, read, lines, differences };
  };

  /** Lets so much time pass, until one more comparison has ended; what it read. */
  const next = async (at: ReturnType<typeof open>, ms = HOUR_MS * 1.3): Promise<Read> => {
    const ended = at.lines.length;
    Object.assign(at.read, { entries: 0, events: 0, lookedUp: [] });
    await clock.advance(ms);
    await until('it has compared', () => at.lines.length > ended);
    await until('the next one is planned', () => clock.timers() > 0);
    return at.read;
  };
  const started = async () => {
    const at = open();
    at.reconciling.start();
    await next(at, 70_000);
    return at;
  };
  return { store, ledger, document, clock, agreed, append, list, pay, open, next, started };
};

describe('what is new is compared each hour', () => {
  test('and nothing of what agreed is read again', async () => {
    const { pay, next, started } = installation();
    for (let n = 0; n < 2_000; n += 1) await pay(`pay_${n}`);
    const at = await started();
    expect(at.read).toMatchObject({ entries: 2_000, events: 4_000 });
    for (let n = 0; n < 3; n += 1) await pay(`pay_new${n}`);
    expect(await next(at)).toEqual({ entries: 3, events: 6, lookedUp: [] });
    expect(at.lines.at(-1)).toEqual([
      'info',
      "log and provider's ledger were compared: what is new since they agreed",
    ]);
    expect(await next(at)).toEqual({ entries: 0, events: 0, lookedUp: [] });
  });

  test('what an operator asks for is everything, also meanwhile', async () => {
    const { pay, next, started } = installation();
    await pay('pay_1');
    const at = await started();
    await next(at);
    expect(await at.reconciling.once()).toMatchObject({ ok: true, operations: 1, entries: 1 });
  });

  test('a difference in it is found, and found again each hour until it is gone', async () => {
    const { pay, list, ledger, next, started } = installation();
    await pay('pay_1');
    const at = await started();
    list('pay_lost', 'op_lost');
    await next(at);
    expect(at.lines.at(-1)?.[0]).toBe('error');
    await next(at);
    expect(await at.differences()).toBe(1);
    ledger.pop();
    await next(at);
    expect(await at.differences()).toBe(0);
  });

  test('an operation that was under way when the two agreed is compared with its outcome', async () => {
    const { append, list, next, started } = installation();
    const operationId = 'op_slow';
    await append('pay_1', created({ paymentId: 'pay_1', operationId }));
    await append('pay_2', created({ paymentId: 'pay_2', operationId: 'op_other' }));
    list('pay_2', 'op_other');
    await append('pay_2', authorized({ operationId: 'op_other' }));
    const at = await started();
    await append('pay_1', authorized({ operationId }));
    list('pay_1', operationId);
    await append('pay_2', captureRequested({ operationId: 'op_c' }));
    await next(at);
    expect(at.lines.at(-1)?.[0]).toBe('info');
    await append('pay_2', captured({ operationId: 'op_c' }));
    list('pay_2', 'op_c', { kind: 'CAPTURE', amount: 100 });
    await next(at);
    expect(at.lines.at(-1)?.[0]).toBe('error');
    expect(await at.differences()).toBe(1);
  });

  test('an operation without an outcome, which the provider carried out, holds the place back', async () => {
    const { append, list, pay, next, started } = installation();
    await pay('pay_1');
    await append('pay_2', created({ paymentId: 'pay_2', operationId: 'op_2' }));
    list('pay_2', 'op_2');
    await pay('pay_3');
    const at = await started();
    expect(await at.differences()).toBe(1);
    await append('pay_2', authorized({ operationId: 'op_2', amount: 100 }));
    await next(at);
    expect(at.lines.at(-1)?.[0]).toBe('error');
  });

  test('a refund of an old payment is new in the ledger', async () => {
    const { append, list, pay, next, started } = installation();
    await pay('pay_1');
    await append('pay_1', captureRequested({ operationId: 'op_c' }));
    await append('pay_1', captured({ operationId: 'op_c' }));
    list('pay_1', 'op_c', { kind: 'CAPTURE' });
    const at = await started();
    await append('pay_1', refundRequested({ operationId: 'op_r', amount: 100 }));
    await append('pay_1', refunded({ operationId: 'op_r', amount: 100 }));
    list('pay_1', 'op_r', { kind: 'REFUND', amount: 100 });
    expect(await next(at)).toMatchObject({ entries: 1, events: 2 });
    expect(at.lines.at(-1)?.[0]).toBe('info');
  });

  test('the provider is asked about a capture that its ledger lists at its authorization', async () => {
    const { append, agreed, pay, next, started } = installation();
    await pay('pay_1');
    const at = await started();
    agreed.add('op_c');
    await append('pay_1', captureRequested({ operationId: 'op_c' }));
    await append('pay_1', captured({ operationId: 'op_c' }));
    expect((await next(at)).lookedUp).toEqual(['op_c']);
    expect(at.lines.at(-1)?.[0]).toBe('info');
    await append('pay_1', refundRequested({ operationId: 'op_r' }));
    await append('pay_1', refunded({ operationId: 'op_r' }));
    expect((await next(at)).lookedUp).toEqual(['op_r']);
    expect(at.lines.at(-1)?.[0]).toBe('error');
  });
});

describe('everything is compared now and then', () => {
  test('each day: a change of what had agreed is found, and stays until it is gone', async () => {
    const { ledger, pay, next, started } = installation();
    await pay('pay_1');
    await pay('pay_2');
    const at = await started();
    const [first] = ledger;
    ledger.splice(0, 1, { ...(first as LedgerEntry), amount: 1 });
    await next(at);
    expect(await at.differences()).toBe(0);
    await next(at, DAY_MS);
    await next(at);
    await until('it is found', async () => (await at.differences()) === 1);
    await next(at);
    expect(await at.differences()).toBe(1);
    ledger.splice(0, 1, first as LedgerEntry);
    await next(at);
    expect(await at.differences()).toBe(0);
  });

  test.each<[string, (kept: { kept: string; check: string }) => string]>([
    ['is damaged', ({ kept }) => kept.slice(0, 20)],
    [
      'was moved on by other hands',
      ({ kept, check }) => {
        const { mark, ...others } = JSON.parse(kept);
        return JSON.stringify({
          kept: JSON.stringify({ ...others, ranMs: 1, mark: { ...mark, cursor: '2' } }),
          check,
        });
      },
    ],
  ])('where the place %s', async (_name, changed) => {
    const { document, ledger, pay, list, next, started } = installation();
    await pay('pay_1');
    const at = await started();
    list('pay_lost', 'op_lost');
    expect(ledger).toHaveLength(2);
    const { text = '', version = 0 } = (await document.load()) ?? {};
    await document.save(changed(JSON.parse(text)), version);
    expect(await next(at)).toMatchObject({ events: 2 });
    expect(await at.differences()).toBe(1);
  });

  test('where it was kept under another secret, or for another log', async () => {
    const { clock, pay, next, open, started, store } = installation();
    await pay('pay_1');
    (await started()).reconciling.stop();
    await clock.advance(2 * HOUR_MS);
    const rotated = open('another secret');
    rotated.reconciling.start();
    expect(await next(rotated, 70_000)).toMatchObject({ entries: 1, events: 2 });
    rotated.reconciling.stop();
    const restored = open('another secret', { ...store, hashAt: async () => ({ hash: 'other' }) });
    restored.reconciling.start();
    expect(await next(restored, 70_000)).toMatchObject({ entries: 1, events: 2 });
  });
});

describe('of several processes', () => {
  test('one compares in each interval, and the others show what it found', async () => {
    const { clock, list, pay, open, started } = installation();
    await pay('pay_1');
    const one = await started();
    const other = open();
    other.reconciling.start();
    await clock.advance(70_000);
    expect(other.lines).toEqual([]);
    list('pay_lost', 'op_lost');
    const runs = () => one.lines.length + other.lines.length;
    // By the minute: a comparison ends before its turn is over.
    for (let minutes = 0; minutes < 4 * 78; minutes += 1) {
      await clock.advance(HOUR_MS / 60);
      await until('both have planned', () => clock.timers() === 2);
    }
    expect(runs()).toBeGreaterThan(4);
    // At most every 0.9 h in 5.2 h; two that do not take turns are nine at least.
    expect(runs()).toBeLessThanOrEqual(7);
    expect(await one.differences()).toBe(1);
    expect(await other.differences()).toBe(1);
  });

  test('another one does it ten minutes after the loss of the one that had begun', async () => {
    const { clock, pay, open } = installation();
    await pay('pay_1');
    const lost = await open().turns.take(HOUR_MS);
    expect(lost.turn).toBeDefined();
    const other = open();
    other.reconciling.start();
    for (let minutes = 1; minutes <= 9; minutes += 1) {
      await clock.advance(60_000);
      await until('its next look is planned', () => clock.timers() === 1);
    }
    expect(other.lines).toEqual([]);
    await clock.advance(6 * 60_000);
    await until('it has compared', () => other.lines.length === 1);
  });
});
