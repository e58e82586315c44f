/**
 * The pages that a reader pastes, one block after another into one shell, in bash and in zsh, the shell of
 * every Mac: each runs against a started service and prints the text that stands below it.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import manifest from '../../package.json' with { type: 'json' };
import { runCli } from '../support/cli.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { httpServer } from '../support/faulty-server.ts';
import { timesOf } from '../support/long-run-share.ts';
import { type StartedInProcess, startInProcess } from '../support/service-in-process.ts';
import { ROOT } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Runs the commands of a shell in this process, each with the settings of `env`, until it is closed. */
const openCliForShells = async (env: NodeJS.ProcessEnv) => {
  const { url, close } = await httpServer(async (request, response) => {
    const [, ...args] = (await text(request)).split('\0').slice(0, -1);
    const { code, stdout, stderr } = await runCli(args, env);
    response.writeHead(code === 0 ? 200 : 500).end(code === 0 ? stdout : stdout + stderr);
  });
  const curl = `curl -sS --noproxy '*' --fail-with-body --data-binary @- ${url}`;
  return {
    /** Defines `npx` in a shell that has curl; a command that fails prints its errors to stdout. */
    definition: `npx() { printf '%s\\0' "$@" | ${curl}; }`,
    [Symbol.asyncDispose]: close,
  };
};

const ADDRESS = 'http://127.0.0.1:8080';
const PAGES = ['README.md', 'docs/merchants.md', 'docs/webhooks.md', 'docs/audit.md'];

/** What a test cannot paste: it starts a service or never ends, needs Docker, or names another's things. */
const NOT_PASTED = [
  /^npm (ci|run env)\b/,
  /^npx node examples\/checkout/m,
  /^npx payments listen --forward-to/,
  /--manifest kept\//,
  /--acknowledge payment-other@0/,
];

type Block = { code: string; prints: string | undefined };

/** Each block of shell, with the text that stands right below it. */
const blocksOf = (page: string): Block[] => {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const blocks = text.matchAll(/^```sh\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?/gms);
  return [...blocks].map(([, code = '', prints]) => ({ code, prints: prints?.trim() }));
};

const pastedOf = (page: string): Block[] =>
  blocksOf(page).filter(({ code }) => !NOT_PASTED.some((own) => own.test(code)));

const MARK = '\u001e';

/** npx itself takes a second for a line: none in `npm test`, the first one in the long run. */
const BY_NPX = timesOf(1, 0);

type Shell = { name: string; args: string[] };
const SHELLS: Shell[] = [
  { name: 'bash', args: ['-s'] },
  // As a reader's, in which a # begins no comment.
  { name: 'zsh', args: ['-f', '-i', '-s'] },
];

/** Runs the blocks in one shell, in a folder with the examples, and gives what each wrote to stdout. */
const pasteInto = async (
  { name, args }: Shell,
  service: StartedInProcess,
  blocks: readonly Block[],
): Promise<string[]> => {
  const script = blocks.map(({ code }) => `${code}\nprintf '${MARK}'\n`);
  const own = { DATA_DIR: service.dataDir, PAYMENTS_URL: service.url };
  await using cli = await openCliForShells(own);
  script.splice(BY_NPX, 0, `${cli.definition}\n`);
  const { path: folder, remove } = temporaryFolder();
  for (const entry of ['examples', 'node_modules', 'package.json', 'cli'])
    symlinkSync(join(ROOT, entry), join(folder, entry));
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, TMPDIR: folder, ...own, npm_config_loglevel: 'error' };
  const shell = spawn(name, args, { cwd: folder, env, stdio: ['pipe', 'pipe', 'ignore'] });
  shell.stdin.end(script.join('').replaceAll(ADDRESS, service.url));
  const [printed] = await Promise.all([text(shell.stdout), once(shell, 'close')]);
  remove();
  return printed.split(MARK).slice(0, blocks.length);
};

const isMissing = (tool: string): boolean => spawnSync(tool, ['--version']).error !== undefined;

for (const shell of SHELLS) {
  const missing = [shell.name, 'curl', 'jq'].filter(isMissing);
  const reason = missing.length === 0 ? undefined : `${missing.join(', ')} not installed`;
  describeUnless(reason, `pasted into ${shell.name}`, () => {
    test.each(PAGES)('%s prints what it shows', async (path) => {
      await using service = await startInProcess();
      const blocks = pastedOf(path);
      const printed = await pasteInto(shell, service, blocks);
      const asRun = blocks.map(({ code, prints }, at) => {
        const shown = printed[at]?.trim();
        return { code, prints: prints === undefined ? prints : shown };
      });
      expect(asRun).toEqual(blocks);
    });
  });
}

test('no page has a word behind a command, or an apostrophe in a comment, that zsh takes for its own', () => {
  for (const path of PAGES)
    for (const { code } of blocksOf(path))
      expect([path, code]).toEqual([path, expect.not.stringMatching(/(^|\s)#/m)]);
});

test('README: npx finds the command line in this folder, as a file that can be run', () => {
  expect(manifest.bin).toEqual({ payments: 'cli/payments.mjs' });
  const file = join(ROOT, manifest.bin.payments);
  expect(() => accessSync(file, constants.X_OK)).not.toThrow();
  expect(readFileSync(file, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
});
