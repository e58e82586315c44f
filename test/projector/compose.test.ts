/** The projector as a whole: start, restart, rebuild, faults of either engine, lag, refusal. */
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Projector, type ProjectorOptions, startProjector } from '../../projector/compose.ts';
import { trackFreshness } from '../../projector/freshness.ts';
import { isReadable } from '../../shared/event-store/codec.ts';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import { searchedOnceFilled } from '../../shared/read-models/filled.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { LogMisfit } from '../../shared/subscription/errors.ts';
import { createLag } from '../../shared/subscription/lag.ts';
import { misfitOf } from '../../shared/subscription/subscription.ts';
import { appendLife, foldOf } from '../support/many-payments.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { timeOf, wholeLife } from '../support/payment-events.ts';
import { readModelsAt, readModelsIn } from '../support/read-models-here.ts';
import { silent } from '../support/silent-log.ts';
import { folderOfEachTest } from '../support/temporary-folder.ts';
import { HANGS_MS } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const LIFE = wholeLife('pay_1').length;

describe('the projector', () => {
  const folder = folderOfEachTest();
  let file: string;
  let store: MemoryEventStore;
  let readModels: ReadModels;
  let projector: Projector | undefined;

  beforeEach(() => {
    file = join(folder.path, 'read models.db');
    store = memoryEventStore({ batchMax: 10 });
    readModels = readModelsAt(file);
  });
  afterEach(async () => {
    await projector?.stop();
    projector = undefined;
    await readModels.close();
  });

  const start = async (more: Partial<ProjectorOptions> = {}): Promise<Projector> => {
    const backOff = { minMs: 1, maxMs: 8 };
    projector = await startProjector({ store, readModels, logger: silent, backOff, ...more });
    return projector;
  };
  const given = async (count: number, into: Pick<MemoryEventStore, 'append'> = store) => {
    for (let n = 0; n < count; n += 1) await appendLife(into, `pay_${n}`);
  };
  const bodies = async (count: number) => {
    const documents = Array.from({ length: count }, (_, n) => readModels.getAny(`pay_${n}`));
    return (await Promise.all(documents)).map((document) => document?.body);
  };
  const folds = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, n) => foldOf(store, `pay_${n}`)));

  test('fills empty read models from the log, then follows it', async () => {
    await given(5);
    const started = await start();
    expect(started.isBehind('pay_0')).toBe(true);
    await started.caughtUp;
    expect(await bodies(5)).toEqual(await folds(5));
    expect(started.status()).toEqual({
      state: 'running',
      checkpoint: (await store.head(null)).position,
      caughtUp: true,
      stuck: false,
      parked: 0,
      differences: 0,
      counts: { events: 5 * LIFE, healed: 0, parkings: 0, restarts: 0 },
    });
    expect(await started.lag()).toMatchObject({ events: 0, seconds: 0, stuck: false });
  });

  test('P4: an append through the tracked store is behind until its document is there', async () => {
    const freshness = trackFreshness();
    const tracked = freshness.tracked(store);
    const started = await start({ store: tracked, freshness });
    await started.caughtUp;
    store.hold(true);
    await given(1, tracked);
    expect(started.isBehind('pay_0')).toBe(true);
    expect(await started.lag()).toMatchObject({ events: LIFE });
    store.hold(false);
    expect(await readModels.waitForRevision('pay_0', LIFE - 1, HANGS_MS)).toBe(true);
    await until('no longer behind', () => !started.isBehind('pay_0'));
    expect(freshness.size()).toBe(0);
  });

  test('one that led and stands by shows what is parked now, and not what it had parked itself', async () => {
    let isRobbed = false;
    const lease: ReadModels['lease'] = async (holder, ttlMs) =>
      !isRobbed && readModels.lease(holder, ttlMs);
    await given(1);
    store.damage(streamOf('pay_0'), 2, 'of a later version');
    const own = { ...readModels, lease };
    const started = await start({ readModels: own, leaseMs: 300, watchMs: 5 });
    await until('parked', () => started.status().parked === 1);
    isRobbed = true;
    await until('standing by', () => started.status().state === 'standing-by');
    const at = await readModels.checkpoint();
    const mended = { kind: 'unpark', paymentId: 'pay_0' } as const;
    await readModels.apply([mended], at, at);
    await until('seen', () => started.status().parked === 0);
  });

  test('goes on from the checkpoint at the next start, and applies nothing twice', async () => {
    await given(3);
    await (await start()).caughtUp;
    await projector?.stop();
    await readModels.close();
    readModels = readModelsAt(file);
    const again = await start();
    await again.caughtUp;
    expect(again.status().counts.events).toBe(0);
    expect(await bodies(3)).toEqual(await folds(3));
  });

  test('read models that went back while nothing happened are noticed, behind, and filled again', async () => {
    await given(3);
    const elsewhere = readModelsIn(folder.path, 'empty.db');
    const first = readModels;
    let current = first;
    const switched = Object.fromEntries(
      Object.keys(first).map((name) => [
        name,
        (...args: unknown[]) => Object(current)[name](...args),
      ]),
    ) as ReadModels;
    const started = await start({ readModels: switched, watchMs: 5 });
    await started.caughtUp;
    store.hold(true);
    current = elsewhere;
    await until('noticed', () => !started.status().caughtUp);
    expect(started.isBehind('pay_1')).toBe(true);
    store.hold(false);
    await until('filled again', () => started.status().caughtUp);
    expect(await elsewhere.getAny('pay_1')).toEqual(await first.getAny('pay_1'));
    expect(started.isBehind('pay_1')).toBe(false);
    await started.stop();
    await elsewhere.close();
  });

  test('V3: an event store out of reach at the start is waited for', async () => {
    await given(2);
    store.failWith(new StoreUnavailable('not yet'));
    const started = await start();
    await until('backing off', () => started.status().state === 'backing-off');
    expect(started.status()).toMatchObject({ caughtUp: false, error: 'not yet', parked: 0 });
    await expect(started.lag()).rejects.toThrow(StoreUnavailable);
    store.failWith(undefined);
    await started.caughtUp;
    expect(await bodies(2)).toEqual(await folds(2));
  });

  test('an apply whose answer was lost neither repeats nor leaves a payment behind', async () => {
    let losing = 1;
    const lossy: ReadModels = {
      ...readModels,
      apply: async (...args) => {
        await readModels.apply(...args);
        if (losing-- > 0) throw new ReadModelsUnavailable('the answer was lost');
      },
    };
    const freshness = trackFreshness();
    const tracked = freshness.tracked(store);
    await given(1, tracked);
    const started = await start({ store: tracked, freshness, readModels: lossy });
    await started.caughtUp;
    expect(started.status().counts.restarts).toBe(1);
    expect(await bodies(1)).toEqual(await folds(1));
    expect(started.isBehind('pay_0')).toBe(false);
    expect(freshness.size()).toBe(0);
  });

  test('a log that ends before the checkpoint is refused in one line', async () => {
    await given(2);
    await (await start()).caughtUp;
    await projector?.stop();
    store.cut(LIFE);
    await expect(start()).rejects.toThrow(LogMisfit);
    await expect(start()).rejects.toThrow(/^the event log ends before[^\n]+$/);
    store.cut(0);
    await expect(start()).rejects.toThrow(LogMisfit);
  });

  test('a projector that starts while another one moves the checkpoint is not refused', async () => {
    await given(1);
    const first = await start();
    await first.caughtUp;
    let moved = false;
    const moving: ReadModels = {
      ...readModels,
      checkpoint: async () => {
        const at = await readModels.checkpoint();
        if (!moved) {
          moved = true;
          await appendLife(store, 'pay_9');
          await until('the other has moved on', () => first.status().checkpoint !== at);
        }
        return at;
      },
    };
    const backOff = { minMs: 1, maxMs: 8 };
    const second = await startProjector({ store, readModels: moving, logger: silent, backOff });
    await second.stop();
    expect(moved).toBe(true);
  });

  test('a log that is cut while the store is out of reach is never followed', async () => {
    await given(2);
    const started = await start();
    await started.caughtUp;
    const before = started.status().checkpoint;
    store.cut(LIFE);
    store.drop();
    await until('refused', () => /ends before/.test(started.status().error ?? ''));
    expect(await readModels.checkpoint()).toBe(before);
  });

  test('the checkpoint fits the log from its start to its last event', async () => {
    expect(await misfitOf(store, null, null)).toBeUndefined();
    await given(1);
    const events = (await store.readAll(null, 10)).filter(isReadable);
    expect(events).toHaveLength(LIFE);
    for (const { position, hash } of events) {
      expect(await misfitOf(store, position, hash)).toBeUndefined();
      expect(await misfitOf(store, position, null)).toBeUndefined();
      const other = events.find((event) => event.position !== position)?.hash ?? '';
      expect(await misfitOf(store, position, other)).toBe('has other events up to');
    }
    expect(await misfitOf(store, '000000000099', null)).toBe('ends before');
  });

  test('lag: standing still is known by the head of the store, moving is never stuck', async () => {
    let now = Date.parse(timeOf(100));
    let checkpoint: string | null = null;
    const lag = createLag(store, () => checkpoint, { now: () => now, stillMsMax: 60_000 });
    expect(await lag()).toMatchObject({ events: 0, seconds: 0, stuck: false });
    now += 3_600_000;
    expect(await lag()).toMatchObject({ events: 0, seconds: 0, stuck: false });
    await given(1);
    expect(await lag()).toMatchObject({ events: LIFE, seconds: 3700, stuck: false });
    now += 60_001;
    expect(await lag()).toMatchObject({ stuck: true });
    checkpoint = (await store.readAll(null, 1))[0]?.position ?? null;
    expect(await lag()).toMatchObject({ events: LIFE - 1, stuck: false });
    now += 60_001;
    expect(await lag()).toMatchObject({ stuck: true });
    checkpoint = (await store.head(null)).position;
    expect(await lag()).toMatchObject({ events: 0, seconds: 0, stuck: false });
  });

  test('lag: falling behind is less applied in a minute than the log got in one, and filling is not', async () => {
    await given(1);
    const positions = (await store.readAll(null, LIFE)).map(({ position }) => position);
    let now = Date.parse(timeOf(0)) + 86_400_000;
    let at = -1;
    const lag = createLag(store, () => positions[at] ?? null, { now: () => now });
    const isBehind = async (): Promise<boolean> => (await lag()).fallingBehind;
    /** The events are a second apart; the next one is applied after so many seconds. */
    const apply = (seconds: number): Promise<boolean> => {
      at += 1;
      now += seconds * 1000;
      return isBehind();
    };
    expect([await isBehind(), await apply(0.5), await apply(0.5)]).toEqual([false, false, false]);
    expect([await apply(31), await apply(31), await apply(31)]).toEqual([false, true, true]);
    at = LIFE - 1;
    expect(await isBehind()).toBe(false);
    // The read models were lost, and are filled again from the first event on.
    at = -1;
    now += 61_000;
    expect([await isBehind(), await apply(0.5), await apply(0.5)]).toEqual([false, false, false]);
  });

  test('a projection that falls behind says so until it gets on', async () => {
    let isHeld = true;
    const apply: ReadModels['apply'] = async (...batch) => {
      if (isHeld) throw new ReadModelsUnavailable('they take nothing');
      return readModels.apply(...batch);
    };
    await given(1);
    const held = { ...readModels, apply };
    const started = await start({ readModels: held, watchMs: 5, stillMsMax: 20 });
    await until('it says so', () => started.status().state === 'falling-behind');
    isHeld = false;
    await until('it gets on', () => started.status().state === 'running');
  });

  test('a projection that makes no progress while the head moves is reported as stuck', async () => {
    const started = await start({ watchMs: 5, stillMsMax: 20 });
    await started.caughtUp;
    store.hold(true);
    await given(1);
    await until('stuck', () => started.status().stuck);
    store.hold(false);
    await until('moving again', () => !started.status().stuck);
    expect(await bodies(1)).toEqual(await folds(1));
  });
});

test('gaps §28: read models are searched once they reach the end of the log, and not after they went back', async () => {
  const store = memoryEventStore();
  store.failWith(new StoreUnavailable('not yet'));
  await appendLife(store, 'pay_0');
  let checkpoint: string | null = null;
  const search = async () => ({ documents: [] });
  const own = { filledTo: async () => checkpoint, search } as unknown as ReadModels;
  const readModels = searchedOnceFilled(own, store);
  const isServed = (at: number): Promise<boolean> => {
    checkpoint = at === 0 ? null : store.positionOf(String(at));
    return readModels.search({}, 1).then(
      () => true,
      (error) => !(error instanceof ReadModelsUnavailable),
    );
  };
  // Without the event store, a checkpoint is all there is to go by.
  expect([await isServed(0), await isServed(1)]).toEqual([false, true]);
  store.failWith(undefined);
  expect([await isServed(LIFE - 1), await isServed(LIFE)]).toEqual([false, true]);
  await appendLife(store, 'pay_1');
  expect([await isServed(LIFE), await isServed(LIFE + 2)]).toEqual([true, true]);
  expect([await isServed(0), await isServed(LIFE + 1)]).toEqual([false, false]);
  expect([await isServed(LIFE + 2), await readModels.isFilled?.()]).toEqual([true, true]);
});
