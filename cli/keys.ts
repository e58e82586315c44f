/** `payments keys`: the public part of the key that seals the log, and its change. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { KeyPlace } from '../audit/seals/key.ts';
import { type Rotated, rotateSealingKey } from '../audit/seals/rotate.ts';
import { keyIdOf, publicKeyOf } from '../audit/seals/seals.ts';
import { KEYS_FILE, MASTER_KEY_FILE, openKeyStore } from '../personal-data/open.ts';
import type { KeyStore, Rewrapped } from '../personal-data/port.ts';
import { RevisionConflict, StoreUnavailable } from '../shared/event-store/errors.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { openSqliteEventStore } from '../shared/event-store/sqlite/event-store.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import { createLogger } from '../shared/runtime/log.ts';
import { LogMisfit } from '../shared/subscription/errors.ts';
import { type Format, formatOption, verb } from './options.ts';
import { CommandFailed, countOf, note, print, printJson } from './output.ts';
import { keyPlaceIn, readPublicKey, readSettings, requireReadable } from './settings.ts';
import { EVENTS, lockFolder } from './stopped-folder.ts';

type Options = { data?: string; format: Format };

const existingKeyIn = (folder: string): KeyPlace => {
  const place = keyPlaceIn(folder);
  if (existsSync(place.keyFile)) return place;
  throw new CommandFailed(
    `${place.keyFile} does not exist: the key is made at the first start; name its folder with --data, or set SEALING_KEY_FILE`,
  );
};

const folderOf = ({ data }: Options): string => data ?? readSettings().dataDir;

const show = (options: Options): void => {
  const key = readPublicKey(existingKeyIn(folderOf(options)).keyFile);
  const keyId = keyIdOf(publicKeyOf(key));
  const publicKey = key.export({ format: 'pem', type: 'spki' }).toString();
  const jwk = key.export({ format: 'jwk' });
  if (options.format === 'json') printJson({ keyId, publicKey, jwk });
  // Readers of PEM pass over the lines before it.
  else print(`key ${keyId}`, `jwk ${JSON.stringify(jwk)}`, publicKey.trimEnd());
};

/** The message of one of these is one line for the operator. */
const isSaid = (error: unknown): boolean =>
  [LogMisfit, StoreUnavailable, RevisionConflict].some((one) => error instanceof one) ||
  (error as NodeJS.ErrnoException).code !== undefined;

const rotateOn = async (opening: Promise<EventStore>, place: KeyPlace): Promise<Rotated> => {
  try {
    const store = await opening;
    return await rotateSealingKey(store, place).finally(() => store.close());
  } catch (error) {
    if (!isSaid(error)) throw error;
    throw new CommandFailed(`the rotation is not done: ${(error as Error).message}`);
  }
};

/** Running processes seal the log of a server no more until they start with the new key. */
const rotateAt = async (url: string, place: KeyPlace): Promise<Rotated> => {
  const { openEventStoreDb } = await import('../shared/event-store/eventstoredb/event-store.ts');
  const { log: logger } = createLogger({ level: 'silent', destination: 'stdout' });
  return rotateOn(openEventStoreDb({ url, logger }), place);
};

const rotateIn = async (folder: string): Promise<Rotated> => {
  const place = existingKeyIn(folder);
  const file = join(folder, EVENTS);
  if (!existsSync(file)) throw new CommandFailed(`${folder} holds no ${EVENTS}`);
  const lock = lockFolder(folder, 'rotate');
  return rotateOn(openSqliteEventStore({ file }), place).finally(() => lock.release());
};

const rotate = async (options: Options): Promise<void> => {
  process.umask(0o077);
  const { eventStoreDbUrl: url } = readSettings();
  const folder = folderOf(options);
  const isAtServer = url !== undefined && options.data === undefined;
  const rotated = isAtServer ? await rotateAt(url, existingKeyIn(folder)) : await rotateIn(folder);
  const { keyId, oldKeyId } = rotated;
  if (options.format === 'json') return printJson(rotated);
  if (oldKeyId === undefined)
    return print(`key ${keyId} is in place: an earlier rotation had been broken off`);
  print(`key ${keyId} follows ${oldKeyId}`);
  note(
    'Next: start the service, and make a backup. Give auditors the new key (payments keys show); with the old one they can still check every seal.',
  );
};

const openKeysIn = async (folder: string, isAtServer: boolean): Promise<KeyStore> => {
  const { mongoUrl, personalData } = readSettings();
  const fileOf = (name: string): string => join(folder, name);
  const secret = fileOf(MASTER_KEY_FILE);
  for (const file of [secret, fileOf(KEYS_FILE)]) requireReadable(file);
  if (!isAtServer && !existsSync(fileOf(KEYS_FILE)))
    throw new CommandFailed(`${folder} holds no ${KEYS_FILE}: the first start makes it`);
  return openKeyStore({
    config: { mongoUrl: isAtServer ? mongoUrl : undefined, personalData },
    fileOf,
    ownKek: existsSync(secret) ? readFileSync(secret, 'utf8').trim() : undefined,
    takes: false,
  });
};

const REPORT_EVERY = 10_000;

const rewrapAll = async (keys: KeyStore) => {
  const found = { rewrapped: 0, unreadable: 0 };
  for (let after: string | undefined = ''; after !== undefined; ) {
    const { last, rewrapped, unreadable }: Rewrapped = await keys.rewrap(after);
    const before = found.rewrapped;
    found.rewrapped += rewrapped;
    found.unreadable += unreadable;
    if (Math.floor(found.rewrapped / REPORT_EVERY) > Math.floor(before / REPORT_EVERY))
      note(`${countOf(found.rewrapped)} keys are rewrapped so far`);
    after = last;
  }
  return found;
};

const rewrap = async (options: Options): Promise<void> => {
  process.umask(0o077);
  const isAtServer = readSettings().mongoUrl !== undefined && options.data === undefined;
  let found: Awaited<ReturnType<typeof rewrapAll>>;
  try {
    const keys = await openKeysIn(folderOf(options), isAtServer);
    found = await rewrapAll(keys).finally(() => keys.close());
  } catch (error) {
    if (error instanceof CommandFailed) throw error;
    throw new CommandFailed(`the keys are not all rewrapped; run it again: ${reasonOf(error)}`);
  }
  const { rewrapped, unreadable } = found;
  if (options.format === 'json') printJson(found);
  else print(`${countOf(rewrapped)} keys are rewrapped by the master key that is set`);
  if (unreadable > 0)
    throw new CommandFailed(
      `${countOf(unreadable)} keys cannot be read under the master keys that are set: keep PERSONAL_DATA_PREVIOUS_KEK, and find theirs`,
      3,
    );
  if (options.format === 'pretty')
    note('Next: payments backup --keys, then docs/secrets.md, Rotate the master key, step 4');
};

const ofFolder = (name: string, example: string, description: string): Command =>
  verb(name, `payments keys ${name} ${example}`)
    .description(description)
    .option('--data <folder>', 'the data folder; left out: DATA_DIR')
    .addOption(formatOption());

const SHOWS = 'Prints the id and the public key (JWK and PEM) of the key that seals the log.';
const ROTATES = 'Makes a new key, signed by the old one, which is removed. Stop the service first.';
const REWRAPS =
  'Wraps each key of personal data by PERSONAL_DATA_KEK, in pages, while the service runs.';

export const keysCommand = (): Command =>
  verb('keys', 'payments keys show')
    .description(
      'The key that seals the log (docs/audit.md, Seals), and the keys of personal data.',
    )
    .addCommand(ofFolder('show', '> sealing-key.public.pem', SHOWS).action(show))
    .addCommand(ofFolder('rotate', '--data ./data', ROTATES).action(rotate))
    .addCommand(ofFolder('rewrap', '--data ./data', REWRAPS).action(rewrap));
