/** The release before this one, in a folder of its own, to run beside this one. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './service-processes.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** The commit by which the golden folder was written. */
const COMMIT = '0eb6b017328ac84da9e500ae230f41f131fc4490';
const FOLDERS_THEN =
  'audit cli command-api console docs embedded examples projector provider-simulator query-api scripts shared';
const FOLDERS_NOW =
  'audit cli command-api console docs embedded examples projector providers query-api scripts shared topics webhooks';

const git = (...args: string[]) => spawnSync('git', args, { cwd: ROOT, maxBuffer: 2 ** 27 });
const hasCommit = git('cat-file', '-e', COMMIT).status === 0;

/** A clone without history has these sources alone: with the number of an earlier form of the read models. */
export const RELEASE_BEFORE = hasCommit
  ? 'the release that wrote the golden folder'
  : 'these sources with an earlier form of the read models, for this clone has no history';

const VERSION = /READ_MODEL_VERSION = (\d+)/;

const copyOfThese = (folder: string): void => {
  for (const name of [...FOLDERS_NOW.split(' '), 'package.json'])
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  const file = join(folder, 'shared/payment/response.ts');
  const text = readFileSync(file, 'utf8');
  const earlier = Number(VERSION.exec(text)?.[1]) - 1;
  writeFileSync(file, text.replace(VERSION, `READ_MODEL_VERSION = ${earlier}`));
};

/** It runs on the packages that are installed here. */
export const releaseBefore = (): ReturnType<typeof temporaryFolder> => {
  const folder = temporaryFolder();
  if (hasCommit) {
    const { stdout } = git('archive', COMMIT, '--', ...FOLDERS_THEN.split(' '), 'package.json');
    execFileSync('tar', ['-x', '-C', folder.path], { input: stdout });
  } else copyOfThese(folder.path);
  symlinkSync(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));
  return folder;
};
