/** One text under a name in MongoDB: the relay's checkpoint. */
import { clientOf, isDuplicate } from './client.ts';
import { quick } from './database.ts';

/** Not one of the read models' collections: dropping those keeps this one. */
const KEPT = 'kept';

/**
 * One text under a name, changed only by a writer that saw its last change: see KeyDocument
 * (projector/relay/checkpoint/port.ts). Connects when it is first used.
 */
export const mongoKeyDocument = ({ url, name }: { url: string; name: string }) => {
  const client = clientOf(url);
  const kept = client.db().collection<{ _id: string; version: number; text: string }>(KEPT);
  return {
    load: async (): Promise<{ version: number; text: string } | undefined> => {
      const found = await kept.findOne({ _id: name }, quick);
      return found === null ? undefined : { version: found.version, text: found.text };
    },
    save: async (content: string, expectedVersion: number): Promise<boolean> => {
      const change = { $set: { version: expectedVersion + 1, text: content } };
      const upsert = expectedVersion === 0;
      try {
        const filter = { _id: name, version: expectedVersion };
        const { matchedCount, upsertedCount } = await kept.updateOne(filter, change, { upsert });
        return matchedCount + upsertedCount > 0;
      } catch (error) {
        if (isDuplicate(error)) return false;
        throw error;
      }
    },
    close: () => client.close(),
  };
};
