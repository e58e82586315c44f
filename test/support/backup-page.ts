/** The shell blocks of docs/backup.md, run as an operator pastes them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type CliRun, runCli } from './cli.ts';
import { ROOT } from './service-processes.ts';

const PAGE = readFileSync(join(ROOT, 'docs/backup.md'), 'utf8');

/** The commands of a named block, with the folders `backup` and `restored` in a folder of a test. */
export const commandsOf = (name: string, folder: string): string => {
  const [, block] = new RegExp(`^\`\`\`sh ${name}\n(.*?)^\`\`\`$`, 'ms').exec(PAGE) ?? [];
  if (block === undefined) throw new Error(`docs/backup.md has no block ${name}`);
  return block
    .replaceAll('/backups/payments', join(folder, 'backup'))
    .replaceAll('/restored', join(folder, 'restored'));
};

const BASH = { PATH: process.env.PATH, HOME: process.env.HOME, npm_config_loglevel: 'error' };

/** Runs a named block of one `npx payments` line, in this process. */
export const runCommandOf = (
  name: string,
  folder: string,
  env: NodeJS.ProcessEnv,
): Promise<CliRun> => {
  const block = commandsOf(name, folder);
  const [, args] = /^npx payments (.+)\n$/.exec(block) ?? [];
  if (args === undefined) throw new Error(`not one command: ${block}`);
  return runCli(args.split(' '), env);
};

/** npx takes longer than the command that it runs; test/console/pages.processes.test.ts uses npx itself. */
const NPX = 'npx() { shift; node_modules/.bin/node cli/payments.mjs "$@"; }';

/** Runs commands in a shell to their end. */
export const runInShell = async (script: string, env: NodeJS.ProcessEnv) => {
  const bash = spawn('bash', ['-c', `${NPX}\n${script}`], {
    cwd: ROOT,
    env: { ...BASH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [code]] = await Promise.all([
    text(bash.stdout),
    text(bash.stderr),
    once(bash, 'close'),
  ]);
  return { code, stdout, stderr };
};
