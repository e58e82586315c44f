/** Exit codes of usage, and an example in the help of every verb. */
import { describe, expect, test } from '@jest/globals';
import type { Command } from 'commander';
import { buildProgram } from '../../cli/program.ts';
import { runCli } from '../support/service.ts';

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

const hasExample = (command: Command): boolean =>
  /Examples?:\n.*payments /.test(helpOf(command)) ||
  (command.commands.length > 0 && command.commands.every(hasExample));

const { commands } = await buildProgram();

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
  ])('payments %j ends with %i', async (args, code) => {
    expect((await runCli(args)).code).toBe(code);
  });
});

describe('payments <verb> --help', () => {
  test.each(commands.map((command) => [command.name(), command] as const))(
    '%s shows an example, or each of its verbs does',
    (_name, command) => {
      expect(hasExample(command)).toBe(true);
    },
  );
});
