/** Options that take a time: any other text is refused with the form that a time has. */
import { describe, expect, test } from '@jest/globals';
import { timeOrPosition, timeOrRevision, timeValue } from '../../cli/options.ts';
import { runCli } from '../support/cli.ts';

const FORM = 'It must be a time with its zone, such as 2026-11-01T00:00:00Z';

describe('a day alone is refused before any request, with the option and what it takes', () => {
  test.each([
    ['--from <from>', ['export', '--out', 'out.jsonl', '--from'], ', or a position'],
    ['--to <time>', ['export', '--out', 'out.jsonl', '--to'], '.'],
    ['--from <time>', ['find', '--from'], '.'],
    ['--to <time>', ['find', '--to'], '.'],
    ['--since <time>', ['webhooks', 'resend', 'we_1', '--since'], '.'],
  ])('%s of %j', async (option, args, more) => {
    const { code, stderr } = await runCli([...args, '2026-11-01']);
    expect(code).toBe(2);
    expect(stderr).toContain(`option '${option}' argument '2026-11-01' is invalid. ${FORM}${more}`);
  });
});

test.each([
  ...['2026-11-01T00:00:00', '2026-11-01T00:00Z', '2026-11', 'yesterday', ''],
  ...['2026-02-30T00:00:00Z', '2026-03-01T24:00:00Z', '2026-06-30T23:59:60Z'],
])('%j is neither a time nor a position nor a revision', (text) => {
  expect(() => timeValue(text)).toThrow(FORM);
  expect(() => timeOrPosition(text)).toThrow(FORM);
  expect(() => timeOrRevision(text)).toThrow('It must be a revision, or a time with its zone');
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

test('a time without its zone, or of a day that there is not, cuts no timeline', async () => {
  const args = ['events', 'pay_1', '--file', 'not read', '--at'];
  const wrong = ['2026-03-01T00:00', '2026-03-01', 'March 2026', '-1'];
  for (const at of [...wrong, '2026-02-30T00:00:00Z', '2026-03-01T24:00:00Z']) {
    const { code, stderr } = await runCli([...args, at]);
    expect([code, stderr]).toEqual([
      2,
      `error: option '--at <when>' argument '${at}' is invalid. It must be a revision, or a time with its zone, such as 2026-11-01T00:00:00Z.\n`,
    ]);
  }
});
