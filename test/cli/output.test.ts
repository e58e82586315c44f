/** What the verbs print is stored text for the most part, and a terminal obeys what it is told. */
import { describe, expect, test } from '@jest/globals';
import { columns } from '../../cli/output.ts';

describe('columns', () => {
  test('a cell makes no row of its own and moves no cursor', () => {
    const cell = 'order\u001b]0;pwned\u0007\u001b[2J\r\nnext\u009b1m';
    expect(columns([[cell, 'b']])).toEqual([
      'order\\u001b]0;pwned\\u0007\\u001b[2J\\u000d next\\u009b1m  b',
    ]);
  });

  test('styles stay, and so do letters of every script', () => {
    expect(columns([['\u001b[31mfailed\u001b[39m', 'é 金 🏦']])).toEqual([
      '\u001b[31mfailed\u001b[39m  é 金 🏦',
    ]);
  });
});
