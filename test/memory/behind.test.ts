/**
 * gaps §9: a GET of a process that is not the only one to append knows whether its document is behind.
 * Many GETs at a time share one look at the end of the log, and are told no less than one by itself.
 */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { behindTheLog } from '../../query-api/behind.ts';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { Position } from '../../shared/event-store/port.ts';
import { paymentOf, streamOf } from '../../shared/payment/payment-events.ts';
import { ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { captured, created, newEvent } from '../support/payment-events.ts';
import { randomOf } from '../support/random.ts';

const MANY = 64;
/** So many GETs among few ask by themselves; the others of a burst share. */
const ALONE = 4;
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A log, and documents of which only the revisions matter, filled up to a checkpoint by hand. */
const setting = () => {
  const log = memoryEventStore();
  const calls = { lastRevision: 0, readAll: 0, hashAt: 0 };
  const documents = new Map<string, number>();
  let checkpoint: Position | null = null;
  let readModelsDown = false;
  let gate: Promise<void> | undefined;
  // It stands: what is shared stays so, and a pause does not end.
  let clockMs = 1;
  const counted = <A extends unknown[], R>(name: keyof typeof calls, call: (...a: A) => R) => {
    return (...a: A): R => {
      calls[name] += 1;
      return call(...a);
    };
  };
  const behind = behindTheLog(
    {
      store: {
        lastRevision: counted('lastRevision', async (stream: string) => {
          const last = await log.lastRevision(stream);
          await nextTurn();
          return last;
        }),
        hashAt: counted('hashAt', log.hashAt),
        readAll: counted('readAll', async (...range: Parameters<MemoryEventStore['readAll']>) => {
          const found = await log.readAll(...range);
          await (gate ?? nextTurn());
          return found;
        }),
      },
      readModels: {
        checkpoint: async () => {
          if (readModelsDown) throw new ReadModelsUnavailable('down');
          return checkpoint;
        },
      },
    },
    () => clockMs,
  );
  const append = async (paymentId: string): Promise<Position> => {
    const events = await log.readStream(streamOf(paymentId));
    const last = events.at(-1);
    const expected = last === undefined ? 'none' : { revision: last.revision, hash: last.hash };
    const event = newEvent(last === undefined ? created({ paymentId }) : captured());
    const [stored] = await log.append(streamOf(paymentId), expected, [event]);
    return stored?.position ?? '';
  };
  return {
    log,
    calls,
    append,
    documents,
    /** Fills the documents up to the end of the log, or up to a place. */
    apply: async (upTo?: Position): Promise<void> => {
      for (const { stream, revision } of await log.readAll(checkpoint, 100_000, upTo))
        documents.set(paymentOf(stream) ?? '', revision);
      checkpoint = upTo ?? (await log.end());
    },
    filledTo: (position: Position | null): void => {
      checkpoint = position;
    },
    failReadModels: (down: boolean): void => {
      readModelsDown = down;
    },
    /** Reads of the log that have begun have no end before the release. */
    hold: (): (() => void) => {
      const opened = Promise.withResolvers<void>();
      gate = opened.promise;
      return () => {
        gate = undefined;
        opened.resolve();
      };
    },
    later: (ms: number): void => {
      clockMs += ms;
    },
    checkOf: async (paymentId: string) => behind(paymentId),
    /** As GET does it: true where the document is not served. */
    isBehind: async (paymentId: string): Promise<boolean> => {
      const check = await behind(paymentId);
      const revision = documents.get(paymentId) ?? -1;
      await nextTurn();
      return check(revision);
    },
  };
};

const ID = (n: number): string => `pay_${n}`;
const many = <T>(ask: (n: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: MANY }, (_, n) => ask(n)));

describe('of many GETs at a time', () => {
  let at: ReturnType<typeof setting>;
  beforeEach(async () => {
    at = setting();
    for (let n = 0; n < MANY; n += 1) await at.append(ID(n));
    await at.apply();
  });
  const isBehind = () => many((n) => at.isBehind(ID(n)));
  const none = Array.from({ length: MANY }, () => false);

  test('some ask for their streams, all others share a look at the end of the log', async () => {
    expect(await isBehind()).toEqual(none);
    expect(at.calls).toEqual({ lastRevision: ALONE, readAll: 1, hashAt: 1 });
    expect(await isBehind()).toEqual(none);
    expect(at.calls).toEqual({ lastRevision: ALONE, readAll: 2, hashAt: 1 });
  });

  test('one that comes while a look is under way waits for the next one', async () => {
    await isBehind();
    const release = at.hold();
    const early = isBehind();
    await nextTurn();
    await at.append(ID(40));
    const late = at.isBehind(ID(40));
    release();
    await early;
    expect(await late).toBe(true);
    expect(at.calls.lastRevision).toBe(ALONE);
  });

  test('one that reads its document a second after the look asks for its own stream: the read models may have been put back', async () => {
    await at.append(ID(40));
    await at.apply();
    const checks = await many((n) => at.checkOf(ID(n)));
    at.documents.set(ID(40), 0);
    at.later(1000);
    const isBehind = checks.map((check, n) => check(at.documents.get(ID(n)) ?? -1));
    expect(await Promise.all(isBehind)).toEqual(none.with(40, true));
    expect(at.calls.lastRevision).toBe(MANY);
  });

  test.each<[string, () => Promise<unknown> | unknown]>([
    [
      'more events are to be applied than a look reads',
      async () => {
        for (let n = 0; n < MANY; n += 1) for (const _ of [1, 2]) await at.append(ID(n + 100));
      },
    ],
    ['nothing was applied ever', () => at.filledTo(null)],
    ['the read models cannot be reached', () => at.failReadModels(true)],
    ['the checkpoint is no place of this log', () => at.filledTo('000000009999')],
    ['a read of the log does not end', () => at.hold()],
  ])('each asks for its own stream where %s', async (_, happens) => {
    await happens();
    await at.append(ID(40));
    expect(await isBehind()).toEqual(none.with(40, true));
    expect(at.calls.lastRevision).toBe(MANY);
    // And the next ones do not try it again at once.
    const { readAll } = at.calls;
    expect(await isBehind()).toEqual(none.with(40, true));
    expect(at.calls).toMatchObject({ lastRevision: 2 * MANY, readAll });
  });

  test('with the event store out of reach, documents are served as they are', async () => {
    await at.append(ID(40));
    at.log.failWith(new StoreUnavailable('down'));
    expect(await isBehind()).toEqual(none);
  });
});

test('P4: among appends and a projector at random, no GET takes an older document for the newest', async () => {
  const { between, chance } = randomOf();
  const at = setting();
  const committed = new Map<string, number>();
  let isOver = false;
  for (let n = 0; n < 40; n += 1) await at.append(ID(n));
  await at.apply();
  const turns = async (): Promise<void> => {
    for (let n = between(0, 4); n > 0; n -= 1) await nextTurn();
  };
  const writer = async (own: number): Promise<void> => {
    for (let round = 0; round < 250; round += 1) {
      const paymentId = ID(own * 10 + between(0, 9));
      await at.append(paymentId);
      committed.set(paymentId, (committed.get(paymentId) ?? 0) + 1);
      await turns();
      await turns();
    }
  };
  const projector = async (): Promise<void> => {
    let checkpoint = await at.log.end();
    while (!isOver) {
      // Documents first, one after another, and the checkpoint after them.
      for (const { stream, revision, position } of await at.log.readAll(
        checkpoint,
        between(1, 9),
      )) {
        if (chance(0.2)) await nextTurn();
        at.documents.set(paymentOf(stream) ?? '', revision);
        checkpoint = position;
      }
      await turns();
      at.filledTo(checkpoint);
      await nextTurn();
    }
  };
  const wrong: string[] = [];
  let served = 0;
  const reader = async (): Promise<void> => {
    while (!isOver) {
      const paymentId = ID(between(0, 39));
      const known = committed.get(paymentId) ?? 0;
      const check = await at.checkOf(paymentId);
      if (chance(0.5)) await turns();
      const revision = at.documents.get(paymentId) ?? -1;
      await turns();
      if (await check(revision)) continue;
      served += 1;
      if (revision < known) wrong.push(`${paymentId}: ${revision} of ${known}`);
    }
  };
  const others = [projector(), ...Array.from({ length: 24 }, reader)];
  await Promise.all([0, 1, 2, 3].map(writer));
  isOver = true;
  await Promise.all(others);
  expect(wrong).toEqual([]);
  expect(served).toBeGreaterThan(100);
  expect(at.calls.readAll).toBeGreaterThan(20);
  expect(at.calls.lastRevision).toBeLessThan(served);
});
