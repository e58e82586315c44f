/**
 * The key that seals the log, in a file of mode 0600, and the last sealed head in a file beside it.
 * Both are of use only where whoever can write the log cannot write them: `SEALING_KEY_FILE` names a
 * file on another volume; without it both lie in the data folder, with a warning.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import type { SealedHead } from '../../shared/event-store/seals.ts';
import { addPrivateFile, replacePrivateFile } from '../../shared/runtime/private-files.ts';
import { LogMisfit } from '../errors.ts';

/** The name of the key in the data folder, where no setting names another file. */
export const SEALING_KEY_NAME = 'sealing-key.pem';

const newKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();

const readOrMake = async (file: string): Promise<string> => {
  try {
    if (!existsSync(file)) await addPrivateFile(file, newKey());
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    throw new LogMisfit(
      `SEALING_KEY_FILE: ${file} cannot be read or made (${code}); give its folder to the service's user`,
    );
  }
};

/** Reads the key, or makes one where there is no file yet. Throws LogMisfit, one line for the operator. */
export const readSealingKey = async (file: string): Promise<KeyObject> => {
  const text = await readOrMake(file);
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // The line below is for an operator: the parser's message may quote the file.
  }
  throw new LogMisfit(
    `SEALING_KEY_FILE: ${file} holds no Ed25519 key in PEM; put its last good copy back, because the seals of the log can be checked with that key alone`,
  );
};

/** The path of the file that keeps the last sealed head. */
export const headFileOf = (keyFile: string): string => `${keyFile}.head`;

const head = z.object({ log: z.string(), position: z.string(), logHash: z.string() });

/** The last sealed head; undefined where none was kept. Throws LogMisfit for a damaged file. */
export const readSealedHead = (keyFile: string): SealedHead | undefined => {
  const file = headFileOf(keyFile);
  if (!existsSync(file)) return undefined;
  try {
    return head.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    throw new LogMisfit(
      `${file} is damaged; put its last good copy back, or remove it after payments verify`,
    );
  }
};

/** Keeps the last sealed head. Throws what the file system throws. */
export const keepSealedHead = (
  keyFile: string,
  { log, position, logHash }: SealedHead,
): Promise<void> =>
  replacePrivateFile(headFileOf(keyFile), `${JSON.stringify({ log, position, logHash })}\n`);
