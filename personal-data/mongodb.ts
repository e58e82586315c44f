/** Keys in MongoDB, apart from the read models: dropping those keeps these. */
import { isDuplicate } from '../shared/read-models/mongodb/client.ts';
import { openMongoDatabase, quick } from '../shared/read-models/mongodb/database.ts';
import { personalKeyOf } from './box.ts';
import {
  foundKeyOf,
  type KeyRow,
  type MasterKeys,
  newRow,
  REWRAP_ROWS,
  rewrapRows,
} from './master-key.ts';
import type { StoredKeys } from './port.ts';

/** `wrapped` is base64url. */
type StoredKey = {
  _id: string;
  kek: string;
  wrapped: string | null;
  madeAt: string;
  erasedAt: string | null;
};

const rowOf = ({ _id: id, kek, wrapped }: StoredKey): KeyRow => ({
  id,
  kek,
  wrapped: wrapped === null ? null : Buffer.from(wrapped, 'base64url'),
});

/** Connects when it is first used. Throws ReadModelsUnavailable. */
export const mongoKeys = (url: string, masterKeys: MasterKeys): StoredKeys => {
  const { db, read, write, writeOnce, close } = openMongoDatabase(url);
  const keys = db.collection<StoredKey>('personal_keys');
  const checkpoints = db.collection<{ _id: string; text: string }>('personal_keys_checkpoint');
  const first = (filter: object, order: 1 | -1, limit: number) =>
    read(() => keys.find(filter, quick).sort({ _id: order }).limit(limit).toArray());
  const find = async (ids: readonly string[]) => {
    const stored = await read(() => keys.find({ _id: { $in: [...ids] } }, quick).toArray());
    return new Map(stored.map((one) => [one._id, rowOf(one)]));
  };
  const unerased = async (ids: readonly string[]): Promise<string[]> => {
    const rows = await find(ids);
    return ids.filter((id) => rows.get(id)?.wrapped !== null);
  };
  return {
    make: async (count) => {
      const made = Array.from({ length: count }, () => newRow(masterKeys));
      const madeAt = new Date().toISOString();
      const rows = made.map(({ id: _id, kek, wrapped }) => {
        return { _id, kek, wrapped: wrapped.toString('base64url'), madeAt, erasedAt: null };
      });
      await writeOnce(() => keys.insertMany(rows, { ordered: false }));
      return made.map(personalKeyOf);
    },
    read: async (ids) => {
      const rows = await find(ids);
      return new Map(ids.map((id) => [id, foundKeyOf(masterKeys, rows.get(id))]));
    },
    erase: async (ids) => {
      const at = new Date().toISOString();
      const $set = { wrapped: null, erasedAt: at };
      const update = { $set, $setOnInsert: { kek: '', madeAt: at } };
      for (let left = await unerased(ids); left.length > 0; left = await unerased(left)) {
        const writes = left.map((_id) => ({
          updateOne: { filter: { _id, erasedAt: null }, update, upsert: true },
        }));
        await write(() => keys.bulkWrite(writes, { ordered: false })).catch((error: unknown) => {
          // The insert of one that is erased meanwhile meets its tombstone; a server may leave out the others.
          if (!isDuplicate(error)) throw error;
        });
      }
    },
    rewrap: async (after) => {
      const page = await first({ _id: { $gt: after } }, 1, REWRAP_ROWS);
      const { rows, done } = rewrapRows(masterKeys, page.map(rowOf));
      const writes = rows.map(({ id: _id, kek, wrapped }) => ({
        updateOne: {
          // One that was erased meanwhile stays erased.
          filter: { _id, erasedAt: null },
          update: { $set: { kek, wrapped: wrapped.toString('base64url') } },
        },
      }));
      if (writes.length > 0) await write(() => keys.bulkWrite(writes, { ordered: false }));
      return done;
    },
    ends: async () => {
      const live = { erasedAt: null };
      const found = await Promise.all([first(live, 1, 1), first(live, -1, 1)]);
      return found.flat().map(({ kek }) => kek);
    },
    checkpoint: async () => (await read(() => checkpoints.findOne({ _id: 'erased' }, quick)))?.text,
    saveCheckpoint: async (text) => {
      const change = { $set: { text } };
      await write(() => checkpoints.updateOne({ _id: 'erased' }, change, { upsert: true }));
    },
    close,
  };
};
