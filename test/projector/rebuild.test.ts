/** A rebuild: a new generation is filled beside the served one, compared, and served at once. */
import { afterEach, expect, test } from '@jest/globals';
import type { ComparisonProgress } from '../../projector/compare.ts';
import { type Projector, startProjector } from '../../projector/compose.ts';
import { RebuildImpossible } from '../../projector/errors.ts';
import { type RebuildProgress, rebuild } from '../../projector/rebuild.ts';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import { minor } from '../../shared/payment/transitions.ts';
import { createRowCheck, rowOf } from '../../shared/read-models/document-row.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { openBeforeEach } from '../read-models/opened.ts';
import { describeDriver } from '../support/describe-driver.ts';
import { appendLife, foldOf, readModelOf } from '../support/many-payments.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { appendPayment, created, timeOf, wholeLife } from '../support/payment-events.ts';
import { readModelDrivers } from '../support/read-model-drivers.ts';
import { READ_MODEL_SECRETS } from '../support/read-models-here.ts';
import { silent } from '../support/silent-log.ts';
import { until } from '../support/until.ts';

const LIFE = wholeLife('pay_1').length;

for (const driver of readModelDrivers)
  describeDriver('rebuild', driver, () => {
    let readModels: ReadModels;
    let store: MemoryEventStore;
    let projector: Projector;
    let payments: number;

    const given = async (count: number): Promise<void> => {
      for (const last = payments + count; payments < last; payments += 1)
        await appendLife(store, `pay_${payments}`);
    };
    const applied = (): Promise<void> =>
      until('everything is applied', async () => {
        const { position } = await store.head(null);
        return projector.status().checkpoint === position;
      });
    const expectWhole = async (): Promise<void> => {
      await applied();
      for (let n = 0; n < payments; n += 1)
        expect((await readModels.getAny(`pay_${n}`))?.body).toBe(await foldOf(store, `pay_${n}`));
    };

    afterEach(() => projector.stop());
    const { reopen, store: readModelStore } = openBeforeEach(driver, async (opened) => {
      readModels = opened;
      store = memoryEventStore();
      payments = 0;
      await given(20);
      const backOff = { minMs: 1, maxMs: 8 };
      projector = await startProjector({ store, readModels, logger: silent, backOff });
      await projector.caughtUp;
    });

    test('gives the same documents, and says how far it is', async () => {
      const reports: RebuildProgress[] = [];
      const sum = await readModels.checksum();
      const result = await projector.rebuild({
        onProgress: (progress) => void reports.push(progress),
      });
      expect(result).toMatchObject({ events: 20 * LIFE, equal: true, old: sum, new: sum });
      expect(result.checkpoint).toBe((await store.head(null)).position);
      expect(result.seconds).toBeGreaterThan(0);
      expect(reports.at(-1)).toMatchObject({ done: 20 * LIFE, total: 20 * LIFE, secondsLeft: 0 });
      await expectWhole();
      await given(2);
      await expectWhole();
      expect(projector.status().counts.restarts).toBe(0);
    });

    test('while events come in and are read: no event is lost, no read finds a document missing', async () => {
      let over = false;
      let reads = 0;
      const using = (async () => {
        while (!over) {
          expect(await readModels.get('pay_3', 'm_1')).toMatchObject({ revision: LIFE - 1 });
          reads += 1;
          // Fewer writes than reads, or the rebuild would have to run after them without end.
          if (reads % 20 === 1) await given(1);
          await new Promise((resolve) => setImmediate(resolve));
        }
      })();
      const { equal } = await projector.rebuild().finally(() => {
        over = true;
      });
      await using;
      expect(equal).toBe(true);
      expect(reads).toBeGreaterThan(0);
      expect(payments).toBeGreaterThan(20);
      await expectWhole();
    });

    /** Puts a document with its check in the place of a payment's, of another sum than the log has. */
    const otherMoney = async (paymentId: string, capturedAmount: number): Promise<void> => {
      const readModel = await readModelOf(store, paymentId);
      if (readModel === undefined) throw new Error('no read model');
      const row = rowOf({ ...readModel, capturedAmount: minor(capturedAmount) });
      const { forge } = readModelStore();
      await forge(paymentId, 'body', row.body);
      await forge(paymentId, 'check', createRowCheck(READ_MODEL_SECRETS).of(row));
    };
    const capturedOf = async (paymentId: string): Promise<number> =>
      JSON.parse((await readModels.getAny(paymentId))?.body ?? '{}').capturedAmount;

    test('documents of other money than the log has stay served until that is accepted', async () => {
      await otherMoney('pay_3', 1);
      const result = await projector.rebuild();
      expect(result).toMatchObject({
        ...{ equal: false, served: false, parked: [] },
        money: {
          count: 1,
          named: [
            {
              paymentId: 'pay_3',
              served: { merchantId: 'm_1', capturedAmount: 1 },
              inLog: { merchantId: 'm_1', capturedAmount: 2000 },
            },
          ],
        },
      });
      expect(await capturedOf('pay_3')).toBe(1);
      await given(1);
      await applied();
      expect(await projector.rebuild({ accept: true })).toMatchObject({
        served: true,
        money: { count: 1 },
      });
      await expectWhole();
    });

    test('a payment that the log does not give any more keeps its document', async () => {
      const at = await readModels.checkpoint();
      const readModel = await readModels.load('pay_3');
      if (readModel === undefined) throw new Error('no read model');
      const lost = { ...readModel, paymentId: 'pay_lost' };
      await readModels.apply([{ kind: 'readModel', readModel: lost }], at, at);
      expect(await projector.rebuild()).toMatchObject({
        served: false,
        money: { count: 1, named: [{ paymentId: 'pay_lost', inLog: null }] },
      });
      expect(await readModels.getAny('pay_lost')).toBeDefined();
    });

    test('a document without its check holds no rebuild back, and payments parked are named', async () => {
      await projector.stop();
      await readModelStore().forge('pay_3', 'status', 'VOIDED');
      readModels = await reopen();
      const create = created({ paymentId: 'pay_poison' });
      await appendPayment(store, 'pay_poison', [create, create], timeOf);
      projector = await startProjector({ store, readModels, logger: silent });
      await projector.caughtUp;
      expect(await projector.rebuild()).toMatchObject({
        served: true,
        money: { count: 0, named: [] },
        parked: [{ paymentId: 'pay_poison', revision: 1 }],
      });
      expect(await readModels.inspect('pay_3')).toMatchObject({ whole: true });
    });

    test('verify --read-models: every document against the log, and every payment against the documents', async () => {
      expect(await projector.compareAll()).toMatchObject({
        ...{ documents: 20, payments: 20, differences: 0, kinds: {}, named: [] },
      });
      await otherMoney('pay_3', 1);
      await readModelStore().removeDocument('pay_7');
      const progress: ComparisonProgress[] = [];
      const found = await projector.compareAll((one) => progress.push(one));
      expect(found).toMatchObject({
        ...{ documents: 19, payments: 20, differences: 2, kinds: { differs: 1, missing: 1 } },
      });
      expect(found.named.map(({ paymentId, kind }) => [paymentId, kind])).toEqual([
        ['pay_3', 'differs'],
        ['pay_7', 'missing'],
      ]);
      // The total stays as it is at the start, also where more payments begin in the log than have a document.
      expect(progress).toEqual([0, 19, 38].map((done) => ({ done, total: 38 })));
      // It changes nothing, and the metric shows what it found.
      expect((await readModels.inspect('pay_7')).row).toBeUndefined();
      expect(projector.status().differences).toBe(2);
    });

    test('stopped in the middle: the old read models are served, and nothing of the new ones is left', async () => {
      const before = await readModels.checksum();
      const running = projector.rebuild({ onProgress: () => void projector.stop() });
      await expect(running).rejects.toThrow(/abort/);
      await projector.stop();
      expect(await readModels.checksum()).toEqual(before);
      const next = await readModels.openGeneration();
      expect(await next.checkpoint()).toBeNull();
      await next.end();
    });

    test('a rebuild goes on where the event store does not respond to one read', async () => {
      let reads = 0;
      const readAll: typeof store.stored.readAll = (...page) => {
        reads += 1;
        return reads === 1
          ? Promise.reject(new StoreUnavailable('a new leader is elected'))
          : store.stored.readAll(...page);
      };
      const flaky = { ...store, stored: { ...store.stored, readAll } };
      const hold = <T>(step: () => Promise<T>) => step();
      const { equal } = await rebuild({ store: flaky, readModels, logger: silent, hold });
      expect({ equal, reads: reads > 1 }).toEqual({ equal: true, reads: true });
      await expectWhole();
    });

    test('a log that ends before the served checkpoint is refused in one line', async () => {
      const empty = memoryEventStore();
      const hold = <T>(step: () => Promise<T>) => step();
      const refused = rebuild({ store: empty, readModels, logger: silent, hold });
      await expect(refused).rejects.toThrow(RebuildImpossible);
      await expectWhole();
    });
  });
