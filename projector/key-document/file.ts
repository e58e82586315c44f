/**
 * A key document as a file of the data folder, which one service locks at a time. The new text is written
 * beside the file, synced and renamed over it: after any crash the file is the old one or the new one.
 */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { replacePrivateFile } from '../../shared/runtime/private-files.ts';
import type { KeyDocument } from './port.ts';

const stored = z.object({ version: z.int().min(1), text: z.string() });

const isMissing = (error: unknown): boolean => Object(error).code === 'ENOENT';

const readStored = async (file: string): Promise<z.infer<typeof stored> | undefined> => {
  let content: string;
  try {
    content = await readFile(file, 'utf8');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  try {
    return stored.parse(JSON.parse(content));
  } catch {
    throw new Error(`${file} is damaged; put back its last good copy`);
  }
};

/** A document in a file with mode 0600. One process at a time; calls must not overlap. */
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
