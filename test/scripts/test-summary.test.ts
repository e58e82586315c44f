/** `npm test` ends with one line of counts, and an exit code that agrees with it. */
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

describe('the last line of a test run', () => {
  test.each<[string, JestReport | undefined, number, string, number]>([
    ['every test passed', report({}), 0, '3 passed, 0 failed, 0 skipped', 0],
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
    ['the runner wrote no report', undefined, 0, '0 passed, 1 failed, 0 skipped', 1],
    ['the runner ended with another exit code', report({}), 3, '3 passed, 0 failed, 0 skipped', 3],
  ])('when %s', (_, given, code, line, exitCode) => {
    const summary = summaryOf(given, code);
    expect(summary.lines.at(-1)).toBe(line);
    expect(summary.exitCode).toBe(exitCode);
  });

  test('comes after the name of every skipped test, for the name holds the reason', () => {
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

  test('comes after one line for a group that was skipped as a whole', () => {
    const testResults = twoSkipped('store (A_URL is not set)');
    const { lines } = summaryOf(report({ numPendingTests: 2, testResults }), 0);
    expect(lines).toEqual([
      'skipped: store (A_URL is not set): 2 tests',
      '3 passed, 0 failed, 2 skipped',
    ]);
  });

  test('comes after the name of each test that was skipped in a group that ran', () => {
    const [file] = twoSkipped('store');
    const passed = { status: 'passed', fullName: 'store three', ancestorTitles: ['store'] };
    const testResults = [{ assertionResults: [...(file?.assertionResults ?? []), passed] }];
    const { lines } = summaryOf(report({ numPendingTests: 2, testResults }), 0);
    expect(lines.slice(0, 2)).toEqual(['skipped: store one', 'skipped: store two']);
  });

  test.each([
    ['A_URL', 1],
    ['B_URL', 0],
  ])(
    'a skip because %s is not reachable, where A_URL is required, gives the exit code %i',
    (wanted, exitCode) => {
      const testResults = twoSkipped(`store (${wanted} is not reachable)`);
      const summary = summaryOf(report({ numPendingTests: 2, testResults }), 0, ['A_URL']);
      expect(summary.exitCode).toBe(exitCode);
    },
  );
});
