/** Options that take a time: any other text is refused with the form that a time has. */
import { expect, test } from '@jest/globals';
import { timeOrPosition, timeOrRevision, timeValue } from '../../cli/options.ts';
import { expectError, runCli } from '../support/cli.ts';

const OF_REVISION = 'It must be a revision, or a time with its zone';
const FORM = 'It must be a time with its zone, such as 2026-11-01T00:00:00Z';

test.each([
  ['--from <from>', ['export', '--out', 'out.jsonl', '--from'], `${FORM}, or a position`],
  ['--to <time>', ['export', '--out', 'out.jsonl', '--to'], `${FORM}.`],
  ['--from <time>', ['find', '--from'], `${FORM}.`],
  ['--to <time>', ['find', '--to'], `${FORM}.`],
  ['--since <time>', ['webhooks', 'resend', 'we_1', '--since'], `${FORM}.`],
  ['--at <when>', ['events', 'pay_1', '--file', 'not read', '--at'], OF_REVISION],
])('a day alone is refused before any request as %s of %j', async (option, args, form) => {
  const said = `option '${option}' argument '2026-11-01' is invalid. ${form}`;
  expectError(await runCli([...args, '2026-11-01']), 2, said);
});

test.each([
  ...['2026-11-01T00:00:00', '2026-11-01T00:00Z', '2026-11', 'yesterday', '-1', ''],
  ...['2026-02-30T00:00:00Z', '2026-03-01T24:00:00Z', '2026-06-30T23:59:60Z'],
])('%j is neither a time nor a position nor a revision', (text) => {
  expect(() => timeValue(text)).toThrow(FORM);
  expect(() => timeOrPosition(text)).toThrow(FORM);
  expect(() => timeOrRevision(text)).toThrow(OF_REVISION);
});

test.each(['2026-11-01T00:00:00Z', '2026-11-01t00:00:00.5z', '2026-11-01T00:00:00+01:00'])(
  '%s is a time',
  (text) => {
    expect([timeValue, timeOrPosition, timeOrRevision].map((value) => value(text))).toEqual(
      Array(3).fill(text),
    );
  },
);

test.each(['start', '12', '1202/1202'])('%s is a place of the log, and no time', (text) => {
  expect(timeOrPosition(text)).toBe(text);
  expect(() => timeValue(text)).toThrow(FORM);
});
