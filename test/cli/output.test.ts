/** The command line prints stored texts, none of which may control the terminal, and error bodies as a line. */
import { expect, test } from '@jest/globals';
import { rejectionLine } from '../../cli/client.ts';
import { columns } from '../../cli/output.ts';
import { errorBody } from '../../shared/http/errors.ts';

test.each([
  [
    'control characters as escapes, so a cell neither ends its row nor moves the cursor',
    'order\u001b]0;pwned\u0007\u001b[2J\r\nnext\u009b1m',
    'order\\u001b]0;pwned\\u0007\\u001b[2J\\u000d next\\u009b1m',
  ],
  [
    'signs that turn the direction of a text as escapes',
    'paid \u202e00.01\u202c \u2066x\u2069 \u200e\u200f\u061c \u2028',
    'paid \\u202e00.01\\u202c \\u2066x\\u2069 \\u200e\\u200f\\u061c \\u2028',
  ],
  [
    'a sequence as an escape that is none of our styles, so a cell hides nothing',
    'a\u001b[8mb\u001b[0;30;40mc\r[md\u0008[0me\u009b[1m',
    'a\\u001b[8mb\\u001b[0;30;40mc\\u000d[md\\u0008[0me\\u009b[1m',
  ],
  ['colours', '\u001b[31mfailed\u001b[39m', '\u001b[31mfailed\u001b[39m'],
  ['letters of every script', 'é 金 🏦', 'é 金 🏦'],
])('the columns of a table print %s', (_what, cell, shown) => {
  expect(columns([[cell, 'b']])).toEqual([`${shown}  b`]);
});

test.each([
  [
    'names where the reason is, where the response has none',
    [],
    '; the reason is at /health/ready of the service, or: payments doctor',
  ],
  ['has the reason that the response gives', ['too many requests'], ' (too many requests)'],
])('the line of a 503 %s', (_what, details, end) => {
  const body = errorBody('SERVICE_UNAVAILABLE', details, '2026-01-01T00:00:00.000Z');
  expect(rejectionLine(503, body)).toBe(
    `SERVICE_UNAVAILABLE: The service is unavailable for the moment${end}`,
  );
});

test('the line of a 400 leads to the options of the verb that was given, which payments help does not list', () => {
  const body = errorBody('INVALID_REQUEST', ['limit is too large'], '2026-01-01T00:00:00.000Z');
  expect(rejectionLine(400, body)).toBe(
    'INVALID_REQUEST: The request is invalid (limit is too large); see the options: the same command with --help',
  );
});
