/** One text under a name in MongoDB, such as the relay's checkpoint. */
import { openDatabase } from './database.ts';
import { loadText, saveText, type VersionedText } from './versioned-text.ts';

/** Not one of the read models' collections: dropping those keeps this one. */
const KEPT = 'kept';

/** See KeyDocument (projector/key-document/port.ts). Connects when it is first used. */
export const mongoKeyDocument = ({ url, name }: { url: string; name: string }) => {
  const { db, read, writeOnce, close } = openDatabase(url);
  const kept = db.collection<VersionedText>(KEPT);
  return {
    load: () => read(() => loadText(kept, name)),
    save: (text: string, expectedVersion: number) =>
      writeOnce(() => saveText(kept, name, text, expectedVersion)),
    close,
  };
};
