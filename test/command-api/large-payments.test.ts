/** Payments with as many operations as they may have: what they take of memory and of the event loop. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exportTexts, pageText } from '../../audit/log.ts';
import { walkLog } from '../../audit/walk-log.ts';
import { reconcile } from '../../command-api/back-office/reconcile/reconcile.ts';
import { newThread } from '../../embedded/jobs.ts';
import { createBodies } from '../../personal-data/opener.ts';
import { getPayment } from '../../query-api/get-payment.ts';
import { asPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import { followPaymentStates } from '../../shared/event-store/payment-states.ts';
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { resultOf } from '../../shared/runtime/jobs.ts';
import { refundsOfOneCent } from '../support/largest-payment.ts';
import { appendLives } from '../support/many-payments.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { appendPayment, created, wholeLife } from '../support/payment-events.ts';
import { paymentLogOver } from '../support/payment-log.ts';
import { openNothing } from '../support/personal-data.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const UNOPENED = { openText: openNothing, bodies: createBodies(openNothing) };

/** Events of a whole life. */
const LIFE = wholeLife('pay_1').length;

const SALE = { captureNow: true, amount: 99_999_999 };

const appendRefunds = async (store: EventStore, paymentId: string, operations: number) => {
  const events = refundsOfOneCent(created({ paymentId, ...SALE }), operations);
  return appendPayment(store, paymentId, events);
};
const logOver = (store: EventStore, cachedBytesMax: number) =>
  paymentLogOver(store, { cachedPaymentsMax: 100, cachedBytesMax });

/** How often other work had its turn while a step ran. */
const turnsDuring = async (step: () => Promise<unknown>): Promise<number> => {
  let turns = 0;
  let running = true;
  const count = (): void => {
    turns += 1;
    if (running) setImmediate(count);
  };
  setImmediate(count);
  await step();
  running = false;
  return turns;
};

describe('caches are bounded by bytes', () => {
  test('a few large payments take the place of many small ones in memory', async () => {
    const store = memoryEventStore();
    const small = Array.from({ length: 20 }, (_, n) => `pay_small_${n}`);
    const large = Array.from({ length: 6 }, (_, n) => `pay_large_${n}`);
    for (const id of small) await appendRefunds(store, id, 2);
    for (const id of large) await appendRefunds(store, id, 60);
    const log = logOver(store, 500_000);
    const kept = (ids: string[]) => ids.filter((id) => log.peek(id) !== undefined).length;
    for (const id of small) await log.load(id, 'cache');
    expect(kept(small)).toBe(20);
    for (const id of large) await log.load(id, 'cache');
    expect(kept(small)).toBe(0);
    expect(kept(large)).toBe(3);
  });

  test('a payment that is larger than the whole cache is served and not kept', async () => {
    const store = memoryEventStore();
    await appendRefunds(store, 'pay_1', 60);
    const log = logOver(store, 50_000);
    expect((await log.load('pay_1', 'cache'))?.events).toHaveLength(121);
    expect(log.peek('pay_1')).toBeUndefined();
  });
});

const OPERATIONS = 400;

describe('a payment of many operations is read in slices', () => {
  const folder = temporaryFolder();
  let store: EventStore;
  let last: RecordedEvent | undefined;
  beforeAll(async () => {
    store = await openSqliteEventStore({ file: join(folder.path, 'events.sqlite'), newThread });
    last = (await appendRefunds(store, 'pay_1', OPERATIONS)).at(-1);
  });
  afterAll(async () => {
    await store.close();
    folder.remove();
  });

  /** Of 801 events. */
  const SLICES = 8;

  test.each<[string, () => Promise<unknown>]>([
    ['a command', () => logOver(inMemory, 1_000_000).load('pay_1', 'store')],
    ['a GET without a document', () => fold()],
    ['the relay', () => followPaymentStates(inMemory).after(asPaymentEvent(last as never))],
  ])('by %s, which folds it', async (_who, step) => {
    events = await store.readStream(streamOf('pay_1'));
    expect(await turnsDuring(step)).toBeGreaterThanOrEqual(SLICES);
  });

  let events: RecordedEvent[] = [];
  /** A store that has read the stream already, so that every turn is one of the fold. */
  const inMemory: EventStore = { ...memoryEventStore(), readStream: async () => events };
  const fold = async (): Promise<void> => {
    const readModels = { get: async () => undefined } as never;
    const behind = () => false;
    const deps = { store: inMemory, readModels, behind, ...UNOPENED };
    const found = await getPayment(deps, 'pay_1', 'm_1');
    expect(JSON.parse(found?.body ?? '{}').transactions).toHaveLength(OPERATIONS);
  };
});

describe('a log that no thread can read is read in slices', () => {
  /** One page. */
  const EVENTS = 240;
  const SLICES = 2;
  const store = memoryEventStore();
  beforeAll(() =>
    appendLives(
      store,
      Array.from({ length: EVENTS / LIFE }, (_, n) => `pay_${n}`),
    ),
  );

  const { signal } = new AbortController();
  const requested = { from: 'start', fromTime: undefined, toTime: undefined, limit: EVENTS };
  const deps = { store, readModels: { getAny: async () => undefined } };
  const verified = async () => {
    return resultOf(walkLog({ stored: store.stored, signal, end: await store.end() }));
  };
  const exported = async () => {
    const texts: string[] = [];
    const steps = exportTexts(deps, { requested, only: undefined });
    await resultOf(steps, (text) => texts.push(text));
    return { events: texts.join('').split('\n').length - 1 };
  };
  const paged = async () => {
    const { events } = JSON.parse(await pageText(deps, { requested, only: undefined }));
    return { events: events.length };
  };
  const reconciled = async () => {
    const ledger = async () => ({ entries: [], next: null });
    return reconcile({ store, provider: { ledger } });
  };

  const whole = { events: EVENTS };
  test.each<[string, number, () => Promise<unknown>, object]>([
    ['a verification', SLICES + 1, verified, whole],
    ['an export', SLICES, exported, whole],
    ['a page', SLICES, paged, whole],
    ['a reconciliation', SLICES + 1, reconciled, { unreadable: 0, ok: false }],
  ])('by %s, in %i turns', async (_who, slices, read, found) => {
    let result: unknown;
    const turns = await turnsDuring(async () => {
      result = await read();
    });
    expect(result).toMatchObject(found);
    expect(turns).toBeGreaterThanOrEqual(slices);
  });
});
