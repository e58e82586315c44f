/**
 * The data folder of the embedded mode (`DATA_DIR`, docs/settings.md): mode 0700, and locked by one
 * running service at a time.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LogMisfit } from '../projector/errors.ts';
import { StoreFileUnusable } from '../shared/event-store/errors.ts';
import { ReadModelsUnavailable } from '../shared/read-models/errors.ts';
import { DataFolderRefused, makeDataDir, SERVICE_LOCK } from '../shared/runtime/data-folder.ts';
import { firstLineOf } from '../shared/runtime/error-text.ts';
import { type FileLock, isLockHeld, takeFileLock } from '../shared/runtime/file-lock.ts';
import { addPrivateFile } from '../shared/runtime/private-files.ts';

/** A locked data folder: the paths of its files, and the end of the lock. */
export type DataFolder = { path(file: string): string; release(): void };

/** Makes the folder where it is missing and takes its lock. Throws DataFolderRefused. */
export const openDataFolder = (folder: string): DataFolder => {
  try {
    makeDataDir(folder);
    // An empty folder was made for us, so its mode is ours; one with files may belong to others.
    if (readdirSync(folder).length === 0) chmodSync(folder, 0o700);
    const probe = join(folder, '.write-test');
    writeFileSync(probe, '', { mode: 0o600 });
    rmSync(probe);
  } catch (error) {
    throw new DataFolderRefused(
      `DATA_DIR: cannot write to ${folder} (${codeOf(error)}); give the service a folder of its own`,
    );
  }
  const lock = takeLock(folder);
  return { path: (file) => join(folder, file), release: lock.release };
};

const takeLock = (folder: string): FileLock => {
  try {
    return takeFileLock(join(folder, SERVICE_LOCK));
  } catch (error) {
    throw new DataFolderRefused(
      isLockHeld(error)
        ? `DATA_DIR: ${folder} is held by another running service, or read with --data; stop it, or set another DATA_DIR`
        : `DATA_DIR: ${folder}/${SERVICE_LOCK} cannot be locked; delete that file and start again`,
    );
  }
};

/** Errors of the file system, of SQLite, and of the read models over it. */
const isAboutAFile = (error: Error): boolean =>
  'syscall' in error || 'errcode' in error || error instanceof ReadModelsUnavailable;

/** What a person looks at before anything is done about it. */
const IS_DAMAGE =
  /the event log (is damaged|ends before|has other events)|malformed|not a database/;

/** Turns an error about a file of the folder into a DataFolderRefused; returns any other as it is. */
export const asDataFolderRefused = (error: unknown, folder: string): unknown => {
  if (!(error instanceof Error) || error instanceof DataFolderRefused) return error;
  // These messages already name the file or the checkpoint, and what is wrong with it.
  if (error instanceof StoreFileUnusable || error instanceof LogMisfit) {
    const next = IS_DAMAGE.test(error.message) ? `; next: payments verify --data ${folder}` : '';
    return new DataFolderRefused(`DATA_DIR: ${error.message}${next}`);
  }
  if (!isAboutAFile(error)) return error;
  const why = firstLineOf(error);
  return new DataFolderRefused(
    `DATA_DIR: a file in ${folder} cannot be used (${why}); give it back to the service's user, or put its last good copy there`,
  );
};

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';

const SECRET_FILE = 'idempotency.secret';
const SECRET_MIN = 16;

/**
 * The secret behind derived ids and fingerprints, made on the first start (gaps §8). Throws
 * DataFolderRefused when the file holds too short a secret.
 */
export const idempotencySecret = async (folder: DataFolder): Promise<string> => {
  const file = folder.path(SECRET_FILE);
  // Durable before its first use: without it no repeated request would be recognised.
  if (!existsSync(file)) await addPrivateFile(file, randomBytes(32).toString('base64url'));
  const secret = readFileSync(file, 'utf8').trim();
  if (secret.length >= SECRET_MIN) return secret;
  throw new DataFolderRefused(
    `DATA_DIR: ${file} holds no secret of ${SECRET_MIN} characters; restore its last good copy, because with another secret repeated requests would be charged again`,
  );
};
