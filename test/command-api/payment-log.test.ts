/** What a process remembers of a payment, and what it makes of an append whose outcome is unknown. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { PaymentLog } from '../../command-api/payment-log.ts';
import {
  AppendOutcomeUnknown,
  StoreUnavailable,
  StreamNotWhole,
} from '../../shared/event-store/errors.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { startBudget } from '../../shared/http/request-budget.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { capture, NEW_OPERATION, record } from '../support/commands.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { appendPayment, authorized, created } from '../support/payment-events.ts';
import { paymentLogOver } from '../support/payment-log.ts';

const context = { actor: 'm_1', causationId: 'c', correlationId: 'c', requestId: 'r' };
const ID = 'pay_1';

let store: MemoryEventStore;
beforeEach(async () => {
  store = memoryEventStore();
  await appendPayment(store, ID, [created(), authorized()]);
});

const logOver = (changes: Partial<EventStore>, cachedPaymentsMax = 10): PaymentLog =>
  paymentLogOver({ ...store, ...changes }, { cachedPaymentsMax });
const types = async () => (await store.readStream(streamOf(ID))).map(({ event }) => event.type);
const begin = (log: PaymentLog, budgetMs = 1000) =>
  log.execute(ID, capture({ operationId: NEW_OPERATION }), context, startBudget(budgetMs));

/** A store whose first read of a stream ends only when it is released. */
const withSlowRead = () => {
  const release = Promise.withResolvers<void>();
  let reads = 0;
  const readStream: EventStore['readStream'] = async (stream) => {
    const events = await store.readStream(stream);
    reads += 1;
    if (reads === 1) await release.promise;
    return events;
  };
  return { readStream, release: release.resolve };
};

test('a payment that was seen and is gone from the log is not one that never was', async () => {
  const log = logOver({});
  expect(await log.load('pay_2', 'store')).toBeUndefined();
  expect((await log.load(ID, 'store'))?.events).toHaveLength(2);
  store.cut(0);
  await expect(log.load(ID, 'store')).rejects.toBeInstanceOf(StreamNotWhole);
});

describe('gaps §6: a process keeps in memory what it has appended', () => {
  test('a read that began before an append and ends after it does not replace the newer events', async () => {
    const { readStream, release } = withSlowRead();
    const log = logOver({ readStream });
    const slow = log.load(ID, 'cache');
    await begin(log);
    release();
    await slow;
    expect(log.peek(ID)?.events).toHaveLength(3);
  });

  test('an outcome is recorded though another payment has taken its place in memory', async () => {
    await appendPayment(store, 'pay_2', [created({ paymentId: 'pay_2' })]);
    const { readStream, release } = withSlowRead();
    const log = logOver({ readStream }, 1);
    const slow = log.load(ID, 'cache');
    await begin(log);
    await log.load('pay_2', 'store');
    release();
    await slow;
    expect(log.peek(ID)?.events).toHaveLength(2);
    await log.execute(ID, record(NEW_OPERATION), context, startBudget(1000));
    expect((await types()).at(-1)).toBe('PaymentCaptured');
  });

  test('an outcome needs no read of a payment that others have displaced from memory meanwhile', async () => {
    await appendPayment(store, 'pay_2', [created({ paymentId: 'pay_2' })]);
    const read: string[] = [];
    const readStream: EventStore['readStream'] = (stream) => {
      read.push(stream);
      return store.readStream(stream);
    };
    const log = logOver({ readStream }, 1);
    const begun = await begin(log);
    if (begun.kind !== 'done') throw new Error(begun.kind);
    await log.load('pay_2', 'cache');
    expect(log.peek(ID)).toBeUndefined();
    await log.record(begun.payment, record(NEW_OPERATION));
    expect((await types()).at(-1)).toBe('PaymentCaptured');
    expect(read).toEqual([streamOf(ID), streamOf('pay_2')]);
  });
});

describe('gaps §7: an append whose outcome is unknown', () => {
  /** Each append meets the next of these; the last one again and again. */
  const inTurn = (...outcomes: ('lost' | 'refused' | 'taken')[]): EventStore['append'] => {
    let attempts = 0;
    return async (...append) => {
      const outcome = outcomes[Math.min(attempts, outcomes.length - 1)];
      attempts += 1;
      if (outcome === 'refused') throw new StoreUnavailable('no leader');
      const stored = await store.append(...append);
      if (outcome === 'lost') throw new AppendOutcomeUnknown('the answer was lost');
      return stored;
    };
  };

  test('an append with an unknown outcome stays unknown when its repeat is refused', async () => {
    const log = logOver({ append: inTurn('lost', 'refused') });
    await expect(begin(log, 200)).rejects.toThrow(AppendOutcomeUnknown);
    expect(await types()).toContain('PaymentCaptureRequested');
  });

  test('an append with an unknown outcome is known once a later repeat succeeds: stored once', async () => {
    const log = logOver({ append: inTurn('lost', 'refused', 'refused', 'taken') });
    expect((await begin(log)).kind).toBe('done');
    expect((await types()).filter((type) => type === 'PaymentCaptureRequested')).toHaveLength(1);
  });
});
