/** The sealing key and the last heads of the log: proof only on another volume than the log's. */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync, lstatSync, readFileSync, statSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import type { Config } from '../../shared/runtime/config.ts';
import { orElse } from '../../shared/runtime/error-text.ts';
import {
  addPrivateFile,
  replacePrivateFile,
  syncPath,
} from '../../shared/runtime/private-files.ts';
import { LogMisfit } from '../../shared/subscription/errors.ts';
import { type HeadFile, publicKeyOf } from './seals.ts';

/** A file of the seals; `message` begins with the setting that names another one. */
export class SealFileRefused extends LogMisfit {
  override name = 'SealFileRefused';
}

export const newSealingKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();

export const SEALING_KEY_NAME = 'sealing-key.pem';

const readOrMake = async (file: string): Promise<string> => {
  try {
    if (!existsSync(file)) await addPrivateFile(file, newSealingKey());
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    throw new SealFileRefused(
      `SEALING_KEY_FILE: ${file} cannot be read or made (${code}); give its folder to the service's user`,
    );
  }
};

const parsed = (file: string, text: string): KeyObject => {
  // The parser's message may quote the file.
  const key = orElse(undefined, () => createPrivateKey(text));
  if (key?.asymmetricKeyType === 'ed25519') return key;
  throw new SealFileRefused(
    `SEALING_KEY_FILE: ${file} holds no Ed25519 key in PEM; put its last good copy back, because the log's newest seals can be made and checked with that key alone`,
  );
};

/** Made where there is no file yet. Throws SealFileRefused. */
export const readSealingKey = async (file: string): Promise<KeyObject> =>
  parsed(file, await readOrMake(file));

/** The file of the next key, until the log says that it follows. */
export const nextFileOf = (keyFile: string): string => `${keyFile}.next`;

export const takeNextKey = async (keyFile: string): Promise<void> => {
  await rename(nextFileOf(keyFile), keyFile);
  await syncPath(dirname(keyFile));
};

/** A change of the key was broken off after it had been recorded. Throws SealFileRefused. */
export const isNextKey = (keyFile: string, lastKey: string | undefined): boolean => {
  const next = nextFileOf(keyFile);
  if (lastKey === undefined || !existsSync(next)) return false;
  return publicKeyOf(parsed(next, readFileSync(next, 'utf8'))) === lastKey;
};

/** Beside the log a kept head would prove nothing, and make a copy that was put back look cut. */
export type KeyPlace = { keyFile: string; headFile?: string | undefined; keepsHead: boolean };

/** `keyFile` is that of the settings or, without one, of the data folder. */
export const keyPlaceOf = (
  { seals }: Pick<Config, 'seals'>,
  isServer: boolean,
  keyFile: string,
): KeyPlace => {
  const { headFile } = seals;
  const keepsHead = isServer || seals.keyFile !== undefined || headFile !== undefined;
  return { keyFile, headFile, keepsHead };
};

type HeadPlace = Pick<KeyPlace, 'keyFile' | 'headFile'>;

export const headFileOf = ({ keyFile, headFile }: HeadPlace): string =>
  headFile ?? `${keyFile}.head`;

const head = z.object({ log: z.string(), position: z.string(), logHash: z.string() });
const last = head.extend({ signature: z.string() });
/** At the top, where earlier versions have the sealed head alone. */
const headFile = z.union([
  head.extend({ last: last.optional() }).transform(({ last, ...sealed }) => ({ sealed, last })),
  z.object({ last }),
]);

const refuseHead = (file: string, why: string): never => {
  throw new SealFileRefused(
    `SEALED_HEAD_FILE: ${file} ${why} name a plain file of its own, on a volume that the log is not on`,
  );
};

/** False where there is none. Throws SealFileRefused for what must be neither read, as a pipe, nor replaced. */
const hasHead = (file: string, keyFile: string): boolean => {
  // A folder that is missing or closed shows when the head is written.
  const found = orElse(undefined, () => lstatSync(file));
  if (found === undefined) return false;
  if (!found.isFile()) refuseHead(file, 'is a link, a folder, a pipe or a device;');
  const key = statSync(keyFile, { throwIfNoEntry: false });
  if (key?.ino === found.ino && key.dev === found.dev)
    refuseHead(file, 'is the sealing key itself;');
  return true;
};

export const readHeadFile = (place: HeadPlace): HeadFile | undefined => {
  const file = headFileOf(place);
  if (!hasHead(file, place.keyFile)) return undefined;
  try {
    return headFile.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    const damaged = 'put its last good copy back, or move it away after payments verify';
    return refuseHead(file, `holds no head of a log; ${damaged}; where it is something else,`);
  }
};

export const writeHeadFile = async (place: HeadPlace, { sealed, last }: HeadFile) => {
  const file = headFileOf(place);
  hasHead(file, place.keyFile);
  await replacePrivateFile(file, `${JSON.stringify({ ...sealed, last })}\n`);
};
