/**
 * An administrator of EventStoreDB takes the stream of one payment away. That payment is parked
 * and keeps its document; the others do not notice, and a rebuild comes to its end.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Projector, startProjector } from '../../projector/compose.ts';
import {
  type EventStoreDb,
  openEventStoreDb,
} from '../../shared/event-store/eventstoredb/event-store.ts';
import { streamOf } from '../../shared/payment/events.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { type StandIn, startStandIn } from '../support/eventstoredb-stand-in.ts';
import { appendLife } from '../support/many-payments.ts';
import { wholeLife } from '../support/payment-events.ts';
import { readModelsIn } from '../support/read-models-here.ts';
import { silent } from '../support/silent-log.ts';
import { folderOfEachTest } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const LOST = 'pay_lost';
const STREAM = streamOf(LOST);
const LAST = wholeLife(LOST).length - 1;
const logger = { debug: () => undefined, warn: () => undefined };

const WAYS = {
  'a tombstone': (standIn: StandIn) => standIn.tombstone(STREAM),
  'a soft delete': (standIn: StandIn) => standIn.softDelete(STREAM),
  'a truncation': (standIn: StandIn) => standIn.truncate(STREAM, 2),
};

const folder = folderOfEachTest();
let standIn: StandIn;
let store: EventStoreDb;
let readModels: ReadModels;
let projector: Projector;
let errors: { fields: object; message: string }[];

const given = (paymentId: string): Promise<void> => appendLife(store, paymentId);
const applied = (paymentId: string): Promise<void> =>
  until(`${paymentId} is applied`, async () => (await readModels.getAny(paymentId)) !== undefined);
const parked = (): Promise<void> =>
  until('it is parked', async () => (await readModels.parked(10)).length === 1);

const start = async (file: string): Promise<void> => {
  readModels = readModelsIn(folder.path, file);
  const error = (fields: object, message: string): void => void errors.push({ fields, message });
  projector = await startProjector({
    ...{ store, readModels, logger: { ...silent, error } },
    backOff: { minMs: 1, maxMs: 8 },
  });
  await projector.caughtUp;
};
const stop = async (): Promise<void> => {
  await projector.stop();
  await readModels.close();
};

beforeEach(async () => {
  errors = [];
  standIn = await startStandIn();
  store = await openEventStoreDb({ url: standIn.url, logger });
  await given(LOST);
  await given('pay_other');
  await start('read-models.sqlite');
});
afterEach(async () => {
  await stop();
  await store.close();
  await standIn.close();
});

describe.each(Object.entries(WAYS))('after %s', (_, remove) => {
  beforeEach(async () => {
    remove(standIn);
    await parked();
  });

  test('the payment is parked after its last event, loudly, with the document that it had; others go on', async () => {
    const [parking] = await readModels.parked(10);
    expect(parking).toMatchObject({ paymentId: LOST, revision: LAST + 1 });
    expect(await readModels.getAny(LOST)).toMatchObject({ revision: LAST, parked: true });
    expect(projector.status()).toMatchObject({ state: 'running', parked: 1, stuck: false });
    expect(errors).toEqual([
      {
        fields: { paymentId: LOST, revision: LAST + 1, reason: parking?.reason },
        message: 'payment parked: the event store no longer holds its stream whole',
      },
    ]);
    await given('pay_later');
    await applied('pay_later');
    expect(projector.status().counts.restarts).toBe(0);
    expect(await projector.lag()).toMatchObject({ events: 0 });
  });

  test.each(['before', 'after'])(
    'a rebuild %s a scavenge ends, and keeps it parked with its document',
    async (when) => {
      await given('pay_later');
      await applied('pay_later');
      if (when === 'after') standIn.scavenge();
      const { parked: named, served } = await projector.rebuild();
      expect(served).toBe(true);
      expect(named).toMatchObject([{ paymentId: LOST }]);
      expect(await readModels.getAny(LOST)).toMatchObject({ revision: LAST, parked: true });
      expect(await readModels.getAny('pay_later')).toMatchObject({ revision: LAST, parked: false });
    },
  );

  test('a retry leaves it parked, and new read models park it as well', async () => {
    expect(await projector.retryParked(LOST)).toBe(false);
    standIn.scavenge();
    await stop();
    await start('others.sqlite');
    expect(await readModels.parked(10)).toMatchObject([{ paymentId: LOST }]);
    expect(await readModels.getAny('pay_other')).toMatchObject({ parked: false });
  });
});

test('a deletion that was taken back is over with a retry', async () => {
  standIn.truncate(STREAM, 2);
  await parked();
  standIn.truncate(STREAM, 0);
  expect(await projector.retryParked(LOST)).toBe(true);
  expect(await readModels.parked(10)).toEqual([]);
  expect(await readModels.getAny(LOST)).toMatchObject({ revision: LAST, parked: false });
});

test('metadata that removes nothing parks nothing', async () => {
  standIn.truncate(STREAM, 0);
  await given('pay_later');
  await applied('pay_later');
  expect(await readModels.parked(10)).toEqual([]);
});

test('a removed stream of no payment is an error line', async () => {
  standIn.tombstone('merchant-reference-1');
  await until('it is said', () => errors.length === 1);
  expect(errors[0]?.fields).toEqual({ stream: 'merchant-reference-1' });
});
