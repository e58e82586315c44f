/** What every event store promises of an append (shared/event-store/port.ts). */
import { describe, expect, test } from '@jest/globals';
import { RevisionConflict } from '../../shared/event-store/errors.ts';
import type { EventStore, Expected, NewEvent, Position } from '../../shared/event-store/port.ts';
import {
  authorized,
  captured,
  captureRequested,
  created,
  newEvent,
} from '../support/payment-events.ts';
import { at, batchOf, type EventStoreDriver, openForGroup, placed } from './opened.ts';

export const appendingCases = (driver: EventStoreDriver): void => {
  describe('appending', () => {
    let store: EventStore;
    let run: string;
    let start: Position | null;
    const { named } = openForGroup(driver, (opened) => {
      ({ store, start, run } = opened);
    });

    describe('L2: exact revisions', () => {
      test('appending at "no stream" to an existing stream fails and writes nothing', async () => {
        const stored = await store.append(named(1), 'none', batchOf(1));
        await expect(store.append(named(1), 'none', batchOf(2))).rejects.toThrow(RevisionConflict);
        expect(await store.readStream(named(1))).toEqual(stored);
        expect(await store.readAll(start, 10)).toEqual(stored);
      });

      test('a stale revision, one ahead of the stream and another hash fail and write nothing', async () => {
        const [first, second] = await store.append(named(1), 'none', batchOf(2));
        const wrong: Expected[] = [
          at(first),
          { revision: 2, hash: second?.hash ?? '' },
          { revision: 1, hash: first?.hash ?? '' },
        ];
        for (const expected of wrong) {
          const append = store.append(named(1), expected, [newEvent(captureRequested())]);
          await expect(append).rejects.toThrow(RevisionConflict);
        }
        expect(await store.readStream(named(1))).toHaveLength(2);
      });

      test('gaps §9: lastRevision gives the last revision of a stream, null where there is none', async () => {
        expect(await store.lastRevision(named(1))).toBeNull();
        await store.append(named(1), 'none', batchOf(3));
        expect(await store.lastRevision(named(1))).toBe(2);
        expect(await store.lastRevision(named(2))).toBeNull();
      });

      test('gaps §8: of several values claimed under a key the first one is kept', async () => {
        const claims = ['one', 'two', 'three'].map((value) =>
          store.claimMeta(`check-${run}`, value),
        );
        const [stands] = await Promise.all(claims);
        expect(new Set(await Promise.all(claims)).size).toBe(1);
        expect(await store.claimMeta(`check-${run}`, 'four')).toBe(stands);
        expect(await store.claimMeta(`other-${run}`, 'four')).toBe('four');
      });

      test('a revision expected of an unknown stream fails and makes no stream', async () => {
        const expected = { revision: 0, hash: 'a'.repeat(64) };
        await expect(store.append(named(1), expected, batchOf(1))).rejects.toThrow(
          RevisionConflict,
        );
        expect(await store.append(named(1), 'none', batchOf(1))).toHaveLength(1);
      });

      test.each(['none', 'a revision'])(
        'of 20 concurrent appends at %s exactly one wins',
        async (where) => {
          const [first] = where === 'none' ? [] : await store.append(named(1), 'none', batchOf(1));
          const expected = first === undefined ? 'none' : at(first);
          const appends = Array.from({ length: 20 }, () =>
            store.append(named(1), expected, [newEvent(created())]),
          );
          const results = await Promise.allSettled(appends);
          const lost = results.filter((result) => result.status === 'rejected');
          expect(lost).toHaveLength(19);
          for (const { reason } of lost) expect(reason).toBeInstanceOf(RevisionConflict);
          expect(await store.readStream(named(1))).toHaveLength(first === undefined ? 1 : 2);
        },
      );

      test('there is no "any" revision', async () => {
        await store.append(named(1), 'none', batchOf(1));
        for (const any of ['any', undefined, {}, { revision: 0 }, { revision: -1, hash: '' }]) {
          const append = store.append(named(1), any as never, batchOf(1));
          await expect(append).rejects.toThrow(TypeError);
        }
        expect(await store.readStream(named(1))).toHaveLength(1);
        expect(await store.append(named(2), 'none', batchOf(1))).toHaveLength(1);
      });
    });

    describe('batches', () => {
      test('a batch is stored whole: no reader ever sees a part of one', async () => {
        const appends = Array.from({ length: 40 }, (_, n) =>
          store.append(named(n), 'none', batchOf(3)),
        );
        const reads = Array.from({ length: 40 }, (_, n) => store.readStream(named(n)));
        for (const events of await Promise.all(reads)) expect([0, 3]).toContain(events.length);
        const all = (await Promise.all(appends.map((append) => placed(store, append)))).flat();
        expect(new Set(all.map(({ position }) => position)).size).toBe(120);
      });

      test('an append of no event, of one that breaks its schema or under a malformed name stores nothing', async () => {
        const odd = newEvent({ ...authorized(), data: { amount: -1 } } as never);
        const cases: [string, NewEvent[]][] = [
          [named(1), []],
          [named(1), [newEvent(created()), odd]],
          [named(1), [newEvent({ type: 'PaymentForgotten', data: {} } as never)]],
          [named(1), [{ ...newEvent(created()), id: 'not a uuid' }]],
          [named(1), [{ ...newEvent(created()), time: 'yesterday' }]],
          ['', batchOf(1)],
          ['$all', batchOf(1)],
          [`p${'x'.repeat(200)}`, batchOf(1)],
        ];
        for (const [stream, events] of cases) {
          await expect(store.append(stream, 'none', events)).rejects.toThrow(TypeError);
        }
        expect(await store.readAll(start, 10)).toEqual([]);
      });
    });

    describe('L4: the same event ids again', () => {
      test('at the same expected revision succeed with what is stored, and store nothing twice', async () => {
        const batch = batchOf(2);
        const append = (...[expected, events]: [Expected, NewEvent[]]) =>
          placed(store, store.append(named(1), expected, events));
        const stored = await append('none', batch);
        expect(await append('none', batch)).toEqual(stored);
        const next = [newEvent(captureRequested()), newEvent(captured())];
        const later = await append(at(stored[1]), next);
        expect(await append(at(stored[1]), next)).toEqual(later);
        expect(await append('none', batch)).toEqual(stored);
        expect(await store.readAll(start, 10)).toEqual([...stored, ...later]);
      });

      test('sent twice at once are stored once', async () => {
        const batch = batchOf(2);
        const [one, other] = await Promise.all([
          store.append(named(1), 'none', batch),
          store.append(named(1), 'none', batch),
        ]);
        expect(other).toEqual(one);
        expect(await store.readAll(start, 10)).toHaveLength(2);
      });

      test('with a new one beside them, or at another revision, conflict', async () => {
        const batch = batchOf(1);
        const [first] = await store.append(named(1), 'none', batch);
        const more = [...batch, newEvent(authorized())];
        await expect(store.append(named(1), 'none', more)).rejects.toThrow(RevisionConflict);
        const [second] = await store.append(named(1), at(first), [newEvent(authorized())]);
        await expect(store.append(named(1), at(first), batch)).rejects.toThrow(RevisionConflict);
        expect(await store.readStream(named(1))).toEqual([first, second]);
      });
    });
  });
};
