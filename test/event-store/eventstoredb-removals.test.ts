/**
 * What EventStoreDB does with a removed stream that the port cannot be asked on a shared server: what
 * is left behind would break the log's verification there.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createMerchantLookup } from '../../audit/merchants.ts';
import { sumsCheck } from '../../audit/walk-log.ts';
import { decode } from '../../shared/event-store/codec.ts';
import { StoreUnavailable, StreamNotWhole } from '../../shared/event-store/errors.ts';
import {
  type EventStoreDb,
  openEventStoreDb,
} from '../../shared/event-store/eventstoredb/event-store.ts';
import { type StandIn, startStandIn } from '../support/eventstoredb-stand-in.ts';
import { authorized, created, newEvent, timeOf } from '../support/payment-events.ts';
import { at } from './opened.ts';

const logger = { debug: () => undefined, warn: () => undefined };
const PAYMENT = 'payment-pay_1';

describe('a payment that was removed before this process began', () => {
  let standIn: StandIn;
  let store: EventStoreDb;
  beforeEach(async () => {
    standIn = await startStandIn();
    store = await openEventStoreDb({ url: standIn.url, logger });
    await store.append(PAYMENT, 'none', [newEvent(created()), newEvent(authorized(), timeOf(1))]);
  });
  afterEach(async () => {
    await store.close();
    await standIn.close();
  });

  test('is not created anew: the server stores the append and names a later revision', async () => {
    standIn.softDelete(PAYMENT);
    const append = store.append(PAYMENT, 'none', [newEvent(created(), timeOf(2))]);
    await expect(append).rejects.toBeInstanceOf(StreamNotWhole);
  });

  test('is not created anew either where the response to the append was lost', async () => {
    standIn.softDelete(PAYMENT);
    standIn.fail('append', 'answer lost', 1);
    const append = store.append(PAYMENT, 'none', [newEvent(created(), timeOf(2))]);
    await expect(append).rejects.toBeInstanceOf(StreamNotWhole);
  });

  test('stays so after a scavenge, by which other events keep their positions', async () => {
    const [other] = await store.append('payment-pay_2', 'none', [newEvent(created())]);
    standIn.tombstone(PAYMENT);
    standIn.scavenge();
    await expect(store.readStream(PAYMENT)).rejects.toBeInstanceOf(StreamNotWhole);
    expect(await store.readAll(null, 10)).toEqual([other]);
    const later = await store.append('payment-pay_2', at(other), [newEvent(authorized())]);
    expect(await store.readAll(null, 10)).toEqual([other, ...later]);
  });

  const WAYS = {
    'a tombstone': () => standIn.tombstone(PAYMENT),
    'a truncation of everything': () => standIn.truncate(PAYMENT, 2),
  };
  test.each(Object.entries(WAYS))(
    'after %s: who reads the log goes on past the events that it still shows',
    async (_, remove) => {
      const document = { merchantId: 'm_1', paymentId: 'pay_1', revision: 1, body: '' };
      const getAny = async () => ({ ...document, parked: false });
      remove();
      const last = (await store.stored.readAll(null, 10)).at(-1);
      if (last === undefined) throw new Error('the log shows nothing of it');
      // Neither has seen the first event: it lies before their place, or was forgotten since.
      expect(await createMerchantLookup(store, { getAny }).ofForm(last)).toBe('m_1');
      expect(await sumsCheck(store.stored)(decode(last))).toBeUndefined();
    },
  );

  test('a read that the server ends without an event is no truncation', async () => {
    standIn.fail('read', 'clean end');
    await expect(store.readStream(PAYMENT)).rejects.toBeInstanceOf(StoreUnavailable);
  });
});
