/** Exit codes of usage, and an example in the help of every verb. */
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from '@jest/globals';
import type { Command } from 'commander';
import { buildProgram } from '../../cli/run.ts';
import { VERSION } from '../../shared/runtime/version.ts';
import { runCli } from '../support/cli.ts';
import { shareOf } from '../support/long-run-share.ts';
import { cleanEnv, LAUNCHER, NODE, runCliProcess } from '../support/service-processes.ts';

const helpOf = (command: Command): string => {
  let text = '';
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
  });
  command.outputHelp();
  return text;
};

const hasExample = (command: Command): boolean => /Examples?:\n.*payments /.test(helpOf(command));

/** Each verb with its name, and each verb below it. */
const verbsOf = (command: Command, before = ''): (readonly [string, Command])[] =>
  command.commands.flatMap((verb) => {
    const name = `${before}${verb.name()}`;
    return [[name, verb] as const, ...verbsOf(verb, `${name} `)];
  });

const program = await buildProgram();

describe('exit codes of help and of wrong usage', () => {
  test.each([
    [['help'], 0],
    [['--help'], 0],
    [['find', '--help'], 0],
    [[], 2],
    [['unknown'], 2],
    [['parked'], 2],
    [['projections'], 2],
    [['topics'], 2],
    [['topics', 'tail', '--latest', '--from', '6'], 2],
    [['token', '--ttl', '1y'], 2],
    [['token', '--merchant', ''], 2],
    [['token', 'extra'], 2],
    [['cards', '--format', 'xml'], 2],
    [['listen', '--print-secret'], 2],
    [['listen', '--show-body'], 2],
    [['listen', '--type', 'PaymentCapturd'], 2],
    [['listen', '--types', 'payment.captured'], 2],
    [['listen', '--forward-to', 'http://localhost:1/hook', '--type', 'PaymentCaptured'], 2],
    [['listen', '--forward-to', 'http://localhost:1/hook', '--payment', 'pay_1'], 2],
  ])('payments %j ends with %i', async (args, code) => {
    const ended = await runCli(args);
    expect(ended.code).toBe(code);
    expect([ended.stdout, ended.stderr].map((text) => text === '')).toEqual(
      code === 0 ? [false, true] : [true, false],
    );
  });
});

test('the exit code of a run is that of its process, which writes to its own streams', async () => {
  const runs: [string[], NodeJS.ProcessEnv, object][] = [
    [['unknown'], {}, { code: 2, stdout: '', stderr: expect.stringContaining('unknown') }],
    [['find', '--help'], {}, { code: 0, stdout: expect.stringContaining('Example'), stderr: '' }],
    [
      ['token'],
      { PORT: 'x' },
      { code: 1, stdout: '', stderr: expect.stringMatching(/^payments: PORT must be/) },
    ],
  ];
  for (const [args, env, ended] of shareOf(runs, 1)) {
    expect(await runCliProcess(args, env)).toEqual({ signal: null, ...ended });
  }
});

describe('--version', () => {
  const line = `payments ${VERSION}\n`;

  test('of the command line', async () => {
    expect(await runCli(['--version'])).toMatchObject({ code: 0, stdout: line });
  });

  test('of a main, which then does not start', () => {
    const args = [LAUNCHER, 'providers/simulator/main.ts', '--version'];
    const { status, stdout, stderr } = spawnSync(NODE, args, { encoding: 'utf8', env: cleanEnv() });
    expect([status, stdout, stderr]).toEqual([0, line, '']);
  });
});

test('the help lists the verbs by their readers, those for the start first', () => {
  const headings = helpOf(program).match(/^\S.*:$/gm);
  const readers = ['For auditors:', 'For operators:', 'For development:'];
  expect(headings).toEqual(['Options:', 'Start here:', ...readers, 'Commands:', 'Example:']);
});

describe('payments <verb> --help', () => {
  test.each(verbsOf(program))(
    '%s shows an example, also where it only leads to verbs of its own',
    (_name, command) => {
      expect(hasExample(command)).toBe(true);
      expect(helpOf(command)).toMatch(/Exit codes: 0 done.*\n.*PAYMENTS_URL.*PAYMENTS_TOKEN/);
    },
  );
});
