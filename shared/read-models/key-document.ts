import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { Config } from '../runtime/config.ts';
import { replacePrivateFile } from '../runtime/private-files.ts';

/**
 * A small record outside the log, such as the relay's checkpoint: one text under a fixed name, with a version.
 * Only a writer that saw the last change changes it, whole, and raises the version; 0: it does not exist yet.
 */
export type KeyDocument = {
  /** The last text saved, durable. Throws when the engine is out of reach. */
  load(): Promise<{ version: number; text: string } | undefined>;
  /** False, and nothing changed, for another version. Throws when it is not known whether it was saved. */
  save(text: string, expectedVersion: number): Promise<boolean>;
  close(): Promise<void>;
};

const stored = z.object({ version: z.int().min(1), text: z.string() });

const readStored = async (file: string): Promise<z.infer<typeof stored> | undefined> => {
  const content = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  if (content === undefined) return undefined;
  try {
    return stored.parse(JSON.parse(content));
  } catch {
    throw new Error(`${file} is damaged; put back its last good copy`);
  }
};

/** Calls must not overlap. After any crash the file has the old text or the new one. */
export const fileDocument = (file: string): KeyDocument => ({
  load: () => readStored(file),
  save: async (text, expectedVersion) => {
    const version = (await readStored(file))?.version ?? 0;
    if (version !== expectedVersion) return false;
    await replacePrivateFile(file, JSON.stringify({ version: version + 1, text }));
    return true;
  },
  close: async () => undefined,
});

/** The file of each in the data folder is `<name>.json`. */
export const KEY_DOCUMENTS = [
  'relay-checkpoint',
  'log-verification',
  'reconciliation',
  'reconciliation-turn',
] as const;

type OpenKeyDocument = {
  config: Pick<Config, 'mongoUrl'>;
  fileOf(name: string): string;
};

/** A MongoDB out of reach shows at the first use. */
export const openKeyDocument = async (
  { config, fileOf }: OpenKeyDocument,
  name: (typeof KEY_DOCUMENTS)[number],
): Promise<KeyDocument> => {
  if (config.mongoUrl === undefined) return fileDocument(fileOf(`${name}.json`));
  const { mongoKeyDocument } = await import('./mongodb/key-document.ts');
  return mongoKeyDocument({ url: config.mongoUrl, name });
};
