/** Texts under names in MongoDB, each changed only by a writer that saw its last change. */
import type { Collection } from 'mongodb';
import { orUnchanged } from './client.ts';
import { openMongoDatabase, quick } from './database.ts';

/** `_id` is the name, `version` counts the changes. */
export type VersionedText = { _id: string; version: number; text: string };

export const loadText = async (texts: Collection<VersionedText>, name: string) => {
  const found = await texts.findOne({ _id: name }, quick);
  return found === null ? undefined : { version: found.version, text: found.text };
};

/**
 * Replaces the text and the fields stored with it, and raises its version by one. False, and nothing changed,
 * at another stored version; 0 is a text that does not exist yet. Throws what the client throws.
 */
export const saveText = async (
  texts: Collection<VersionedText>,
  name: string,
  text: string,
  version: number,
  fields: object = {},
): Promise<boolean> => {
  const change = { $set: { ...fields, version: version + 1, text } };
  const { matchedCount, upsertedCount } = await texts
    .updateOne({ _id: name, version }, change, { upsert: version === 0 })
    .catch(orUnchanged);
  return matchedCount + upsertedCount > 0;
};

/** Apart from the read models' collections: dropping those keeps this one. */
const KEPT = 'kept';

/** See KeyDocument (shared/read-models/key-document.ts). Connects when it is first used. */
export const mongoKeyDocument = ({ url, name }: { url: string; name: string }) => {
  const { db, read, writeOnce, close } = openMongoDatabase(url);
  const kept = db.collection<VersionedText>(KEPT);
  return {
    load: () => read(() => loadText(kept, name)),
    save: (text: string, expectedVersion: number) =>
      writeOnce(() => saveText(kept, name, text, expectedVersion)),
    close,
  };
};
