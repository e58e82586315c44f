/** The promises of webhooks/store/port.ts, asked of one driver. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Attempt } from '../../webhooks/delivery/delivery-row.ts';
import { ATTEMPTS_MAX, type DeliveryStore } from '../../webhooks/store/port.ts';
import { type Driver, describeDriver } from '../support/describe-driver.ts';

/** `open` opens the same store each time, as the next start of the service would. */
type DeliveryStoreDriver = Driver & { open(): DeliveryStore };

export const attempt = (n: number, eventId = `evt_${n}`): Attempt => ({
  eventId,
  type: 'payment.captured',
  paymentId: 'pay_1',
  revision: n,
  attempt: 1,
  at: '2026-11-22T12:00:00.000Z',
  status: 200,
  error: null,
  latencyMs: 3,
  nextAt: null,
  outcome: 'ACCEPTED',
});
const revisions = (found: Awaited<ReturnType<DeliveryStore['attempts']>>) =>
  found.map(({ attempt }) => attempt.revision);

export const describeDeliveryStore = (driver: DeliveryStoreDriver): void =>
  describeDriver('delivery store', driver, () => {
    let endpoint: string;
    let store: DeliveryStore;
    beforeEach(() => {
      endpoint = `we_${crypto.randomUUID()}`;
      store = driver.open();
    });
    afterEach(() => store.close());

    test('a row is not there at first, and is then what was saved last', async () => {
      expect(await store.load(endpoint)).toBeUndefined();
      expect(await store.save(endpoint, 'é "1"', 0, [])).toBe(true);
      expect(await store.save(endpoint, '2', 1, [])).toBe(true);
      const other = driver.open();
      expect(await other.load(endpoint)).toEqual({ version: 2, text: '2' });
      await other.close();
    });

    test('who did not see the last change changes nothing, and leaves no attempt', async () => {
      expect(await store.save(endpoint, 'early', 1, [attempt(1)])).toBe(false);
      await store.save(endpoint, '1', 0, []);
      await store.save(endpoint, '2', 1, []);
      for (const version of [0, 1, 3])
        expect(await store.save(endpoint, 'x', version, [attempt(2)])).toBe(false);
      expect(await store.load(endpoint)).toEqual({ version: 2, text: '2' });
      expect(await store.attempts(endpoint, { limit: 10 })).toEqual([]);
    });

    test('the last attempts are kept, the latest first; those of one event are found', async () => {
      const first = Array.from({ length: 600 }, (_one, n) => attempt(n));
      const second = Array.from({ length: 600 }, (_one, n) => attempt(600 + n));
      await store.save(endpoint, '1', 0, first);
      await store.save(endpoint, '2', 1, [...second, attempt(5, 'evt_700')]);
      expect(revisions(await store.attempts(endpoint, { limit: 3 }))).toEqual([5, 1199, 1198]);
      expect((await store.attempts(endpoint, { limit: ATTEMPTS_MAX })).length).toBe(ATTEMPTS_MAX);
      expect(revisions(await store.attempts(endpoint, { limit: 9, eventId: 'evt_700' }))).toEqual([
        5, 700,
      ]);
      expect(await store.attempts(`${endpoint}0`, { limit: 9 })).toEqual([]);
    });

    test('those before a number go on where a page ended, over saves too', async () => {
      await store.save(endpoint, '1', 0, [attempt(1), attempt(2), attempt(3)]);
      await store.save(endpoint, '2', 1, [attempt(4)]);
      const first = await store.attempts(endpoint, { limit: 2 });
      await store.save(endpoint, '3', 2, [attempt(5)]);
      const before = first.at(-1)?.number;
      expect(revisions(first)).toEqual([4, 3]);
      expect(revisions(await store.attempts(endpoint, { limit: 9, before }))).toEqual([2, 1]);
      const ofOne = { limit: 9, before, eventId: 'evt_1' };
      expect(revisions(await store.attempts(endpoint, ofOne))).toEqual([1]);
    });

    test('a removed endpoint leaves nothing, and the others stay', async () => {
      await store.save(endpoint, '1', 0, [attempt(1)]);
      await store.save(`${endpoint}x`, '1', 0, [attempt(2)]);
      await store.remove(endpoint);
      expect(await store.load(endpoint)).toBeUndefined();
      expect(await store.attempts(endpoint, { limit: 9 })).toEqual([]);
      expect(revisions(await store.attempts(`${endpoint}x`, { limit: 9 }))).toEqual([2]);
    });
  });
