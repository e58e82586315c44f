/** The data folder of the embedded mode: mode 0700, and locked by one service at a time. */
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { SealFileRefused } from '../audit/seals/key.ts';
import { MASTER_KEY_FILE } from '../personal-data/open.ts';
import { LEDGER_VERSION } from '../providers/simulator/ledger.ts';
import { StoreFileUnusable } from '../shared/event-store/errors.ts';
import { SCHEMA_VERSION } from '../shared/event-store/sqlite/schema.ts';
import { ReadModelsUnavailable } from '../shared/read-models/errors.ts';
import { KEY_DOCUMENTS } from '../shared/read-models/key-document.ts';
import { firstLineOf, isDiskFull, orElse } from '../shared/runtime/error-text.ts';
import {
  addPrivateFile,
  DataFolderRefused,
  type FileLock,
  isLockHeld,
  makeDataDir,
  SERVICE_LOCK,
  takeFileLock,
} from '../shared/runtime/private-files.ts';
import { AppliedLogMisfit, LogMisfit } from '../shared/subscription/errors.ts';

/** Our files begin with these, up to a dot. */
const OWN = [
  'events',
  'read-models',
  'webhook-deliveries',
  'webhook',
  'provider-ledger',
  'idempotency',
  'signing-key',
  'sealing-key',
  ...KEY_DOCUMENTS,
  'keys',
  'personal',
  'service',
  'backup',
  'replaced',
];
const PROBE = '.write-test';

export const isOwn = (name: string): boolean =>
  name === PROBE || OWN.some((own) => name === own || name.startsWith(`${own}.`));

const OTHERS = 0o077;

const modeOf = (path: string): number => statSync(path).mode & 0o777;

/** A stricter mode stays. True where others had rights. */
const closeToOthers = (path: string, mode: number): boolean =>
  // Another user owns it, or it is gone: the folder's mode, read next, says whether that matters.
  orElse(false, () => {
    if ((modeOf(path) & OTHERS) === 0) return false;
    chmodSync(path, mode);
    return true;
  });

const wereOpen = (folder: string, names: string[]): string =>
  `DATA_DIR: other users had rights in files of ${folder} until this start took them away (${names.join(', ')}); replace the keys and secrets among them that another person may have read`;

/** A copy may have lost these modes. A folder with other files may be meant for others too. */
const makePrivate = (folder: string): string[] => {
  const entries = readdirSync(folder, { withFileTypes: true });
  const own = entries.filter(({ name }) => isOwn(name));
  // A link leads to a file of another folder.
  const files = own.filter((entry) => entry.isFile()).map(({ name }) => name);
  const closed = files.filter((name) => closeToOthers(join(folder, name), 0o600));
  if (own.length === entries.length) closeToOthers(folder, 0o700);
  const warnings = closed.length === 0 ? [] : [wereOpen(folder, closed)];
  const mode = modeOf(folder);
  if ((mode & OTHERS) === 0) return warnings;
  return [
    ...warnings,
    `DATA_DIR: other users have rights in ${folder} (mode ${mode.toString(8)}); type: chmod 700 ${folder}`,
  ];
};

/** Nothing is wrong with the files of a full disk, so `otherwise` would be the wrong advice. */
const refusedFor = (error: unknown, folder: string, otherwise: string): DataFolderRefused =>
  new DataFolderRefused(
    isDiskFull(error)
      ? `DATA_DIR: the disk of ${folder} is full; make room on it and start again`
      : `DATA_DIR: ${otherwise}`,
  );

/** SQLite takes paths of 512 bytes, with the names of our files and its own endings to them. */
const PATH_BYTES_MAX = 470;

const requireShortPath = (folder: string): void => {
  const bytes = Buffer.byteLength(resolve(folder));
  if (bytes <= PATH_BYTES_MAX) return;
  throw new DataFolderRefused(
    `DATA_DIR: the path has ${bytes} bytes and SQLite takes ${PATH_BYTES_MAX}; set a shorter one`,
  );
};

/** The number of the schema that a start gives each file. */
const SCHEMAS = { 'events.sqlite': SCHEMA_VERSION, 'provider-ledger.sqlite': LEDGER_VERSION };

/** Of the file's header, where `PRAGMA user_version` stands. */
const VERSION_AT = 60;

/** 0 where there is none. A file that cannot be read is told of where it is opened. */
const schemaOf = (file: string): number =>
  orElse(0, () => {
    const header = Buffer.alloc(VERSION_AT + 4);
    const opened = openSync(file, 'r');
    readSync(opened, header);
    closeSync(opened);
    return header.readInt32BE(VERSION_AT);
  });

/** Says of each file that a start changes so that no earlier version of the service opens it. */
export const waysBackLost = (folder: string): string[] =>
  Object.entries(SCHEMAS).flatMap(([name, version]) => {
    const found = schemaOf(join(folder, name));
    if (found === 0 || found >= version) return [];
    const change = `${name} is of schema ${found}, and a start gives it schema ${version}`;
    return [`${change}: no earlier version opens it afterwards, so keep a backup from before`];
  });

/** Makes the folder where it is missing and takes its lock. Throws DataFolderRefused. */
export const openDataFolder = (folder: string) => {
  requireShortPath(folder);
  const path = (file: string) => join(folder, file);
  let warnings: string[];
  try {
    makeDataDir(folder);
    warnings = makePrivate(folder);
    writeFileSync(path(PROBE), '', { mode: 0o600 });
    rmSync(path(PROBE));
  } catch (error) {
    const { code = 'unknown error' } = Object(error);
    const advice = 'give the service a folder of its own';
    throw refusedFor(error, folder, `cannot write to ${folder} (${code}); ${advice}`);
  }
  const { release } = takeLock(folder);
  return { path, warnings, waysBackLost: waysBackLost(folder), release };
};
export type DataFolder = ReturnType<typeof openDataFolder>;

const takeLock = (folder: string): FileLock => {
  try {
    return takeFileLock(join(folder, SERVICE_LOCK));
  } catch (error) {
    throw refusedFor(
      error,
      folder,
      isLockHeld(error)
        ? `${folder} is held by another running service, or read with --data; stop it, or set another DATA_DIR`
        : `${folder}/${SERVICE_LOCK} cannot be locked (${firstLineOf(error)}); give it back to the service's user, or delete it and start again`,
    );
  }
};

/** Errors of the file system, of SQLite, and of the read models over it. */
const isAboutAFile = (error: Error): boolean =>
  'syscall' in error || 'errcode' in error || error instanceof ReadModelsUnavailable;

/** Turns an error about a file of the folder into a DataFolderRefused; returns any other as it is. */
export const asDataFolderRefused = <E>(error: E, folder: string): E | DataFolderRefused => {
  if (!(error instanceof Error) || error instanceof DataFolderRefused) return error;
  // Its message names another setting.
  if (error instanceof SealFileRefused) return error;
  // These messages already name the file or the checkpoint, and what is wrong with it.
  if (error instanceof StoreFileUnusable || error instanceof LogMisfit) {
    const isDamaged = 'isDamaged' in error ? error.isDamaged : error instanceof AppliedLogMisfit;
    const next = isDamaged ? `; next: payments verify --data ${folder}` : '';
    return new DataFolderRefused(`DATA_DIR: ${error.message}${next}`);
  }
  return isAboutAFile(error) ? unusable(`a file in ${folder}`, error, folder) : error;
};

const unusable = (what: string, error: unknown, folder: string): DataFolderRefused =>
  refusedFor(
    error,
    folder,
    `${what} cannot be used (${firstLineOf(error)}); give it back to the service's user, or put its last good copy there`,
  );

/** A file that cannot be used is named by the DataFolderRefused that is thrown. */
export const openFileIn = async <T>(
  folder: DataFolder,
  name: string,
  open: (file: string) => T | Promise<T>,
): Promise<T> => {
  const file = folder.path(name);
  try {
    return await open(file);
  } catch (error) {
    if (!(error instanceof Error && isAboutAFile(error))) throw error;
    throw unusable(file, error, dirname(file));
  }
};

const SECRET_MIN = 16;

/** Made on the first start. `why` says what another secret would do. */
const secretIn = async (folder: DataFolder, name: string, why: string): Promise<string> => {
  const file = folder.path(name);
  const secret = await openFileIn(folder, name, async () => {
    if (!existsSync(file)) await addPrivateFile(file, randomBytes(32).toString('base64url'));
    return readFileSync(file, 'utf8').trim();
  });
  if (secret.length >= SECRET_MIN) return secret;
  throw new DataFolderRefused(
    `DATA_DIR: ${file} holds no secret of ${SECRET_MIN} characters; restore its last good copy, because ${why}`,
  );
};

/** Durable before its first use (gaps §8). Throws DataFolderRefused for a secret that is too short. */
export const idempotencySecret = (own: DataFolder): Promise<string> =>
  secretIn(
    own,
    'idempotency.secret',
    'with another secret repeated requests would be charged again',
  );

export const webhookSecret = (own: DataFolder): Promise<string> =>
  secretIn(own, 'webhook.secret', 'receivers would take messages signed with another for forged');

export const personalKek = (own: DataFolder): Promise<string> =>
  secretIn(own, MASTER_KEY_FILE, 'what the keys of personal data seal opens by no other');
