/** The banner tells an operator in a hurry what runs, where, and what is still missing. */

import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { expect, test } from '@jest/globals';
import { bannerOf } from '../../shared/runtime/process-life.ts';

test('a process that waits for an engine names it, and is not ready', () => {
  const addresses = [['API', 'http://127.0.0.1:8082']] as const;
  const banner = (waitsFor: string[]) =>
    bannerOf({ what: 'query-api', addresses }, waitsFor, ['HOST is odd'], new PassThrough());
  const waiting = banner(['eventStore (event store: access denied)']);
  expect(stripVTControlCharacters(waiting).split('\n')).toEqual([
    expect.stringMatching(/^payments \S+ {2}query-api {3}listens, not ready yet$/),
    '  API      http://127.0.0.1:8082',
    '  Waits for: eventStore (event store: access denied)',
    '  Warning: HOST is odd',
    '',
  ]);
  expect(banner([])).toMatch(/query-api {3}ready in \d+\.\d s\n/);
});
