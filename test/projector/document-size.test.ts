/** A document that its store does not take for its size parks one payment (ADR-0046). */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { startProjector } from '../../projector/compose.ts';
import { foldReadModel } from '../../shared/payment/fold.ts';
import { keptBodyOf } from '../../shared/payment/response.ts';
import { createRowCheck } from '../../shared/read-models/document-row.ts';
import { DocumentTooLarge } from '../../shared/read-models/errors.ts';
import { batchOf } from '../../shared/read-models/mongodb/documents.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { declinedRefunds, largestCreated } from '../support/largest-payment.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { appendPayment, placed, wholeLife } from '../support/payment-events.ts';
import { readModelsIn } from '../support/read-models-here.ts';
import { silent } from '../support/silent-log.ts';
import { folderOfEachTest } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const folder = folderOfEachTest();
let readModels: ReadModels;
beforeEach(() => {
  readModels = readModelsIn(folder.path);
});
afterEach(() => readModels.close());

/** The real read models, which take no document of more than so many bytes. */
const takingAtMost = (bytesMax: number): ReadModels => ({
  ...readModels,
  apply: async (changes, ...rest) => {
    for (const change of changes) {
      if (change.kind !== 'readModel') continue;
      const bytes = Buffer.byteLength(keptBodyOf(change.readModel));
      if (bytes > bytesMax) throw new DocumentTooLarge(change.readModel.paymentId, bytes);
    }
    return readModels.apply(changes, ...rest);
  },
});

describe('a document that the store does not take', () => {
  test('parks its payment, and the projection goes on', async () => {
    const store = memoryEventStore();
    for (const id of ['pay_1', 'pay_2', 'pay_3']) {
      const events = id === 'pay_2' ? [largestCreated(id)] : wholeLife(id);
      await appendPayment(store, id, events);
    }
    const limited = takingAtMost(50_000);
    const projector = await startProjector({ store, readModels: limited, logger: silent });
    try {
      await until('one is parked', async () => (await readModels.parked(10)).length === 1);
      expect(await readModels.parked(10)).toMatchObject([
        { paymentId: 'pay_2', revision: 0, reason: expect.stringContaining('larger than') },
      ]);
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 5, parked: false });
      expect(await readModels.getAny('pay_3')).toMatchObject({ revision: 5, parked: false });
    } finally {
      await projector.stop();
    }
  });

  test('MongoDB is asked for none above 15 MB', () => {
    const [first] = placed(wholeLife('pay_1'));
    const readModel = foldReadModel(first === undefined ? [] : [first]);
    if (readModel === undefined) throw new Error('no read model');
    const descriptor = 'x'.repeat(15 * 1024 * 1024);
    const large = { ...readModel, descriptor };
    const rowCheck = createRowCheck(['a secret']);
    expect(() => batchOf([{ kind: 'readModel', readModel: large }], rowCheck)).toThrow(
      DocumentTooLarge,
    );
    expect(batchOf([{ kind: 'readModel', readModel }], rowCheck).ids).toEqual(['pay_1']);
  });

  test('a payment with every text at its maximum and 1,000 operations stays below 1 MB', () => {
    const events = declinedRefunds(largestCreated('pay_1'), 1_000);
    const readModel = foldReadModel(placed(events));
    expect(readModel?.transactions).toHaveLength(1_000);
    expect(readModel && Buffer.byteLength(keptBodyOf(readModel))).toBeLessThan(1024 * 1024);
  });
});
