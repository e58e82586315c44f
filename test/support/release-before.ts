/** The release before this one, in a folder of its own, to run beside this one. */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './service-processes.ts';
import { temporaryFolder } from './temporary-folder.ts';

const FOLDERS =
  'audit cli command-api console docs embedded examples personal-data projector providers query-api scripts shared topics webhooks';

/** No release before sealed texts reads a payment of this one (CHANGELOG.md), so it has the same events. */
export const RELEASE_BEFORE = 'these sources with an earlier form of the read models';

const VERSION = /READ_MODEL_VERSION = (\d+)/;

/** It runs on the packages that are installed here. */
export const releaseBefore = (): ReturnType<typeof temporaryFolder> => {
  const folder = temporaryFolder();
  for (const name of [...FOLDERS.split(' '), 'package.json'])
    cpSync(join(ROOT, name), join(folder.path, name), { recursive: true });
  const file = join(folder.path, 'shared/payment/fold.ts');
  const text = readFileSync(file, 'utf8');
  const earlier = Number(VERSION.exec(text)?.[1]) - 1;
  writeFileSync(file, text.replace(VERSION, `READ_MODEL_VERSION = ${earlier}`));
  symlinkSync(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));
  return folder;
};
