/** `payments keys`: the public part of the key that seals the log, and its change. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { KeyPlace } from '../audit/seals/key.ts';
import { rotateSealingKey } from '../audit/seals/rotate.ts';
import { keyIdOf, publicKeyOf } from '../audit/seals/seals.ts';
import { KEYS_FILE, MASTER_KEY_FILE, openKeyStore } from '../personal-data/open.ts';
import type { KeyStore, Rewrapped } from '../personal-data/port.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { openSqliteEventStore } from '../shared/event-store/sqlite/event-store.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import { createLogger } from '../shared/runtime/log.ts';
import { type Format, formatted, verb } from './options.ts';
import { CommandFailed, count, countOf, note, print, printJson } from './output.ts';
import { keyPlaceIn, readPublicKey, readSettings, secretIn } from './settings.ts';
import { EVENTS, lockFolder } from './stopped-folder.ts';

type Options = { data?: string; format: Format };

const existingKeyOf = ({ data = readSettings().dataDir }: Options): KeyPlace => {
  const place = keyPlaceIn(data);
  if (existsSync(place.keyFile)) return place;
  throw new CommandFailed(
    `${place.keyFile} does not exist: the key is made at the first start; name its folder with --data, or set SEALING_KEY_FILE`,
  );
};

const show = (options: Options): void => {
  const key = readPublicKey(existingKeyOf(options).keyFile);
  const keyId = keyIdOf(publicKeyOf(key));
  const publicKey = key.export({ format: 'pem', type: 'spki' }).toString();
  const jwk = key.export({ format: 'jwk' });
  if (options.format === 'json') printJson({ keyId, publicKey, jwk });
  // Readers of PEM pass over the lines before it.
  else print(`key ${keyId}`, `jwk ${JSON.stringify(jwk)}`, publicKey.trimEnd());
};

/** For `catch`. Throws CommandFailed. */
export const failedAs =
  (what: string) =>
  (error: unknown): never => {
    if (error instanceof CommandFailed) throw error;
    throw new CommandFailed(`${what}: ${reasonOf(error)}`);
  };

/** Its client is slow to load, so only a verb that needs it loads it. */
export const openServer = async (url: string) => {
  const { openEventStoreDb } = await import('../shared/event-store/eventstoredb/event-store.ts');
  const { log: logger } = createLogger({ level: 'silent', destination: 'stdout' });
  return openEventStoreDb({ url, logger });
};

/** With the log of the server that is set, else of a stopped folder, to append to it. */
export const withLog = async <T>(
  folder: string | undefined,
  step: string,
  use: (store: EventStore) => Promise<T>,
): Promise<T> => {
  const { eventStoreDbUrl: url, dataDir } = readSettings();
  const useAndClose = (store: EventStore): Promise<T> => use(store).finally(store.close);
  if (url !== undefined && folder === undefined) return openServer(url).then(useAndClose);
  const own = folder ?? dataDir;
  const file = join(own, EVENTS);
  if (!existsSync(file)) throw new CommandFailed(`${own} holds no ${EVENTS}`);
  const lock = lockFolder(own, step);
  return openSqliteEventStore({ file }).then(useAndClose).finally(lock.release);
};

const rotate = async (options: Options): Promise<void> => {
  process.umask(0o077);
  const place = existingKeyOf(options);
  // Running processes seal the log of a server no more until they start with the new key.
  const rotated = await withLog(options.data, 'rotate', (store) =>
    rotateSealingKey(store, place),
  ).catch(failedAs('the rotation is not done'));
  const { keyId, oldKeyId } = rotated;
  if (options.format === 'json') return printJson(rotated);
  if (oldKeyId === undefined)
    return print(`key ${keyId} is in place: an earlier rotation had been broken off`);
  print(`key ${keyId} follows ${oldKeyId}`);
  note(
    'Next: start the service, and make a backup. Give auditors the new key (payments keys show); with the old one they can still check every seal.',
  );
};

export const withKeys = async <T>(
  { data }: Pick<Options, 'data'>,
  use: (keys: KeyStore) => Promise<T>,
): Promise<T> => {
  const { mongoUrl: url, personalData, dataDir } = readSettings();
  const fileOf = (name: string): string => join(data ?? dataDir, name);
  const mongoUrl = data === undefined ? url : undefined;
  if (mongoUrl === undefined && !existsSync(fileOf(KEYS_FILE)))
    throw new CommandFailed(`${fileOf(KEYS_FILE)} does not exist: the first start makes it`);
  const ownKek = secretIn(fileOf(MASTER_KEY_FILE));
  const config = { mongoUrl, personalData };
  const keys = await openKeyStore({ config, fileOf, ownKek, takes: false });
  return use(keys).finally(keys.close);
};

const REPORT_EVERY_PAGES = 200;

const rewrapAll = async (keys: KeyStore) => {
  const done = { rewrapped: 0, unreadable: 0 };
  let after: string | undefined = '';
  for (let pages = 1; after !== undefined; pages += 1) {
    const page: Rewrapped = await keys.rewrap(after);
    after = page.last;
    done.rewrapped += page.rewrapped;
    done.unreadable += page.unreadable;
    if (pages % REPORT_EVERY_PAGES === 0) note(`${countOf(done.rewrapped)} keys are rewrapped`);
  }
  return done;
};

const rewrap = async (options: Options): Promise<void> => {
  process.umask(0o077);
  const rewrapped = withKeys(options, rewrapAll);
  const done = await rewrapped.catch(failedAs('not every key is rewrapped; run it again'));
  if (options.format === 'json') printJson(done);
  else print(`${countOf(done.rewrapped)} keys are rewrapped by the master key that is set`);
  if (done.unreadable === 0)
    return note('Next: payments backup --keys, then docs/secrets.md, "Rotate the master key"');
  throw new CommandFailed(
    `no master key that is set opens ${count(done.unreadable, 'key')}: keep PERSONAL_DATA_PREVIOUS_KEK, and find theirs`,
    3,
  );
};

const ofFolder = (name: string, example: string, description: string): Command =>
  formatted(name, `payments keys ${name} ${example}`)
    .description(description)
    .option('--data <folder>', 'the data folder; left out: DATA_DIR');

const SHOWS = 'Prints the id and the public key (JWK and PEM) of the key that seals the log.';
const ROTATES = 'Makes a new key, signed by the old one, which is removed. Stop the service first.';
const REWRAPS =
  'Wraps each key of personal data by PERSONAL_DATA_KEK, in pages, while the service runs.';

export const keysCommand = (): Command =>
  verb('keys', 'payments keys show')
    .description(
      'The key that seals the log (docs/proof.md, Seals), and the keys of personal data.',
    )
    .addCommand(ofFolder('show', '> sealing-key.public.pem', SHOWS).action(show))
    .addCommand(ofFolder('rotate', '--data ./data', ROTATES).action(rotate))
    .addCommand(ofFolder('rewrap', '--data ./data', REWRAPS).action(rewrap));
