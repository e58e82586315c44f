/** New payments are held for their second event, and nothing is lost or shown older by it. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type Freshness, trackFreshness } from '../../projector/freshness.ts';
import { createProjection, type Projection } from '../../projector/projection.ts';
import { foldStream } from '../../shared/event-store/fold-stream.ts';
import type { Position } from '../../shared/event-store/port.ts';
import { type PaymentEvent, streamOf } from '../../shared/payment/payment-events.ts';
import { bodyOf, foldReadModel } from '../../shared/payment/response.ts';
import { ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import {
  anyPayment,
  interleaved,
  interleavedIds,
  newEvent,
  timeOf,
  wholeLife,
} from '../support/payment-events.ts';
import { propertyRuns } from '../support/property-runs.ts';
import { type ReadModelStore, readModelDrivers } from '../support/read-model-drivers.ts';
import { silent } from '../support/silent-log.ts';
import { until } from '../support/until.ts';

const NEVER_MS = 3_600_000;
const SOON_MS = 5;

for (const driver of readModelDrivers) {
  const suite = driver.skip === undefined ? describe : describe.skip;
  suite(`new payments in ${driver.name}${driver.skip ? ` (skipped: ${driver.skip})` : ''}`, () => {
    let readModelStore: ReadModelStore;
    let readModels: ReadModels;
    let store: MemoryEventStore;
    let freshness: Freshness;
    let projection: Projection;
    let failures: number;
    /** Each document that was written, in order. */
    let written: [string, number][];
    /** The next write fails, as a file out of reach does. */
    let failsNext: boolean;
    /** Up to where events were delivered: the loop reads on from there, not from the checkpoint. */
    let delivered: Position | null;

    const begin = async (ms: number): Promise<void> => {
      projection?.stop();
      projection = createProjection({
        store,
        freshness,
        logger: silent,
        held: {
          ms,
          onFailed: () => {
            failures += 1;
          },
        },
        readModels: {
          ...readModels,
          apply: async (changes, ...rest) => {
            if (failsNext) {
              failsNext = false;
              throw new ReadModelsUnavailable('out of reach');
            }
            for (const change of changes)
              if (change.kind === 'readModel')
                written.push([change.readModel.response.paymentId, change.readModel.revision]);
            return readModels.apply(changes, ...rest);
          },
        },
      });
      delivered = await projection.start();
    };
    const deliver = async (limit = 1000): Promise<void> => {
      for (;;) {
        const events = await store.readAll(delivered, limit);
        if (events.length === 0) break;
        await projection.events(events);
        delivered = events.at(-1)?.position ?? delivered;
      }
      freshness.caughtUp();
      projection.caughtUp();
    };
    const append = async (paymentId: string, events: PaymentEvent[], from = 0): Promise<void> => {
      const last = (await store.readStream(streamOf(paymentId))).at(-1);
      const expected = last === undefined ? 'none' : { revision: last.revision, hash: last.hash };
      const made = events.map((event, n) => newEvent(event, timeOf(from + n)));
      await freshness.store.append(streamOf(paymentId), expected, made);
    };
    const end = async (): Promise<Position | null> => (await store.head(null)).position;
    const expectWhole = async (paymentId: string): Promise<void> => {
      const readModel = foldStream(await store.readStream(streamOf(paymentId)), foldReadModel);
      const document = await readModels.getAny(paymentId);
      expect(document?.body).toBe(readModel && bodyOf(readModel));
      expect(document?.parked).toBe(false);
    };
    const [first, ...others] = wholeLife('pay_1');
    const givenHeld = async (): Promise<void> => {
      await append('pay_1', [first as PaymentEvent]);
      await deliver();
    };

    beforeEach(async () => {
      readModelStore = await driver.make();
      readModels = await readModelStore.open();
      store = memoryEventStore();
      freshness = trackFreshness(store);
      failures = 0;
      written = [];
      failsNext = false;
      await begin(NEVER_MS);
      await deliver();
    });
    afterEach(async () => {
      projection.stop();
      await readModels.close();
      await readModelStore.remove();
    });

    test('a new payment is written once, with its second event', async () => {
      await givenHeld();
      expect(written).toEqual([]);
      await append('pay_1', others.slice(0, 1), 1);
      await deliver();
      expect(written).toEqual([['pay_1', 1]]);
      await expectWhole('pay_1');
      expect(await readModels.checkpoint()).toBe(await end());
    });

    test('gaps §9: it is behind for as long as it is held', async () => {
      await givenHeld();
      expect(freshness.isBehind('pay_1')).toBe(true);
      await append('pay_1', others.slice(0, 1), 1);
      await deliver();
      expect(freshness.isBehind('pay_1')).toBe(false);
      expect(freshness.size()).toBe(0);
    });

    test('without a second event it is written after its time, and is no longer behind', async () => {
      await begin(SOON_MS);
      await deliver();
      await givenHeld();
      await until('it is written', async () => (await readModels.getAny('pay_1')) !== undefined);
      await until('it is not behind', () => !freshness.isBehind('pay_1'));
      await expectWhole('pay_1');
      expect(await readModels.checkpoint()).toBe(await end());
      await append('pay_2', wholeLife('pay_2'));
      await deliver();
      expect(await readModels.checkpoint()).toBe(await end());
    });

    test('the checkpoint stays before the first that is held, and a start applies it again', async () => {
      await append('pay_0', wholeLife('pay_0'));
      await deliver();
      const before = await end();
      await givenHeld();
      await append('pay_2', wholeLife('pay_2'));
      await deliver();
      await expectWhole('pay_2');
      expect(await readModels.checkpoint()).toBe(before);
      await begin(NEVER_MS);
      await deliver();
      await expectWhole('pay_1');
      await expectWhole('pay_2');
      expect(await readModels.checkpoint()).toBe(await end());
    });

    test('nothing is held before the log has been followed to its end', async () => {
      await begin(NEVER_MS);
      await givenHeld();
      await expectWhole('pay_1');
      expect(freshness.isBehind('pay_1')).toBe(false);
    });

    test('a response that waits for the first revision has it at once', async () => {
      await givenHeld();
      const wait = readModels.waitForRevision('pay_1', 0, 60_000);
      projection.waitedFor('pay_1', 0);
      expect(await wait).toBe(true);
      await expectWhole('pay_1');
    });

    test.each<[string, () => Promise<unknown>]>([
      ['a rebuild or a comparison', () => projection.hold(async () => undefined)],
      ['a repair', () => projection.repair('pay_1')],
      ['a retry', () => projection.retryParked('pay_1')],
      ['a removal', () => projection.removal('pay_1')],
    ])('%s finds it written, and the checkpoint at the end', async (_, step) => {
      await givenHeld();
      await step();
      await expectWhole('pay_1');
      expect(await readModels.checkpoint()).toBe(await end());
    });

    test('a second event that cannot be read parks it behind its first document', async () => {
      await givenHeld();
      await append('pay_1', others.slice(0, 1), 1);
      store.damage(streamOf('pay_1'), 1, 'unknown event type');
      await deliver();
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 0, parked: true });
      expect(freshness.isBehind('pay_1')).toBe(false);
      expect(await readModels.checkpoint()).toBe(await end());
    });

    test('a write that fails starts again from the checkpoint, and nothing is lost', async () => {
      await begin(SOON_MS);
      await deliver();
      failsNext = true;
      await givenHeld();
      await until('the write has failed', () => failures === 1);
      expect(freshness.isBehind('pay_1')).toBe(true);
      delivered = await projection.start();
      await deliver();
      await expectWhole('pay_1');
      expect(freshness.isBehind('pay_1')).toBe(false);
      await append('pay_2', wholeLife('pay_2'));
      await deliver();
      expect(written.map(([paymentId]) => paymentId)).toEqual(['pay_1', 'pay_2']);
      expect(await readModels.checkpoint()).toBe(await end());
    });

    test('a batch whose write failed is not passed by the write of what is held', async () => {
      await givenHeld();
      const before = await readModels.checkpoint();
      await append('pay_2', wholeLife('pay_2'));
      failsNext = true;
      await expect(deliver()).rejects.toThrow('out of reach');
      await projection.hold(async () => undefined);
      expect(await readModels.checkpoint()).toBe(before);
      delivered = await projection.start();
      await deliver();
      await projection.hold(async () => undefined);
      await expectWhole('pay_1');
      await expectWhole('pay_2');
      expect(await readModels.checkpoint()).toBe(await end());
    });

    test('P1: any payments in any batches, with kills: documents are the folds', async () => {
      let run = 0;
      const streams = fc.array(anyPayment('pay_x'), { minLength: 1, maxLength: 4 });
      const batchMax = fc.integer({ min: 1, max: 7 });
      const property = async (lives: PaymentEvent[][], order: fc.Stream<number>, max: number) => {
        run += 1;
        const ids = interleavedIds(`pay_${run}`, lives);
        for (const { paymentId, revision, event } of interleaved(`pay_${run}`, lives, order)) {
          await append(paymentId, [event], revision);
          if (order.next().value % 3 === 0) await deliver(max);
          if (order.next().value % 11 === 0) await begin(NEVER_MS);
          // What GET serves without a look at the log has to be whole.
          for (const id of ids) {
            if (freshness.isBehind(id)) continue;
            const shown = await readModels.getAny(id);
            const events = await store.readStream(streamOf(id));
            expect(shown?.revision ?? -1).toBe(events.length - 1);
          }
        }
        await deliver(max);
        await projection.hold(async () => undefined);
        for (const id of ids) await expectWhole(id);
        expect(await readModels.checkpoint()).toBe(await end());
        expect(projection.counts().healed).toBe(0);
      };
      await fc.assert(fc.asyncProperty(streams, fc.infiniteStream(fc.nat()), batchMax, property), {
        numRuns: Math.min(propertyRuns(40), driver.runsMax ?? 40),
      });
    });
  });
}
