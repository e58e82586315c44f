/** Opens a document of the projector where its settings say: a file of the data folder, or MongoDB. */
import type { Config } from '../../shared/runtime/config.ts';
import { fileDocument } from './file.ts';
import type { KeyDocument } from './port.ts';

/** Each document, by its name; its file in the data folder is `<name>.json`. */
export const KEY_DOCUMENTS = ['relay-checkpoint', 'log-verification'] as const;

type OpenKeyDocument = {
  config: Pick<Config, 'mongoUrl'>;
  /** The path of a file in the data folder; not called where the read models are in MongoDB. */
  fileOf(name: string): string;
};

/** The document under a name. A MongoDB out of reach is met at its first use. */
export const openKeyDocument = async (
  { config, fileOf }: OpenKeyDocument,
  name: (typeof KEY_DOCUMENTS)[number],
): Promise<KeyDocument> => {
  if (config.mongoUrl === undefined) return fileDocument(fileOf(`${name}.json`));
  const { mongoKeyDocument } = await import('../../shared/read-models/mongodb/key-document.ts');
  return mongoKeyDocument({ url: config.mongoUrl, name });
};
