/** The read models are compared with the log for ever, and never say what the log does not. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Projector, startProjector } from '../../projector/compose.ts';
import { foldStream } from '../../shared/event-store/fold-stream.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import type { PaymentReadModel } from '../../shared/payment/payment-response.ts';
import { foldReadModel } from '../../shared/payment/response.ts';
import { createRowCheck, rowOf } from '../../shared/read-models/document-row.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { openSqliteReadModels } from '../../shared/read-models/sqlite/read-models.ts';
import { appendLife } from '../support/many-payments.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { READ_MODEL_SECRETS } from '../support/read-models-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const PAYMENTS = 5;
const check = createRowCheck(READ_MODEL_SECRETS);

describe('the sampler', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let file: string;
  let store: MemoryEventStore;
  let readModels: ReadModels;
  let projector: Projector | undefined;
  let errors: { fields: object; message: string }[];
  const logger = {
    info: () => undefined,
    warn: () => undefined,
    error: (fields: object, message: string) => void errors.push({ fields, message }),
  };

  const readModelAt = async (paymentId: string, revision: number): Promise<PaymentReadModel> => {
    const events = await store.readStream(streamOf(paymentId));
    const readModel = foldStream(events.slice(0, revision + 1), foldReadModel);
    if (readModel === undefined) throw new Error('no such revision');
    return readModel;
  };
  const open = () => openSqliteReadModels({ file, secrets: READ_MODEL_SECRETS });
  const start = async (sampleMs: number): Promise<Projector> => {
    projector = await startProjector({ store, readModels, logger, sampleMs });
    await projector.caughtUp;
    return projector;
  };
  /** Changes the file of the stopped read models, and opens them again. */
  const forge = async (sql: string, ...values: (string | number)[]): Promise<void> => {
    await projector?.stop();
    await readModels.close();
    const db = new DatabaseSync(file);
    db.prepare(sql).run(...values);
    db.close();
    readModels = open();
  };
  /** Puts a row with its right check in the place of a payment's, as who has the secret could. */
  const replaceRow = async (readModel: PaymentReadModel): Promise<void> => {
    const row = rowOf(readModel);
    await forge(
      'UPDATE payment SET revision = ?, status = ?, body = ?, row_check = ? WHERE payment_id = ?',
      ...[row.revision, row.status, row.body, check.of(row), row.paymentId],
    );
  };
  const noticed = async (kind: string, paymentId = 'pay_1') => {
    const started = await start(2);
    await until('noticed', () => started.status().compared.differences > 0);
    expect(errors).toMatchObject([{ fields: { paymentId, kind } }]);
    expect(errors[0]?.message).toContain('payments projections rebuild');
    return started;
  };

  beforeEach(async () => {
    errors = [];
    folder = temporaryFolder();
    file = join(folder.path, 'read models.db');
    store = memoryEventStore();
    for (let n = 0; n < PAYMENTS; n += 1) await appendLife(store, `pay_${n}`);
    readModels = open();
    await start(60_000);
  });
  afterEach(async () => {
    await projector?.stop();
    await readModels.close();
    folder.remove();
  });

  test('compares payments without end, and finds nothing where nothing is wrong', async () => {
    await projector?.stop();
    const started = await start(1);
    await until('several rounds', () => started.status().compared.samples > 4 * PAYMENTS);
    expect(started.status().compared.differences).toBe(0);
    expect(errors).toEqual([]);
  });

  test('compares nothing while the projector has not caught up', async () => {
    await projector?.stop();
    store.hold(true);
    projector = await startProjector({ store, readModels, logger, sampleMs: 1 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(projector.status().compared.samples).toBe(0);
    store.hold(false);
    await until('compared', () => (projector?.status().compared.samples ?? 0) > 0);
  });

  test('a missing row is noticed by the log, and filled in', async () => {
    await forge("DELETE FROM payment WHERE payment_id = 'pay_1'");
    await noticed('missing');
    await until('filled in', async () => (await readModels.getAny('pay_1')) !== undefined);
    expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 5 });
  });

  test('a forged row is noticed without being asked for, and written anew', async () => {
    await forge("UPDATE payment SET status = 'VOIDED' WHERE payment_id = 'pay_1'");
    const started = await noticed('damaged');
    await until('whole', async () => (await readModels.inspect('pay_1')).whole);
    expect(await readModels.search({ status: 'VOIDED' }, 9)).toEqual({ documents: [] });
    // It stays until an operator looks.
    expect(started.status().compared.differences).toBe(1);
  });

  test('an older row of the same payment, with its own check, is noticed and written anew', async () => {
    await replaceRow(await readModelAt('pay_1', 1));
    await noticed('older');
    await until('newest', async () => (await readModels.inspect('pay_1')).row?.revision === 5);
  });

  test('a document that has its check and differs is left, for the log may be what was changed', async () => {
    const readModel = await readModelAt('pay_1', 5);
    const response = { ...readModel.response, refundedAmount: 1 };
    await replaceRow({ ...readModel, response });
    await noticed('differs');
    const { samples = 0 } = projector?.status().compared ?? {};
    await until('met again', () => (projector?.status().compared.samples ?? 0) > samples + 60);
    expect((await readModels.inspect('pay_1')).row?.body).toContain('"refundedAmount":1,');
    // Once, however often it is met.
    expect(errors).toHaveLength(1);
  });

  test('a document of a payment that the log does not have is named', async () => {
    const row = { ...rowOf(await readModelAt('pay_1', 5)), paymentId: 'pay_x' };
    await forge(
      `INSERT INTO payment SELECT ?, merchant_id, revision, status, created_at, amount, last4,
         merchant_reference, unresolved_since, unresolved, ?, ? FROM payment LIMIT 1`,
      ...[row.paymentId, check.of(row), row.body],
    );
    await noticed('not in the log', 'pay_x');
  });

  test('a rebuild takes the noticed differences back', async () => {
    await forge("DELETE FROM payment WHERE payment_id = 'pay_1'");
    const started = await noticed('missing');
    await started.rebuild();
    expect(started.status().compared.differences).toBe(0);
  });
});
