/** The promises of personal-data/port.ts, asked of one driver. */
import type { KeyObject } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openBox, sealBox } from '../../personal-data/box.ts';
import { openKeyStore, PersonalDataRefused } from '../../personal-data/open.ts';
import type { KeyStore, PersonalKey } from '../../personal-data/port.ts';
import { type Driver, describeDriver } from '../support/describe-driver.ts';

/** As a row is stored, without its id. */
type StoredRow = { kek: string; wrapped: unknown; erasedAt?: string | null };
export type KeysPlace = {
  mongoUrl?: string;
  fileOf(name: string): string;
  /** Another writer than the service. */
  rows: {
    get(id: string): Promise<StoredRow>;
    set(id: string, row: StoredRow): Promise<void>;
    add(id: string, row: StoredRow): Promise<void>;
  };
  drop(): Promise<void>;
};
type KeyStoreDriver = Driver & { place(): KeysPlace };

export const KEK = 'the master key of these tests, long enough';
export const NEXT_KEK = 'the next master key of these tests, as long';
const WAIT_MS = 10_000;
const place = { stream: 'payment-pay_1', eventType: 'PaymentCreated', field: 'personal' };

export const openKeys = (
  at: Pick<KeysPlace, 'fileOf' | 'mongoUrl'>,
  kek = KEK,
  previousKek?: string,
): Promise<KeyStore> =>
  openKeyStore({
    config: { mongoUrl: at.mongoUrl, personalData: { kek, previousKek } },
    fileOf: at.fileOf,
    takes: false,
  });

export const takeMany = (keys: KeyStore, count: number): Promise<PersonalKey[]> =>
  Promise.all(Array.from({ length: count }, () => keys.take(WAIT_MS)));

export const rewrapAll = async (keys: KeyStore) => {
  const total = { pages: 0, rewrapped: 0, unreadable: 0 };
  for (let after: string | undefined = ''; after !== undefined; total.pages += 1) {
    const done = await keys.rewrap(after);
    total.rewrapped += done.rewrapped;
    total.unreadable += done.unreadable;
    after = done.last;
  }
  return total;
};

const readOne = async (keys: KeyStore, id: string) => (await keys.read([id])).get(id);

export const describeKeyStore = (driver: KeyStoreDriver): void =>
  describeDriver('key store', driver, () => {
    let at: KeysPlace;
    let keys: KeyStore;
    let opened: KeyStore[];
    const open = async (...keks: [kek?: string, previousKek?: string]): Promise<KeyStore> => {
      const store = await openKeys(at, ...keks);
      opened.push(store);
      return store;
    };
    beforeEach(async () => {
      at = driver.place();
      opened = [];
      keys = await open();
    });
    afterEach(async () => {
      for (const store of opened) await store.close();
      await at.drop();
    });

    test('a key is stored before it is given: another process opens its box', async () => {
      const own = await keys.take(WAIT_MS);
      const sealed = sealBox(own, place, { holderName: 'Ada' });
      const found = await readOne(await open(), own.id);
      expect(openBox(found as KeyObject, place, sealed)).toEqual({ holderName: 'Ada' });
    });

    test('a key, an erased one and one that was never stored are told apart, in one read', async () => {
      const [live, gone] = await takeMany(keys, 2);
      await keys.erase([String(gone?.id)]);
      const ids = [String(live?.id), String(gone?.id), 'never stored'];
      const found = await (await open()).read(ids);
      expect([...found.keys()]).toEqual(ids);
      expect(live?.key.equals(found.get(ids[0] ?? '') as KeyObject)).toBe(true);
      expect([...found.values()].slice(1)).toEqual(['erased', 'missing']);
      expect(await keys.read([])).toEqual(new Map());
      expect(await at.rows.get(`${gone?.id}`)).toMatchObject({ erasedAt: expect.any(String) });
    });

    test('erasing may be repeated, by two at once, and for a key that is not stored', async () => {
      const ids = (await takeMany(keys, 3)).map(({ id }) => id);
      const other = await open();
      await Promise.all([keys.erase(ids), other.erase([...ids, 'never stored'])]);
      await keys.erase([...ids, 'never stored']);
      await keys.erase([]);
      const found = await other.read([...ids, 'never stored']);
      expect([...found.values()]).toEqual(['erased', 'erased', 'erased', 'erased']);
    });

    test('no insert overwrites the tombstone of a key, also not with its old row', async () => {
      const { id } = await keys.take(WAIT_MS);
      const before = await at.rows.get(id);
      await keys.erase([id]);
      await expect(at.rows.add(id, before)).rejects.toThrow();
      expect(await readOne(keys, id)).toBe('erased');
    });

    test('no key is given twice in 10,000, over two processes', async () => {
      const other = await open();
      const ids = new Set<string>();
      for (let times = 0; times < 25; times += 1) {
        const taken = await Promise.all([takeMany(keys, 200), takeMany(other, 200)]);
        for (const { id } of taken.flat()) ids.add(id);
      }
      expect(ids.size).toBe(10_000);
    }, 60_000);

    test('the checkpoint is the text last saved', async () => {
      expect(await keys.checkpoint()).toBeUndefined();
      await keys.saveCheckpoint('{"position":"7"}');
      await keys.saveCheckpoint('{"position":"8"}');
      expect(await (await open()).checkpoint()).toBe('{"position":"8"}');
    });

    test('a row of another key, or one that was changed, is unreadable, and no other is', async () => {
      const [one, other, third] = (await takeMany(keys, 3)).map(({ id }) => id);
      const [first, second] = [await at.rows.get(`${one}`), await at.rows.get(`${other}`)];
      await at.rows.set(`${one}`, second);
      await at.rows.set(`${other}`, { ...first, kek: 'a strange one' });
      const found = await keys.read([`${one}`, `${other}`, `${third}`]);
      expect([...found.values()]).toEqual(['unreadable', 'unreadable', expect.any(Object)]);
    });

    test('a rotation rewraps every key in pages, and no box changes', async () => {
      const before = await takeMany(keys, 200);
      const sealed = sealBox(before[0] as PersonalKey, place, { holderName: 'Ada' });
      await keys.erase([`${before[1]?.id}`]);
      const rotating = await open(NEXT_KEK, KEK);
      const during = await rotating.take(WAIT_MS);
      const ids = [before[0], before[1], before[2], during].map((one) => `${one?.id}`);
      const isKept = async (store: KeyStore) =>
        expect([...(await store.read(ids)).values()].map((one) => typeof one)).toEqual([
          ...['object', 'string', 'object', 'object'],
        ]);
      await isKept(rotating);
      const { pages, rewrapped, unreadable } = await rewrapAll(rotating);
      expect([pages > 1, rewrapped > 198, unreadable]).toEqual([true, true, 0]);
      expect(await rewrapAll(rotating)).toEqual({ pages, rewrapped: 0, unreadable: 0 });
      const rotated = await open(NEXT_KEK);
      await isKept(rotated);
      const key = (await readOne(rotated, sealed.key)) as KeyObject;
      expect(openBox(key, place, sealed)).toEqual({ holderName: 'Ada' });
      expect(await readOne(keys, sealed.key)).toBe('unreadable');
    });

    test('a start with another master key is refused, in a line that names the setting', async () => {
      await keys.take(WAIT_MS);
      const refused = open(NEXT_KEK);
      await expect(refused).rejects.toThrow(PersonalDataRefused);
      await expect(refused).rejects.toThrow(/^PERSONAL_DATA_KEK: [^\n]+$/);
      await (await open(NEXT_KEK, KEK)).rewrap('');
      await expect(open()).rejects.toThrow(PersonalDataRefused);
    });

    test('of a rotation that was broken off, neither master key is enough', async () => {
      await keys.take(WAIT_MS);
      await (await open(NEXT_KEK, KEK)).rewrap('');
      for (const kek of [KEK, NEXT_KEK])
        await expect(open(kek)).rejects.toThrow(PersonalDataRefused);
      expect(await rewrapAll(await open(NEXT_KEK, KEK))).toMatchObject({ unreadable: 0 });
      await open(NEXT_KEK);
    });
  });
