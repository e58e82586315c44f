/** One text under a name in MongoDB, such as the relay's checkpoint. */
import { clientOf, connected } from './client.ts';
import { loadText, saveText, type VersionedText } from './versioned-text.ts';

/** Not one of the read models' collections: dropping those keeps this one. */
const KEPT = 'kept';

/** See KeyDocument (projector/key-document/port.ts). Connects when it is first used. */
export const mongoKeyDocument = ({ url, name }: { url: string; name: string }) => {
  const client = clientOf(url);
  const kept = client.db().collection<VersionedText>(KEPT);
  return {
    load: () => connected(client).then(() => loadText(kept, name)),
    save: (text: string, expectedVersion: number) =>
      connected(client).then(() => saveText(kept, name, text, expectedVersion)),
    close: () => client.close(),
  };
};
