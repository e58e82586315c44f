/** The place of the key that seals a log, and its public part. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KeyPlace, SEALING_KEY_NAME } from '../projector/seals/key.ts';
import { publicKeyOf } from '../shared/event-store/seals.ts';
import { CommandFailed } from './command-failed.ts';
import { readSettings } from './settings.ts';

/** The file of SEALING_KEY_FILE, else the one in a data folder. Throws CommandFailed. */
export const keyPlaceOf = (folder: string): KeyPlace => {
  const { seals, eventStoreDbUrl } = readSettings();
  const keepsHead = seals.keyFile !== undefined || eventStoreDbUrl !== undefined;
  return { keyFile: seals.keyFile ?? join(folder, SEALING_KEY_NAME), keepsHead };
};

/** From a PEM file with the public or the private key. Throws CommandFailed. */
export const readPublicKey = (file: string): KeyObject => {
  if (!existsSync(file)) throw new CommandFailed(`${file} does not exist`);
  try {
    const key = createPublicKey(readFileSync(file, 'utf8'));
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // The parser's message may quote the file.
  }
  throw new CommandFailed(
    `${file} holds no Ed25519 key in PEM that can be read; next: payments keys show`,
  );
};

/** Throws CommandFailed as readPublicKey. */
export const publicKeyIn = (file: string | undefined): string | undefined =>
  file === undefined ? undefined : publicKeyOf(readPublicKey(file));
