/** gaps §19: erasures are carried out again step by step, in the log's thread, and each is a line of the ledger. */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newThread } from '../../embedded/jobs.ts';
import { createErasures } from '../../personal-data/erasure/erasures.ts';
import { openErasureLedger } from '../../personal-data/erasure/ledger.ts';
import { StoreFileUnusable } from '../../shared/event-store/errors.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../shared/event-store/sqlite/event-store.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { appendLife, appendLives } from '../support/many-payments.ts';
import { newEvent, personalDataErased } from '../support/payment-events.ts';
import { memoryKeys } from '../support/personal-data.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const signal = new AbortController().signal;
const [first, second] = ['1', '2'].map((n) => n.repeat(32)) as [string, string];
let store: SqliteEventStore;

const appendErased = async (paymentId: string, key: string) => {
  await appendLife(store, paymentId);
  const before = (await store.readStream(streamOf(paymentId))).at(-1);
  const event = newEvent(personalDataErased({ keys: [key] }), String(before?.time));
  return store.append(streamOf(paymentId), before ?? 'none', [event]);
};

beforeAll(async () => {
  store = await openSqliteEventStore({ file: join(folder.path, 'events.sqlite'), newThread });
  await appendErased('pay_first', first);
  const ids = Array.from({ length: 100 }, (_, n) => `pay_${n}`);
  await appendLives(store, ids);
  await appendErased('pay_second', second);
});
afterAll(async () => {
  await store.close();
  folder.remove();
});

/** From before every erasure. */
const oldKeys = async () => {
  const keys = memoryKeys();
  await keys.saveCheckpoint('');
  return keys;
};

test('they are found in the thread of the log, and one that fails is tried again from where it was', async () => {
  const keys = await oldKeys();
  const erase: typeof keys.erase = async (ids) => {
    await keys.erase(ids);
    keys.faults.away = true;
  };
  const readAll = () => Promise.reject(new Error('read on the event loop'));
  const notHere = { ...store, stored: { ...store.stored, readAll } };
  const { repeat } = createErasures(notHere, { ...keys, erase });
  await expect(repeat(signal)).rejects.toThrow('the store of keys is away');
  expect([...keys.keys]).toEqual([[first, 'erased']]);
  const reached = Number(await keys.checkpoint());
  expect(reached).toBeGreaterThan(7);
  expect(reached).toBeLessThan(Number(store.lastPosition()));
  keys.keys.clear();
  keys.faults.away = false;
  await repeat(signal);
  expect([...keys.keys]).toEqual([[second, 'erased']]);
  expect(await keys.checkpoint()).toBe(store.lastPosition());
});

test('what cannot be read is not passed over', async () => {
  const { scan: _, ...stored } = store.stored;
  const readAll: typeof stored.readAll = async (after, ...range) => {
    if (Number(after) >= 250) throw new StoreFileUnusable('damaged', true);
    return stored.readAll(after, ...range);
  };
  const keys = await oldKeys();
  await createErasures({ ...store, stored: { ...stored, readAll } }, keys).repeat(signal);
  expect([await keys.checkpoint(), [...keys.keys.keys()]]).toEqual(['250', [first]]);
  await createErasures(store, keys).repeat(signal);
  expect([...keys.keys.keys()]).toEqual([first, second]);
});

test('a line that was cut short spoils no other one; a file or a log of another kind is refused', async () => {
  const file = join(folder.path, 'ledger');
  writeFileSync(file, '\n{"position":"1');
  const open = () => openErasureLedger(file, store);
  await expect(open()).rejects.toThrow(`ERASURE_LEDGER: ${file} holds no erasure`);
  writeFileSync(file, '');
  const { repeat, carryOut } = createErasures(store, await oldKeys(), await open());
  await repeat(signal);
  appendFileSync(file, '\n{"position":"1');
  const events = await appendErased('pay_third', '3'.repeat(32));
  for (const _ of [1, 2]) await Promise.all([carryOut(events), carryOut(events)]);
  await open();
  const written = readFileSync(file, 'utf8');
  const paymentIds = [...written.matchAll(/"paymentId":"(\w+)"/g)].map(([, id]) => id);
  expect(paymentIds).toEqual(['pay_first', 'pay_second', 'pay_third']);
  // As where a log that was put back has grown past the place since.
  writeFileSync(file, written.replaceAll(/"hash":"\w/g, '"hash":"x'));
  await expect(open()).rejects.toThrow(`payments erase --reapply ${file}`);
});
