/** The banner tells an operator in a hurry what runs, where, and what is still missing. */

import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { expect, test } from '@jest/globals';
import { bannerOf } from '../../shared/runtime/process-life.ts';

test('a process that waits for an engine names it, and is not ready', () => {
  const facts = {
    what: 'query-api',
    addresses: [['API', 'http://127.0.0.1:8082']],
    waitsFor: ['eventStore (event store: access denied)'],
    notForProduction: [],
    warnings: ['JWT_AUDIENCE is not set, so it is not checked'],
  } as const;
  expect(stripVTControlCharacters(bannerOf(facts, new PassThrough())).split('\n')).toEqual([
    expect.stringMatching(/^payments \S+ {2}query-api {3}listens, not ready yet$/),
    '  API      http://127.0.0.1:8082',
    '  Waits for: eventStore (event store: access denied)',
    '  Warning: JWT_AUDIENCE is not set, so it is not checked',
    '',
  ]);
  const ready = bannerOf({ ...facts, waitsFor: [] }, new PassThrough());
  expect(ready).toMatch(/query-api {3}ready in \d+\.\d s\n/);
});
