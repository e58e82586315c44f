/** The text files of the project, as git lists them, or as they lie in an unpacked copy. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './service-processes.ts';

/** Made by tools, so its words are not ours. */
const GENERATED = /(^|\/)(package-lock\.json|go\.sum)$/;
const TEXT = /\.(ts|js|cjs|mjs|md|json|ya?ml|html|css|c|go|xml)$|(^|\/)(Dockerfile|Caddyfile|run)$/;

/** Without git: every folder but those that tools and a running service make. */
const walk = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (!entry.isDirectory()) return [path];
    const made = entry.name === 'node_modules' || path === 'data' || path === '.types';
    return made || path === '.git' || existsSync(join(ROOT, path, 'events.sqlite'))
      ? []
      : walk(path);
  });

const listed = (): string[] | undefined => {
  if (!existsSync(join(ROOT, '.git'))) return undefined;
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const { status, stdout } = spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' });
  return status === 0 ? stdout.split('\0').filter((path) => path !== '') : undefined;
};

/** Paths from the project's folder, with `/`. */
export const projectFiles: readonly string[] = [...new Set(listed() ?? walk(''))].filter(
  (path) => TEXT.test(path) && !GENERATED.test(path) && existsSync(join(ROOT, path)),
);

export const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
