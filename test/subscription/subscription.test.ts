/** The loop that follows the log: it comes back after anything, from the checkpoint, and stops. */
import { describe, expect, test } from '@jest/globals';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { Position } from '../../shared/event-store/port.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { runSubscription, type Subscription } from '../../shared/subscription/subscription.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { appendPayment, created } from '../support/payment-events.ts';
import { silent } from '../support/silent-log.ts';
import { until } from '../support/until.ts';

const backOff = { minMs: 1, maxMs: 8 };

/** A subscriber that keeps what it was given, and can be told to fail. */
const recorder = () => {
  const seen: Position[] = [];
  const state = { caughtUp: 0, starts: 0, running: 0, overlaps: 0 };
  const failures: Error[] = [];
  return {
    seen,
    state,
    failures,
    start: async () => {
      state.starts += 1;
      return seen.at(-1) ?? null;
    },
    events: async (events: { position: Position }[]) => {
      state.running += 1;
      if (state.running > 1) state.overlaps += 1;
      await new Promise((resolve) => setImmediate(resolve));
      state.running -= 1;
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      seen.push(...events.map(({ position }) => position));
    },
    caughtUp: () => {
      state.caughtUp += 1;
    },
  };
};

const append = async (store: MemoryEventStore, from: number, count: number): Promise<void> => {
  for (let n = from; n < from + count; n += 1)
    await appendPayment(store, `pay_${n}`, [created({ paymentId: `pay_${n}` })]);
};
const positions = async (store: MemoryEventStore): Promise<Position[]> =>
  (await store.readAll(null, 1000)).map(({ position }) => position);

const follow = async (
  store: MemoryEventStore,
  test: (subscriber: ReturnType<typeof recorder>, subscription: Subscription) => Promise<void>,
): Promise<void> => {
  const subscriber = recorder();
  const subscription = runSubscription({ store, subscriber, logger: silent, backOff });
  try {
    await test(subscriber, subscription);
  } finally {
    await subscription.stop();
  }
};

describe('the catch-up loop', () => {
  test('delivers everything once, in order, one batch at a time, and says when it is through', async () => {
    const store = memoryEventStore({ batchMax: 3 });
    await append(store, 0, 10);
    await follow(store, async (subscriber, subscription) => {
      await until('caught up', () => subscriber.state.caughtUp === 1);
      expect(subscriber.seen).toHaveLength(10);
      await append(store, 10, 5);
      await until('all there', () => subscriber.seen.length === 15);
      expect(subscriber.seen).toEqual(await positions(store));
      expect(subscriber.state.overlaps).toBe(0);
      expect(subscription.status()).toEqual({ state: 'running', restarts: 0 });
    });
  });

  test('comes back after the store was out of reach, from where it was', async () => {
    const store = memoryEventStore();
    await append(store, 0, 4);
    await follow(store, async (subscriber, subscription) => {
      await until('caught up', () => subscriber.state.caughtUp === 1);
      store.failWith(new StoreUnavailable('the event store is away'));
      await until('several tries', () => subscription.status().restarts > 3);
      expect(subscription.status()).toMatchObject({ error: 'the event store is away' });
      await append(store, 4, 4);
      store.failWith(undefined);
      await until('all there', () => subscriber.seen.length === 8);
      await until('running', () => subscription.status().state === 'running');
      expect(subscription.status().error).toBeUndefined();
      expect(subscriber.seen).toEqual(await positions(store));
      expect(store.subscriptions().after).toBe(subscriber.seen[3]);
    });
  });

  test('a subscription that ends without an error is started again', async () => {
    const store = memoryEventStore();
    await append(store, 0, 2);
    await follow(store, async (subscriber) => {
      await until('caught up', () => subscriber.state.caughtUp === 1);
      store.drop();
      await until('caught up again', () => subscriber.state.caughtUp === 2);
      await append(store, 2, 2);
      await until('all there', () => subscriber.seen.length === 4);
      expect(subscriber.seen).toEqual(await positions(store));
    });
  });

  test('a batch that failed is delivered again, and the ones after it wait', async () => {
    const store = memoryEventStore({ batchMax: 2 });
    await append(store, 0, 8);
    await follow(store, async (subscriber) => {
      subscriber.failures.push(new Error('first'), new Error('second'));
      await until('caught up', () => subscriber.state.caughtUp === 1);
      expect(subscriber.seen).toEqual(await positions(store));
      expect(subscriber.state.starts).toBe(3);
    });
  });

  test('V4: the waits double from the least to the most, with jitter', async () => {
    const waits: number[] = [];
    const logger: Logger = {
      ...silent,
      warn: (fields) => {
        waits.push((fields as { waitMs: number }).waitMs);
      },
    };
    const start = () => Promise.reject(new Error(`away, ${waits.length}`));
    const subscription = runSubscription({
      store: memoryEventStore(),
      subscriber: { ...recorder(), start },
      logger,
      backOff: { minMs: 4, maxMs: 32 },
    });
    await until('eight tries', () => waits.length >= 8);
    await subscription.stop();
    for (const [n, wait] of waits.slice(0, 8).entries()) {
      const fullMs = Math.min(32, 4 * 2 ** n);
      expect(wait).toBeGreaterThanOrEqual(fullMs / 2);
      expect(wait).toBeLessThanOrEqual(fullMs);
    }
  });

  test('a reason that lasts is one line, and another one once it went on in between', async () => {
    const reasons: unknown[] = [];
    const warn: Logger['warn'] = (fields) =>
      void reasons.push((fields as { reason: string }).reason);
    const store = memoryEventStore();
    const subscriber = recorder();
    const logger = { ...silent, warn };
    const subscription = runSubscription({ store, subscriber, logger, backOff });
    for (const round of [1, 2]) {
      await until('caught up', () => subscriber.state.caughtUp === round);
      store.failWith(new StoreUnavailable('the password is wrong'));
      await until('several tries', () => subscription.status().restarts > round * 4);
      store.failWith(undefined);
    }
    await subscription.stop();
    expect(reasons).toEqual(['the password is wrong', 'the password is wrong']);
  });

  test('stops between two batches, and delivers nothing afterwards', async () => {
    const store = memoryEventStore({ batchMax: 1 });
    await append(store, 0, 50);
    const subscriber = recorder();
    const third = Promise.withResolvers<void>();
    const events: typeof subscriber.events = async (batch) => {
      if (subscriber.seen.length === 2) third.resolve();
      await subscriber.events(batch);
    };
    const subscription = runSubscription({
      store,
      subscriber: { ...subscriber, events },
      logger: silent,
      backOff,
    });
    await third.promise;
    await subscription.stop();
    const { length } = subscriber.seen;
    expect(length).toBe(3);
    expect(subscription.status().state).toBe('stopped');
    await append(store, 50, 1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(subscriber.seen).toEqual((await positions(store)).slice(0, length));
  });

  test('stops at once while it waits to try again', async () => {
    const store = memoryEventStore();
    store.failWith(new StoreUnavailable('away'));
    const subscription = runSubscription({
      store,
      subscriber: recorder(),
      logger: silent,
      backOff: { minMs: 60_000, maxMs: 60_000 },
    });
    await until('waiting', () => subscription.status().state === 'backing-off');
    await subscription.stop();
    expect(subscription.status().state).toBe('stopped');
  });
});
