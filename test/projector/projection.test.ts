/** What becomes of a batch of events: skip, apply, heal, park (invariants P1, P2, P5). */
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type Freshness, trackFreshness } from '../../projector/freshness.ts';
import { createProjection, type Projection } from '../../projector/projection.ts';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { type PaymentEvent, streamOf } from '../../shared/payment/events.ts';
import { ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { openBeforeEach } from '../read-models/opened.ts';
import { describeDriver } from '../support/describe-driver.ts';
import { foldOf, readModelOf } from '../support/many-payments.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import {
  anyPayment,
  appendPayment,
  authorized,
  created,
  interleaved,
  interleavedIds,
  newEvent,
  timeOf,
  wholeLife,
} from '../support/payment-events.ts';
import { propertyRuns } from '../support/property-runs.ts';
import { readModelDrivers } from '../support/read-model-drivers.ts';
import { silent } from '../support/silent-log.ts';

/** The event as it would stand in the stream of this payment. */
const LIFE = wholeLife('pay_1').length;

for (const driver of readModelDrivers)
  describeDriver('projection', driver, () => {
    let readModels: ReadModels;
    let store: MemoryEventStore;
    let freshness: Freshness;
    let tracked: EventStore;
    let projection: Projection;

    const begin = async (): Promise<void> => {
      projection = createProjection({ store, readModels, freshness, logger: silent });
      await projection.start();
    };
    const append = async (paymentId: string, event: PaymentEvent, n: number): Promise<void> => {
      const last = (await store.readStream(streamOf(paymentId))).at(-1);
      const expected = last === undefined ? 'none' : { revision: last.revision, hash: last.hash };
      await tracked.append(streamOf(paymentId), expected, [newEvent(event, timeOf(n))]);
    };
    const given = async (paymentId: string, events: PaymentEvent[]): Promise<void> => {
      await appendPayment(tracked, paymentId, events, timeOf);
    };
    /** Delivers what lies after the checkpoint, in batches, as the loop does. */
    const deliver = async (limit = 1000): Promise<void> => {
      for (;;) {
        const events = await store.readAll(projection.checkpoint(), limit);
        if (events.length === 0) return;
        await projection.events(events);
      }
    };
    const expectWhole = async (paymentId: string): Promise<void> => {
      const document = await readModels.getAny(paymentId);
      expect(document?.body).toBe(await foldOf(store, paymentId));
      expect(document?.parked).toBe(false);
    };

    const { reopen } = openBeforeEach(driver, async (opened) => {
      readModels = opened;
      store = memoryEventStore();
      freshness = trackFreshness();
      tracked = freshness.tracked(store);
      freshness.caughtUp();
      await begin();
    });

    test('apply: a batch gives each payment its document, and moves the checkpoint', async () => {
      await given('pay_1', wholeLife('pay_1'));
      await given('pay_2', wholeLife('pay_2', 'm_2'));
      await deliver();
      await expectWhole('pay_1');
      await expectWhole('pay_2');
      expect(await readModels.checkpoint()).toBe((await store.head(null)).position);
      expect(projection.counts()).toMatchObject({ events: 2 * LIFE, healed: 0, parked: 0 });
    });

    test('skip: events that the document has are passed over, in part of a batch too', async () => {
      await given('pay_1', wholeLife('pay_1'));
      const all = await store.readAll(null, 100);
      await projection.events(all.slice(0, 4));
      await projection.events(all.slice(1, 5));
      await projection.events(all.slice(0, 2));
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 4, parked: false });
      await projection.events(all);
      await expectWhole('pay_1');
      expect(projection.counts()).toMatchObject({ healed: 0, parked: 0 });
    });

    test('heal: an event beyond the next one makes the payment read its stream', async () => {
      await given('pay_1', wholeLife('pay_1'));
      const all = await store.readAll(null, 100);
      await projection.events(all.slice(0, 1));
      await projection.events(all.slice(3, 4));
      await expectWhole('pay_1');
      expect(projection.counts()).toMatchObject({ healed: 1, parked: 0 });
    });

    test('streams that are no payments are passed over, and the checkpoint moves on', async () => {
      await store.append('merchant-reference-1', 'none', [newEvent(created())]);
      await given('pay_1', wholeLife('pay_1'));
      store.inject('merchant-reference-1', 1, newEvent(authorized()));
      await deliver(1);
      await expectWhole('pay_1');
      expect(await readModels.checkpoint()).toBe((await store.head(null)).position);
      expect(projection.counts().parked).toBe(0);
    });

    const unreadables: [string, (stream: string) => void, number][] = [
      ['an unknown type', (s) => store.damage(s, 2, 'unknown event type'), 2],
      ['a version of tomorrow', (s) => store.damage(s, 4, 'version 9 is newer than 1'), 4],
      ['a missing field', (s) => store.damage(s, 1, 'data.amount is missing'), 1],
      ['an unreadable first event', (s) => store.damage(s, 0, 'bad JSON'), 0],
      ['a gap in the stream', (s) => store.inject(s, LIFE + 1, newEvent(authorized())), LIFE + 1],
      ['an event that cannot follow', (s) => store.inject(s, LIFE, newEvent(created())), LIFE],
    ];
    for (const batch of [1, 1000])
      test.each(unreadables)(
        `P5: park: %s stops its own payment only (batches of ${batch})`,
        async (_, poison, revision) => {
          await given('pay_0', wholeLife('pay_0'));
          await given('pay_1', wholeLife('pay_1'));
          poison(streamOf('pay_1'));
          store.inject(streamOf('pay_1'), LIFE + 2, newEvent(authorized()));
          await given('pay_2', wholeLife('pay_2'));
          await deliver(batch);
          await expectWhole('pay_0');
          await expectWhole('pay_2');
          const parked = await readModels.parked(10);
          expect(parked).toMatchObject([{ paymentId: 'pay_1', revision }]);
          expect(parked[0]?.reason).not.toBe('');
          const document = await readModels.getAny('pay_1');
          expect(document?.revision).toBe(
            revision === 0 ? undefined : Math.min(revision, LIFE) - 1,
          );
          expect(document?.parked).toBe(revision === 0 ? undefined : true);
          expect(projection.counts()).toMatchObject({ parked: 1, parkings: 1 });
          expect(await readModels.checkpoint()).toBe((await store.head(null)).position);
        },
      );

    test.each([0, 1, 3, 5])(
      'P1: retry of a payment parked at revision %i restores it to the byte',
      async (revision) => {
        await given('pay_1', wholeLife('pay_1'));
        store.damage(streamOf('pay_1'), revision, 'unknown event type');
        await deliver(2);
        expect(await projection.retryParked('pay_1')).toBe(false);
        expect(await readModels.parked(10)).toMatchObject([{ paymentId: 'pay_1', revision }]);
        store.mend(streamOf('pay_1'));
        expect(await projection.retryParked('pay_1')).toBe(true);
        await expectWhole('pay_1');
        expect(await readModels.parked(10)).toEqual([]);
        expect(projection.counts().parked).toBe(0);
        expect(await readModels.checkpoint()).toBe((await store.head(null)).position);
      },
    );

    test('a retried payment goes on with the next event', async () => {
      const life = wholeLife('pay_1').map((event, n) => newEvent(event, timeOf(n)));
      const first = await store.append(streamOf('pay_1'), 'none', life.slice(0, 3));
      store.damage(streamOf('pay_1'), 1, 'unknown event type');
      await deliver();
      store.mend(streamOf('pay_1'));
      await projection.retryParked('pay_1');
      const { revision, hash } = first.at(-1) ?? { revision: -1, hash: '' };
      await store.append(streamOf('pay_1'), { revision, hash }, life.slice(3));
      await deliver();
      await expectWhole('pay_1');
      expect(projection.counts().healed).toBe(0);
    });

    test('a parked payment is still known after the next start', async () => {
      await given('pay_1', wholeLife('pay_1'));
      store.damage(streamOf('pay_1'), 2, 'unknown event type');
      await deliver();
      readModels = await reopen();
      await begin();
      store.inject(streamOf('pay_1'), LIFE, newEvent(authorized()));
      await deliver();
      expect(projection.counts()).toMatchObject({ parked: 1, parkings: 0, healed: 0 });
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 1, parked: true });
    });

    test('an event that the stream itself does not show parks its payment', async () => {
      await given('pay_1', wholeLife('pay_1').slice(0, 2));
      await deliver();
      const lost = store.inject(streamOf('pay_other'), 9, newEvent(authorized()));
      await projection.events([{ ...lost, stream: streamOf('pay_1') }]);
      expect(await readModels.parked(10)).toMatchObject([
        { paymentId: 'pay_1', revision: 9, reason: 'its stream ends before it' },
      ]);
    });

    test('an engine out of reach parks nothing and moves nothing', async () => {
      await given('pay_1', wholeLife('pay_1'));
      const all = await store.readAll(null, 100);
      await projection.events(all.slice(0, 1));
      const before = await readModels.checkpoint();
      store.failWith(new StoreUnavailable('gone'));
      await expect(projection.events(all.slice(3))).rejects.toThrow(StoreUnavailable);
      await expect(projection.retryParked('pay_1')).rejects.toThrow(StoreUnavailable);
      store.failWith(undefined);
      expect(await readModels.checkpoint()).toBe(before);
      expect(await readModels.parked(10)).toEqual([]);
      await deliver();
      await expectWhole('pay_1');
      await readModels.close();
      await expect(projection.events(all)).rejects.toThrow(ReadModelsUnavailable);
    });

    test('gaps §9: what was delivered is no longer behind, parked payments neither', async () => {
      await given('pay_1', wholeLife('pay_1'));
      await given('pay_2', wholeLife('pay_2'));
      store.damage(streamOf('pay_2'), 2, 'unknown event type');
      expect([freshness.isBehind('pay_1'), freshness.isBehind('pay_2')]).toEqual([true, true]);
      await deliver(4);
      expect([freshness.isBehind('pay_1'), freshness.isBehind('pay_2')]).toEqual([false, false]);
      expect(freshness.size()).toBe(0);
    });

    test('P1: any payments, interleaved, in any batches, with restarts: documents are the folds, and one that is older counts as behind', async () => {
      let run = 0;
      const streams = fc.array(anyPayment('pay_x'), { minLength: 1, maxLength: 4 });
      const batchMax = fc.integer({ min: 1, max: 7 });
      const property = async (lives: PaymentEvent[][], order: fc.Stream<number>, max: number) => {
        run += 1;
        const ids = interleavedIds(`pay_${run}`, lives);
        for (const { paymentId, revision, event } of interleaved(`pay_${run}`, lives, order)) {
          await append(paymentId, event, revision);
          if (order.next().value % 5 === 0) await deliver(max);
          if (order.next().value % 7 === 0) await begin();
          // GET serves these without a look at the log.
          for (const id of ids.filter((one) => !freshness.isBehind(one))) {
            const events = await store.readStream(streamOf(id));
            expect((await readModels.getAny(id))?.revision ?? -1).toBe(events.length - 1);
          }
        }
        await deliver(max);
        const unresolved = (await readModels.unresolved(1000)).map(({ paymentId }) => paymentId);
        for (const id of ids) {
          await expectWhole(id);
          const readModel = await readModelOf(store, id);
          expect(unresolved.includes(id)).toBe((readModel?.unresolved.length ?? 0) > 0);
        }
        expect(projection.counts().healed).toBe(0);
      };
      await fc.assert(fc.asyncProperty(streams, fc.infiniteStream(fc.nat()), batchMax, property), {
        numRuns: Math.min(propertyRuns(60), driver.runsMax ?? 60),
      });
    });
  });
