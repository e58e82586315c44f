/** How the cases of the read-models port open them, and the changes that they apply. */
import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { foldReadModel } from '../../shared/payment/fold.ts';
import type { PaymentReadModel } from '../../shared/payment/state.ts';
import type { ReadModelChange, ReadModels } from '../../shared/read-models/port.ts';
import { placed, timeOf, wholeLife } from '../support/payment-events.ts';
import type { ReadModelDriver, ReadModelStore } from '../support/read-model-drivers.ts';

const opening = (
  [before, after]: [typeof beforeEach, typeof afterEach],
  driver: ReadModelDriver,
  use: (opened: ReadModels) => void | Promise<void>,
) => {
  let store: ReadModelStore;
  let readModels: ReadModels;
  before(async () => {
    store = await driver.make();
    readModels = await store.open();
    await use(readModels);
  });
  after(async () => {
    await readModels.close();
    await store.remove();
  });
  return {
    /** Closes the read models and opens them again. */
    reopen: async (...secrets: Parameters<ReadModelStore['open']>): Promise<ReadModels> => {
      await readModels.close();
      readModels = await store.open(...secrets);
      return readModels;
    },
    /** Opens them a second time, as another process would. */
    openAnother: (): Promise<ReadModels> => store.open(),
    store: (): ReadModelStore => store,
  };
};

/** Opens empty read models before each test of the group and hands them to `use`. */
export const openBeforeEach = opening.bind(undefined, [beforeEach, afterEach]);

/** Opens them once for a group whose tests only read, after `use` has filled them. */
export const openBeforeAll = opening.bind(undefined, [beforeAll, afterAll]);

/** More payments than any driver keeps the read models of in memory, or writes at once. */
export const MANY = 600;

export const readModelAt = (
  paymentId: string,
  revision: number,
  merchantId = 'm_1',
): PaymentReadModel => {
  const readModel = foldReadModel(placed(wholeLife(paymentId, merchantId)).slice(0, revision + 1));
  if (readModel === undefined) throw new Error('no such revision');
  return readModel;
};
export const change = (readModel: PaymentReadModel): ReadModelChange => ({
  kind: 'readModel',
  readModel,
});
export const parking = (paymentId: string, revision: number, n = 0): ReadModelChange => ({
  kind: 'park',
  paymentId,
  revision,
  reason: `cannot read ${revision}`,
  time: timeOf(n),
});
