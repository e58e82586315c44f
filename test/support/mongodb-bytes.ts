/** Documents in MongoDB of which one bit is changed past the service, and put back. */
import { BSON, type Document, MongoClient } from 'mongodb';
import type { Random } from './random.ts';

type Stored = { collection: string; document: Document };
/** What was changed: the collection without the name of its form, the field, and the document as it was. */
export type Change = { collection: string; field: string; document: Document };

const FORM = /^read_models_\d+_(\d+_)?/;

/** The document with a bit changed in the bytes of a field, its type and name too; undefined if that is no BSON. */
const changed = ({ document }: Stored, random: Random): [string, Document] | undefined => {
  const bytes = Buffer.from(BSON.serialize(document));
  const fields = Object.entries(document);
  const sizeOf = (some: typeof fields): number =>
    BSON.serialize(Object.fromEntries(some)).length - BSON.serialize({}).length;
  const at = random.between(0, fields.length - 1);
  const begin = Int32Array.BYTES_PER_ELEMENT + sizeOf(fields.slice(0, at));
  const place = random.between(begin, begin + sizeOf(fields.slice(at, at + 1)) - 1);
  bytes[place] = (bytes[place] as number) ^ (1 << random.between(0, 7));
  try {
    return [fields[at]?.[0] ?? '', BSON.deserialize(bytes)];
  } catch {
    return undefined;
  }
};

/** All documents of a database, as they are now. */
export const openBytes = async (url: string, random: Random) => {
  const client = await new MongoClient(url).connect();
  const db = client.db();
  const stored: Stored[] = [];
  for (const { name } of await db.listCollections({}, { nameOnly: true }).toArray())
    for (const document of await db.collection(name).find().toArray())
      stored.push({ collection: name, document });

  const putBack = async (name: string): Promise<void> => {
    const own = stored.filter(({ collection }) => collection === name);
    await db.collection(name).deleteMany({});
    await db.collection(name).insertMany(own.map(({ document }) => document));
  };
  const tryOnce = async (look: (change: Change) => Promise<void>): Promise<boolean> => {
    const one = stored[random.between(0, stored.length - 1)] as Stored;
    const { collection, document } = one;
    const [field, other] = changed(one, random) ?? [];
    if (field === undefined || other === undefined) return false;
    await db.collection(collection).deleteOne({ _id: document._id });
    try {
      await db.collection(collection).insertOne(other);
    } catch {
      // The server takes no such document.
      await putBack(collection);
      return false;
    }
    await look({ collection: collection.replace(FORM, ''), field, document });
    await putBack(collection);
    return true;
  };

  return {
    /** Changes one bit, looks, and puts it back. */
    change: async (look: (change: Change) => Promise<void>): Promise<void> => {
      while (!(await tryOnce(look)));
    },
    close: () => client.close(),
  };
};
