import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import manifest from '../../package.json' with { type: 'json' };

const ROOT = join(import.meta.dirname, '../..');

/** Git writes it into an archive (.gitattributes), and is asked in a clone. */
const commitOf = (): string => {
  const archived = readFileSync(join(import.meta.dirname, 'commit.txt'), 'utf8').trim();
  if (!archived.startsWith('$')) return archived;
  if (!existsSync(join(ROOT, '.git'))) return '';
  const options = { cwd: ROOT, encoding: 'utf8', timeout: 1_000 } as const;
  return spawnSync('git', ['rev-parse', '--short', 'HEAD'], options).stdout?.trim() ?? '';
};
const commit = commitOf();

/** Which build runs: `1.0.0 (c8bf3b2)`, without the commit where it is not known. */
export const VERSION = commit === '' ? manifest.version : `${manifest.version} (${commit})`;
