/** gaps §9: in one process the projector knows which payments its read models are behind on. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { type Freshness, trackFreshness } from '../../projector/freshness.ts';
import { AppendOutcomeUnknown, RevisionConflict } from '../../shared/event-store/errors.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { appendPayment, authorized, created } from '../support/payment-events.ts';

describe('gaps §9: which payments are behind', () => {
  let inner: MemoryEventStore;
  let freshness: Freshness;
  let store: EventStore;
  beforeEach(() => {
    inner = memoryEventStore();
    freshness = trackFreshness();
    store = freshness.tracked(inner);
  });
  const append = (paymentId: string, count = 1) =>
    appendPayment(store, paymentId, [created({ paymentId }), authorized()].slice(0, count));

  test('a subscription names its types to the store that is tracked (ADR-0036)', async () => {
    await append('pay_1', 2);
    const leaving = new AbortController();
    const types: string[] = [];
    const items = store.subscribe(null, leaving.signal, ['PaymentAuthorized']);
    for await (const item of items) {
      if (item.kind !== 'events') break;
      types.push(...item.events.map((one) => ('event' in one ? one.event.type : 'unreadable')));
    }
    leaving.abort();
    expect(types).toEqual(['PaymentAuthorized']);
  });

  test('every payment, until the first catch-up is complete: no command waits for it', async () => {
    const wait = freshness.waitIn({ waitForRevision: async () => true });
    const look = async () => [freshness.isBehind('pay_1'), await wait('pay_1', 0, 0)];
    expect(await look()).toEqual([true, false]);
    freshness.starting();
    expect(await look()).toEqual([true, false]);
    freshness.caughtUp();
    expect(await look()).toEqual([false, true]);
  });

  test('afterwards exactly the payments whose last committed event is not applied', async () => {
    freshness.caughtUp();
    await append('pay_1', 2);
    expect([freshness.isBehind('pay_1'), freshness.isBehind('pay_2')]).toEqual([true, false]);
    freshness.applied('pay_1', 0);
    expect(freshness.isBehind('pay_1')).toBe(true);
    freshness.applied('pay_1', 1);
    expect(freshness.isBehind('pay_1')).toBe(false);
    expect(freshness.size()).toBe(0);
  });

  test('a payment appended during the first catch-up stays behind after it', async () => {
    freshness.starting();
    await append('pay_1');
    freshness.caughtUp();
    expect(freshness.isBehind('pay_1')).toBe(true);
  });

  test('A5: every payment once there are too many to remember, until the projector has caught up again', async () => {
    freshness = trackFreshness(3);
    store = freshness.tracked(inner);
    freshness.caughtUp();
    for (const id of ['pay_1', 'pay_2', 'pay_3']) await append(id);
    expect(freshness.isBehind('pay_other')).toBe(false);
    await append('pay_4');
    expect(freshness.isBehind('pay_other')).toBe(true);
    expect(freshness.size()).toBe(1);
    freshness.caughtUp();
    const behind = ['pay_1', 'pay_4', 'pay_other'].filter((id) => freshness.isBehind(id));
    expect(behind).toEqual(['pay_4']);
  });

  test('no payment whose event was applied before its append returned', async () => {
    const release = Promise.withResolvers<void>();
    const slow: EventStore = {
      ...inner,
      append: async (...args) => {
        const recorded = await inner.append(...args);
        await release.promise;
        return recorded;
      },
    };
    freshness = trackFreshness();
    store = freshness.tracked(slow);
    freshness.caughtUp();
    const appending = append('pay_1', 2);
    expect(freshness.isBehind('pay_1')).toBe(false);
    freshness.applied('pay_1', 1);
    release.resolve();
    await appending;
    expect(freshness.isBehind('pay_1')).toBe(false);
    expect(freshness.size()).toBe(0);
  });

  test('of two appends at one revision only the stored one makes a payment behind', async () => {
    freshness.caughtUp();
    const results = await Promise.allSettled([append('pay_1'), append('pay_1')]);
    expect(results[1]).toMatchObject({ reason: expect.any(RevisionConflict) });
    freshness.applied('pay_1', 0);
    expect(freshness.isBehind('pay_1')).toBe(false);
    await expect(append('pay_1')).rejects.toThrow(RevisionConflict);
    expect(freshness.isBehind('pay_1')).toBe(false);
    expect(freshness.size()).toBe(0);
  });

  test('the payment of an append with an unknown outcome, until it is applied or a new start has caught up', async () => {
    freshness.caughtUp();
    for (const paymentId of ['pay_1', 'pay_2']) {
      inner.loseNextResponse();
      await expect(append(paymentId)).rejects.toThrow(AppendOutcomeUnknown);
      expect(freshness.isBehind(paymentId)).toBe(true);
    }
    freshness.applied('pay_1', 0);
    expect(freshness.isBehind('pay_1')).toBe(false);
    freshness.starting();
    expect(freshness.isBehind('pay_2')).toBe(true);
    freshness.caughtUp();
    expect(freshness.isBehind('pay_2')).toBe(false);
    expect(freshness.size()).toBe(0);
  });

  test('every payment after the read models were lost, until they are filled again', () => {
    freshness.caughtUp();
    freshness.lost();
    expect(freshness.isBehind('pay_1')).toBe(true);
    freshness.caughtUp();
    expect(freshness.isBehind('pay_1')).toBe(false);
  });
});
