/** The log hash that a projector carries: what it may seal, and when. */
import { createPrivateKey } from 'node:crypto';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { newSealingKey } from '../../audit/seals/key.ts';
import { carryHash, type RunningHash } from '../../audit/seals/running-hash.ts';
import { makeSeal, publicKeyOf } from '../../audit/seals/seals.ts';
import { appendSeal, type RecordedSeal, sealsOf } from '../../audit/seals/stored-seals.ts';
import { GENESIS_HASH, linkLog } from '../../shared/event-store/chain.ts';
import type { LogEvent } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { appendLife } from '../support/many-payments.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';

const LOG = crypto.randomUUID();
const privateKey = createPrivateKey(newSealingKey());

describe('a running log hash', () => {
  let store: MemoryEventStore;
  let running: RunningHash;
  beforeEach(() => {
    store = memoryEventStore();
    running = carryHash({
      store,
      publicKey: publicKeyOf(privateKey),
      logId: async () => LOG,
      seals: () => sealsOf(store),
    });
  });
  const fill = async (from: number, count: number): Promise<void> => {
    for (let n = from; n < from + count; n += 1) await appendLife(store, `pay_${n}`);
  };
  const all = () => store.readAll(null, Number.MAX_SAFE_INTEGER);
  const take = (events: LogEvent[]): LogEvent[] => {
    const next = running.next(events);
    next.taken();
    return next.events;
  };
  const seal = async (key = privateKey): Promise<RecordedSeal> => {
    const found = await running.head();
    if (found === undefined) throw new Error('nothing to seal');
    const data = makeSeal(key, { ...found.head, eventsMax: undefined });
    const stored = await appendSeal(store, running.last(), { type: 'LogSealed', data }, 'sealer');
    running.sealed(stored, found.unsealed);
    return stored;
  };

  test('is that of the chain over all events, one that cannot be read included', async () => {
    await fill(0, 2);
    store.damage(streamOf('pay_0'), 1, 'damaged');
    await running.follow(null);
    const stored = await store.stored.readAll(null, 100);
    let logHash = GENESIS_HASH;
    const hashes = stored.map(({ hash }) => {
      logHash = linkLog(logHash, hash);
      return logHash;
    });
    expect(take(await all()).map((event) => event.logHash)).toEqual(hashes);
  });

  test('is not sealed far from the end of the log, where no verification looks for the place', async () => {
    await fill(0, 180);
    await running.follow(null);
    const events = await all();
    take(events.slice(0, 12));
    expect(await running.unsealed()).toBe(12);
    expect(await running.head()).toBeUndefined();
    take(events.slice(12));
    expect(await running.head()).toMatchObject({ unsealed: 1080 });
  });

  test('is not sealed again before its own last seal has come by, which would be a copy', async () => {
    await fill(0, 1);
    await running.follow(null);
    take(await all());
    await fill(1, 1);
    const sealed = await seal();
    const after = await store.readAll(sealed.event.data.position, 100);
    take(after.slice(0, 6));
    expect([await running.unsealed(), await running.head()]).toEqual([0, undefined]);
    take(after.slice(6));
    expect(await running.unsealed()).toBe(6);
    await seal();
  });

  test('is not sealed where another key has sealed, and not after the lease was lost', async () => {
    await fill(0, 1);
    await running.follow(null);
    take(await all());
    running.leave();
    expect(await running.head()).toBeUndefined();
    await running.follow((await store.end()) ?? null);
    await seal(createPrivateKey(newSealingKey()));
    await running.follow((await store.end()) ?? null);
    await fill(1, 1);
    take((await all()).slice(-6));
    expect([await running.unsealed(), await running.head()]).toEqual([0, undefined]);
  });

  test('is found again from the newest seal before the place, be it behind later seals', async () => {
    await running.follow(null);
    for (let n = 0; n < 3; n += 1) {
      await fill(n, 1);
      const from = (await all()).findIndex(({ stream }) => stream === streamOf(`pay_${n}`));
      take((await all()).slice(from));
      take([await seal()]);
    }
    let logHash = GENESIS_HASH;
    for (const { position, hash } of await all()) {
      logHash = linkLog(logHash, hash ?? '');
      expect(await running.logHashAt(position)).toBe(logHash);
    }
    expect(await running.logHashAt('000000009999')).toBeUndefined();
  });
});
