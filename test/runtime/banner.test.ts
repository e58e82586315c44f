/** The banner tells an operator in a hurry what runs, where, and what is still missing. */

import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { bannerOf } from '../../shared/runtime/process-life.ts';

const banner = (waitsFor: string[]): string[] =>
  stripVTControlCharacters(
    bannerOf(
      {
        what: 'query-api',
        addresses: [['API', 'http://127.0.0.1:8082']],
        waitsFor,
        notForProduction: [],
        warnings: ['JWT_AUDIENCE is not set, so it is not checked'],
      },
      new PassThrough(),
    ),
  ).split('\n');

describe('the banner', () => {
  test('says that the process is ready, and how long its start took', () => {
    expect(banner([])).toEqual([
      expect.stringMatching(/^payments \S+ {2}query-api {3}ready in \d+\.\d s$/),
      '  API      http://127.0.0.1:8082',
      '  Warning: JWT_AUDIENCE is not set, so it is not checked',
      '',
    ]);
  });

  test('names what the process waits for, and is not ready', () => {
    expect(banner(['eventStore (event store: access denied)'])).toEqual([
      expect.stringMatching(/^payments \S+ {2}query-api {3}listens, not ready yet$/),
      '  API      http://127.0.0.1:8082',
      '  Waits for: eventStore (event store: access denied)',
      '  Warning: JWT_AUDIENCE is not set, so it is not checked',
      '',
    ]);
  });
});
