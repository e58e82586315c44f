/** Several projectors on one set of read models: one follows the log, the others stand by. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type Projector, type ProjectorOptions, startProjector } from '../../projector/compose.ts';
import { keptBodyOf } from '../../shared/payment/response.ts';
import { ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { keepLease } from '../../shared/subscription/lease.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { appendLife, readModelOf } from '../support/many-payments.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { type ReadModelStore, readModelDrivers } from '../support/read-model-drivers.ts';
import { silent } from '../support/silent-log.ts';
import { HANGS_MS } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const LEASE_MS = 1_000;
/** For a first one that stays: a busy machine must not be late for its lease. */
const LONG_LEASE_MS = 600_000;

/**
 * Read models of a process that can be stopped dead: from then on nothing it asks comes to an end,
 * until `bury` lets all of it fail.
 */
const mortal = (own: ReadModels) => {
  let dead = false;
  const buried = Promise.withResolvers<never>();
  buried.promise.catch(() => undefined);
  const readModels = Object.fromEntries(
    Object.entries(own).map(([name, ask]) => [
      name,
      (...args: unknown[]) =>
        dead && name !== 'close'
          ? buried.promise
          : (ask as (...args: unknown[]) => unknown)(...args),
    ]),
  ) as ReadModels;
  const die = (yes: boolean): void => {
    dead = yes;
  };
  const bury = (): void => buried.reject(new ReadModelsUnavailable('the process is dead'));
  return { readModels, die, bury };
};

test.each([
  ['hands it over at its stop', 'free', 1],
  ['of a lost holder lets it run out: requests of that one may be under way', 'held', 0],
] as const)('a projector that has just taken the lease %s', async (_what, taken, releases) => {
  const released: string[] = [];
  const readModels = {
    lease: async () => taken,
    release: async (holder: string) => void released.push(holder),
  };
  const lease = keepLease(readModels, silent);
  await lease.take();
  expect(lease.handedOver()).toBe(taken === 'free');
  await lease.stop();
  expect(released).toHaveLength(releases);
});

for (const driver of readModelDrivers) {
  const why = driver.skip ?? driver.alone;
  describeUnless(why, `two projectors on ${driver.name}`, () => {
    let readModelStore: ReadModelStore;
    let readModels: ReadModels;
    let store: MemoryEventStore;
    let opened: ReadModels[];
    let started: Projector[];
    let burials: (() => void)[];

    const begin = async (own: ReadModels, more: Partial<ProjectorOptions> = {}) => {
      const backOff = { minMs: 1, maxMs: 20 };
      const times = { leaseMs: LEASE_MS, watchMs: 20, backOff };
      const options = { store, readModels: own, logger: silent, ...times, ...more };
      const projector = await startProjector(options);
      started.push(projector);
      return projector;
    };
    const open = async (): Promise<ReadModels> => {
      const own = await readModelStore.open();
      opened.push(own);
      return own;
    };
    const given = (paymentId: string): Promise<void> => appendLife(store, paymentId);
    const expectWhole = async (paymentId: string): Promise<void> => {
      const readModel = await readModelOf(store, paymentId);
      expect(await readModels.waitForRevision(paymentId, readModel?.revision ?? 0, HANGS_MS)).toBe(
        true,
      );
      expect((await readModels.getAny(paymentId))?.body).toBe(readModel && keptBodyOf(readModel));
    };

    beforeEach(async () => {
      readModelStore = await driver.make();
      opened = [];
      started = [];
      burials = [];
      readModels = await open();
      store = memoryEventStore();
    });
    afterEach(async () => {
      for (const bury of burials) bury();
      await Promise.all(started.map((projector) => projector.stop()));
      await Promise.all(opened.map((own) => own.close()));
      await readModelStore.remove();
    });

    test('the second stands by, sees how far the first is, and is well', async () => {
      await given('pay_1');
      const first = await begin(await open(), { leaseMs: LONG_LEASE_MS });
      await first.caughtUp;
      const second = await begin(await open(), { stillMsMax: 0 });
      await until('standing by', () => second.status().state === 'standing-by');
      await until('seen', () => second.status().checkpoint === first.status().checkpoint);
      expect(await second.lag()).toMatchObject({ events: 0, seconds: 0, stuck: false });
      expect(second.status()).toMatchObject({ stuck: false, counts: { events: 0, restarts: 0 } });
      await given('pay_2');
      await expectWhole('pay_2');
      expect(second.status().counts.events).toBe(0);
    });

    test('the first one killed: the second takes over, and the dead one awake writes nothing', async () => {
      const { readModels: own, die, bury } = mortal(await open());
      burials.push(bury);
      const first = await begin(own);
      await given('pay_1');
      await first.caughtUp;
      const second = await begin(await open());
      await until('standing by', () => second.status().state === 'standing-by');
      die(true);
      await given('pay_2');
      await expectWhole('pay_2');
      await until('taken over', () => second.status().state === 'running');
      die(false);
      await given('pay_3');
      await expectWhole('pay_3');
      expect(second.status().state).toBe('running');
    });

    test('the first one stopped: the second need not wait for the end of the lease', async () => {
      const first = await begin(await open(), { leaseMs: LONG_LEASE_MS });
      await first.caughtUp;
      const second = await begin(await open());
      await until('standing by', () => second.status().state === 'standing-by');
      await first.stop();
      await given('pay_1');
      await expectWhole('pay_1');
    });

    test('the lease lost to another: it stops following, and comes back when it is free', async () => {
      const own = await open();
      let robbed = false;
      const lease: ReadModels['lease'] = async (holder, ttlMs) =>
        !robbed && own.lease(holder, ttlMs);
      const first = await begin({ ...own, lease });
      await first.caughtUp;
      robbed = true;
      await until('standing by', () => first.status().state === 'standing-by');
      expect(first.status().caughtUp).toBe(false);
      await given('pay_1');
      robbed = false;
      await expectWhole('pay_1');
      await until('back', () => first.status().caughtUp);
    });

    test('the checkpoint moved by another: its batch is dropped, it goes on from what is stored', async () => {
      const first = await begin(await open());
      await given('pay_1');
      await first.caughtUp;
      store.hold(true);
      await given('pay_2');
      const { position } = await store.head(null);
      const at = await readModels.checkpoint();
      const readModel = await readModelOf(store, 'pay_2');
      if (readModel === undefined) throw new Error('no read model');
      await readModels.apply([{ kind: 'readModel', readModel }], at, position);
      store.hold(false);
      await until('restarted', () => first.status().counts.restarts > 0);
      await given('pay_3');
      await expectWhole('pay_2');
      await expectWhole('pay_3');
    });
  });
}
