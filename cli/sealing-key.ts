/** Where the key lies that seals a log, and its public part, for the verbs that need it. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Option } from 'commander';
import { type KeyPlace, SEALING_KEY_NAME } from '../projector/seals/key.ts';
import { publicKeyOf } from '../shared/event-store/seals.ts';
import { CommandFailed } from './command-failed.ts';
import { readSettings } from './settings.ts';

/** The key's place: the file of SEALING_KEY_FILE, else the one in a data folder. Throws CommandFailed. */
export const keyPlaceOf = (folder: string): KeyPlace => {
  const { seals, eventStoreDbUrl } = readSettings();
  const keepsHead = seals.keyFile !== undefined || eventStoreDbUrl !== undefined;
  return { keyFile: seals.keyFile ?? join(folder, SEALING_KEY_NAME), keepsHead };
};

/** The public key in a PEM file that holds it, or the private key. Throws CommandFailed. */
export const readPublicKey = (file: string): KeyObject => {
  if (!existsSync(file)) throw new CommandFailed(`${file} does not exist`);
  try {
    const key = createPublicKey(readFileSync(file, 'utf8'));
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // The line below is for an operator: the parser's message may quote the file.
  }
  throw new CommandFailed(
    `${file} holds no Ed25519 key in PEM that can be read; next: payments keys show`,
  );
};

/** The option that names a key which the seals of an export are checked against. */
export const keyOption = (): Option =>
  new Option(
    '--key <file>',
    'with --file: a public key of the seals, of any time (payments keys show)',
  );

/** The public key in the file that `keyOption` names, if any. Throws CommandFailed. */
export const publicKeyIn = (file: string | undefined): string | undefined =>
  file === undefined ? undefined : publicKeyOf(readPublicKey(file));
