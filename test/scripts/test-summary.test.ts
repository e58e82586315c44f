/** `npm test` closes with one line that a script can trust. */
import { describe, expect, test } from '@jest/globals';
import { type JestReport, summaryOf } from '../../scripts/test-summary.ts';

const report = (changes: Partial<JestReport>): JestReport => ({
  numPassedTests: 3,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  numRuntimeErrorTestSuites: 0,
  testResults: [],
  ...changes,
});

describe('the closing line of a test run', () => {
  test.each<[string, JestReport | undefined, number, string, number]>([
    ['all is well', report({}), 0, '3 passed, 0 failed, 0 skipped', 0],
    ['a test failed', report({ numFailedTests: 2 }), 1, '3 passed, 2 failed, 0 skipped', 1],
    [
      'a file could not be run',
      report({ numRuntimeErrorTestSuites: 1 }),
      1,
      '3 passed, 1 failed, 0 skipped',
      1,
    ],
    [
      'everything was skipped',
      report({ numPassedTests: 0, numPendingTests: 4 }),
      0,
      '0 passed, 0 failed, 4 skipped',
      1,
    ],
    ['nothing was found', report({ numPassedTests: 0 }), 0, '0 passed, 0 failed, 0 skipped', 1],
    ['the runner broke down', undefined, 0, '0 passed, 1 failed, 0 skipped', 1],
    ['the runner ended badly', report({}), 3, '3 passed, 0 failed, 0 skipped', 3],
  ])('%s', (_, given, code, line, exitCode) => {
    const summary = summaryOf(given, code);
    expect(summary.lines.at(-1)).toBe(line);
    expect(summary.exitCode).toBe(exitCode);
  });

  test('the name of every skipped test comes before it, for the name carries the reason', () => {
    const testResults = [
      {
        assertionResults: [
          { status: 'passed', fullName: 'one' },
          { status: 'pending', fullName: 'store on a server (not reachable): two' },
        ],
      },
    ];
    const { lines } = summaryOf(report({ numPendingTests: 1, testResults }), 0);
    expect(lines[0]).toBe('skipped: store on a server (not reachable): two');
  });

  const twoSkipped = (group: string) => [
    {
      assertionResults: ['one', 'two'].map((name) => ({
        status: 'pending',
        fullName: `${group} ${name}`,
        ancestorTitles: [group],
      })),
    },
  ];

  test('a group that was skipped whole is one line', () => {
    const testResults = twoSkipped('store (A_URL is not set)');
    const { lines } = summaryOf(report({ numPendingTests: 2, testResults }), 0);
    expect(lines).toEqual([
      'skipped: store (A_URL is not set): 2 tests',
      '3 passed, 0 failed, 2 skipped',
    ]);
  });

  test('a test that was skipped among others is named, for its own name carries the reason', () => {
    const [file] = twoSkipped('store');
    const passed = { status: 'passed', fullName: 'store three', ancestorTitles: ['store'] };
    const testResults = [{ assertionResults: [...(file?.assertionResults ?? []), passed] }];
    const { lines } = summaryOf(report({ numPendingTests: 2, testResults }), 0);
    expect(lines.slice(0, 2)).toEqual(['skipped: store one', 'skipped: store two']);
  });

  test.each([
    ['A_URL', 1],
    ['B_URL', 0],
  ])('a skip for want of %s, where A_URL is required, ends with %i', (wanted, exitCode) => {
    const testResults = twoSkipped(`store (${wanted} is not reachable)`);
    const summary = summaryOf(report({ numPendingTests: 2, testResults }), 0, ['A_URL']);
    expect(summary.exitCode).toBe(exitCode);
  });
});
