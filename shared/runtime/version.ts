import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import manifest from '../../package.json' with { type: 'json' };

const ROOT = join(import.meta.dirname, '../..');

/** Git writes it into an archive (.gitattributes). In a clone, git itself is asked. */
const commit = (): string => {
  const archived = readFileSync(join(import.meta.dirname, 'commit.txt'), 'utf8').trim();
  if (!archived.startsWith('$')) return archived;
  // An archive unpacked in another repository has not its commit.
  if (!existsSync(join(ROOT, '.git'))) return '';
  const git = ['rev-parse', '--short', 'HEAD'];
  const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore'];
  return execFileSync('git', git, { cwd: ROOT, stdio, timeout: 1_000, encoding: 'utf8' }).trim();
};

const commitOrNone = (): string => {
  try {
    return commit();
  } catch {
    return '';
  }
};

/** Which build runs: `1.0.0 (c8bf3b2)`, and without the commit where neither git nor the archive names it. */
export const VERSION = [manifest.version, commitOrNone().replace(/.+/, '($&)')].join(' ').trim();
