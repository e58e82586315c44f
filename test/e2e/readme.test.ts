/**
 * The README's first minutes, as a reader pastes them one after another into one shell: bash runs
 * every line against a started service, and each prints what the README shows behind `#>`.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import manifest from '../../package.json' with { type: 'json' };
import { runCli } from '../support/cli.ts';
import { httpServer } from '../support/faulty-server.ts';
import { timesOf } from '../support/long-run-share.ts';
import { ROOT } from '../support/service.ts';
import { type ServiceHere, startServiceHere } from '../support/service-here.ts';

/** Runs the commands of a shell in this process, each with the settings of `env`, until it is closed. */
const openCliForShells = async (env: NodeJS.ProcessEnv) => {
  const { url, close } = await httpServer(async (request, response) => {
    const [, ...args] = (await text(request)).split('\0').slice(0, -1);
    const { code, stdout, stderr } = await runCli(args, env);
    response.writeHead(code === 0 ? 200 : 500).end(code === 0 ? stdout : stdout + stderr);
  });
  const curl = `curl -sS --noproxy '*' --fail-with-body --data-binary @- ${url}`;
  return {
    /** Defines `npx` in a bash that has curl; a command that fails prints its errors to stdout. */
    definition: `npx() { printf '%s\\0' "$@" | ${curl}; }`,
    [Symbol.asyncDispose]: close,
  };
};

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const ADDRESS = 'http://127.0.0.1:8080';

type Line = { command: string; prints: string };

const CHAPTERS = ['First payment', "The auditor's first minute", "The operator's first minute"];

const blockUnder = (readme: string, heading: string): string => {
  const [, block] =
    new RegExp(`^## ${heading}$.*?^\`\`\`sh\\n(.*?)^\`\`\`$`, 'ms').exec(readme) ?? [];
  if (block === undefined) throw new Error(`no lines to paste under ${heading}`);
  return block;
};

const storyIn = (readme: string): Line[] => {
  return CHAPTERS.flatMap((heading) => blockUnder(readme, heading).split('\n'))
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => {
      const [command = '', prints = ''] = line.split('#>');
      return { command: command.trim(), prints: prints.trim() };
    });
};

const MARK = '\u001e';

/** npx itself takes a second for a line: none in `npm test`, the first one in the long run. */
const BY_NPX = timesOf(1, 0);

/** Runs the lines in one shell and gives what each wrote to stdout. */
const pasteInto = async (service: ServiceHere, lines: readonly Line[]): Promise<string[]> => {
  const script = lines.map(({ command }) => `${command}\nprintf '${MARK}'\n`);
  const own = { DATA_DIR: service.dataDir, PAYMENTS_URL: service.url };
  await using cli = await openCliForShells(own);
  script.splice(BY_NPX, 0, `${cli.definition}\n`);
  const { PATH, HOME, TMPDIR } = process.env;
  const env = { PATH, HOME, TMPDIR, ...own, npm_config_loglevel: 'error' };
  const bash = spawn('bash', ['-s'], { cwd: ROOT, env, stdio: ['pipe', 'pipe', 'inherit'] });
  bash.stdin.end(script.join('').replaceAll(ADDRESS, service.url));
  const [printed] = await Promise.all([text(bash.stdout), once(bash, 'close')]);
  return printed
    .split(MARK)
    .slice(0, lines.length)
    .map((part) => part.trim());
};

const MISSING = ['bash', 'curl', 'jq'].filter(
  (tool) => spawnSync(tool, ['--version']).error !== undefined,
);
const story = MISSING.length === 0 ? test : test.skip;
const reason = MISSING.length === 0 ? '' : ` (skipped: ${MISSING.join(', ')} not installed)`;

describe('README: the first payment, the auditor, the operator', () => {
  test('the story covers a capture, a refund, a decline, a lost response and a retry', () => {
    const shown = storyIn(README).map(({ prints }) => prints);
    expect(shown.filter((line) => line !== '').length).toBeGreaterThanOrEqual(7);
    expect(README).toContain(`API=${ADDRESS}/api/v1/payments`);
  });

  test('npx finds the command line in this folder, as a file that can be run', () => {
    expect(manifest.bin).toEqual({ payments: 'cli/payments.mjs' });
    const file = join(ROOT, manifest.bin.payments);
    expect(() => accessSync(file, constants.X_OK)).not.toThrow();
    expect(readFileSync(file, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
  });

  story(`each line prints what the README shows behind it${reason}`, async () => {
    await using service = await startServiceHere();
    const lines = storyIn(README);
    const printed = await pasteInto(service, lines);
    const asRun = lines.map(({ command }, at) => ({ command, prints: printed[at] }));
    expect(asRun).toEqual(lines);
  });
});
