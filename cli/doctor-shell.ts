/** Reports for `payments doctor`: the settings of this shell with secrets hidden, and the data folder. */
import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { waysBackLost } from '../embedded/data-folder.ts';
import type { EffectiveSetting } from '../shared/runtime/config.ts';
import { orElse } from '../shared/runtime/error-text.ts';
import { loadConfig } from '../shared/runtime/load-config.ts';
import { isFileLocked, lastBackupOf, SERVICE_LOCK } from '../shared/runtime/private-files.ts';
import { shownSetting } from '../shared/runtime/settings/effective.ts';
import { SECRET_SETTINGS, settings } from '../shared/runtime/settings/table.ts';

const givenSettings = (env: NodeJS.ProcessEnv): EffectiveSetting[] =>
  Object.keys(settings).flatMap((name) => {
    const value = env[name]?.trim() ?? '';
    if (value === '') return [];
    const shown = shownSetting(name, value, SECRET_SETTINGS.includes(name));
    return [{ name, value: shown, origin: 'environment' as const }];
  });

export const lookAtSettings = (env: NodeJS.ProcessEnv) => {
  const read = loadConfig(env);
  return read.ok
    ? { settings: [...read.config.effective], problems: [], config: read.config }
    : { settings: givenSettings(env), problems: read.problems, config: undefined };
};

const FREE_BYTES_MIN = 100e6;

const nearestExisting = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path));

const filesIn = (path: string) =>
  readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => ({ name, bytes: statSync(join(path, name)).size }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));

const problemOf = (path: string, writable: boolean, freeBytes: number | null) => {
  if (!writable)
    return `DATA_DIR: ${path} cannot be written to; give the service a folder of its own`;
  return freeBytes !== null && freeBytes < FREE_BYTES_MIN
    ? `DATA_DIR: less than 100 MB are free at ${path}; free some space before appends fail`
    : undefined;
};

/** Examines the data folder, or the place where the first start would make it. Changes nothing, never throws. */
export const lookAtDataFolder = (path: string) => {
  const exists = existsSync(path);
  const at = nearestExisting(path);
  const writable = orElse(false, () => {
    accessSync(at, constants.W_OK | constants.X_OK);
    return statSync(at).isDirectory();
  });
  const freeBytes = orElse(null, () => {
    const { bavail, bsize } = statfsSync(at);
    return bavail * bsize;
  });
  const problem = problemOf(path, writable, freeBytes);
  return {
    path,
    state: writable ? (exists ? 'writable' : 'not there yet') : 'not writable',
    held: isFileLocked(join(path, SERVICE_LOCK)),
    freeBytes,
    lastBackupAt: orElse(undefined, () => lastBackupOf(path)?.toISOString()),
    files: orElse([], () => filesIn(path)),
    waysBackLost: waysBackLost(path),
    ...(problem === undefined ? {} : { problem }),
  };
};

/** `freeBytes` is null where the file system does not say; `held`: by a running service. */
export type DataFolderFinding = ReturnType<typeof lookAtDataFolder>;
