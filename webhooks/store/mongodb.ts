import { isDuplicate } from '../../shared/read-models/mongodb/client.ts';
import { openMongoDatabase, quick } from '../../shared/read-models/mongodb/database.ts';
import {
  loadText,
  saveText,
  type VersionedText,
} from '../../shared/read-models/mongodb/key-document.ts';
import { ATTEMPTS_MAX, type DeliveryStore } from './port.ts';

/** Apart from the read models' collections: dropping those keeps these. */
const ROWS = 'webhook_deliveries';
const ATTEMPTS = 'webhook_attempts';
/** More than a save has attempts: an attempt's number is its row's version times this, and its place. */
const PER_SAVE = 1_000;
const NUMBER_DIGITS = 15;
/** Old attempts are looked for once in so many saves. */
const TRIM_EVERY = 64;

type StoredAttempt = { _id: string; eventId: string; body: string };
/** A row keeps the attempts that were saved with it: one document changes as a whole, two do not. */
type StoredRow = VersionedText & { attempts?: StoredAttempt[] };

const idOf = (endpointId: string, number: number): string =>
  `${endpointId}/${String(number).padStart(NUMBER_DIGITS, '0')}`;
/** Ids of attempts begin with the endpoint's and a slash, which `0` follows. */
const allOf = (endpointId: string, before?: number) => ({
  $gt: `${endpointId}/`,
  $lt: before === undefined ? `${endpointId}0` : idOf(endpointId, before),
});

/** Connects when it is first used. */
export const mongoDeliveries = (url: string): DeliveryStore => {
  const { db, read, write, writeOnce, close } = openMongoDatabase(url);
  const rows = db.collection<StoredRow>(ROWS);
  const kept = db.collection<StoredAttempt>(ATTEMPTS);
  const keep = async (attempts: StoredAttempt[]): Promise<void> => {
    if (attempts.length === 0) return;
    await write(() => kept.insertMany(attempts, { ordered: false })).catch((error: unknown) => {
      if (!isDuplicate(error)) throw error;
    });
  };

  const trim = async (endpointId: string): Promise<void> => {
    const _id = allOf(endpointId);
    const [oldest] = await read(() =>
      kept.find({ _id }, quick).sort({ _id: -1 }).skip(ATTEMPTS_MAX).limit(1).toArray(),
    );
    if (oldest === undefined) return;
    await write(() => kept.deleteMany({ _id: { ..._id, $lte: oldest._id } }));
  };

  return {
    load: (endpointId) => read(() => loadText(rows, endpointId)),
    save: async (endpointId, text, expectedVersion, given) => {
      const before = await read(() => rows.findOne({ _id: endpointId }, quick));
      // Those of a save that failed right behind its row are stored in the row alone.
      await keep(before?.attempts ?? []);
      const version = expectedVersion + 1;
      const attempts = given.map((attempt, at) => ({
        _id: idOf(endpointId, version * PER_SAVE + at),
        eventId: attempt.eventId,
        body: JSON.stringify(attempt),
      }));
      const isSaved = await writeOnce(() =>
        saveText(rows, endpointId, text, expectedVersion, { attempts }),
      );
      if (!isSaved) return false;
      // The row is saved: what fails from here on is done before the next save, here or elsewhere.
      await keep(attempts).catch(() => undefined);
      if (expectedVersion % TRIM_EVERY === 0) await trim(endpointId).catch(() => undefined);
      return true;
    },
    attempts: async (endpointId, { limit, eventId, before }) => {
      const filter = { _id: allOf(endpointId, before), ...(eventId !== undefined && { eventId }) };
      const found = await read(() =>
        kept.find(filter, quick).sort({ _id: -1 }).limit(limit).toArray(),
      );
      return found.map(({ _id, body }) => ({
        number: Number(_id.slice(-NUMBER_DIGITS)),
        attempt: JSON.parse(body),
      }));
    },
    remove: async (endpointId) => {
      await write(() => rows.deleteOne({ _id: endpointId }));
      await write(() => kept.deleteMany({ _id: allOf(endpointId) }));
    },
    close,
  };
};
