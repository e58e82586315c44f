/** What a test run comes to: the skipped tests by name, the closing line and the exit code. */

/** The part of Jest's `--json` report that is read here. */
export type JestReport = {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  /** Files that could not be run at all: none of their tests is counted elsewhere. */
  numRuntimeErrorTestSuites: number;
  testResults: { assertionResults: { status: string; fullName: string }[] }[];
};

export type TestSummary = { lines: string[]; exitCode: number };

const skipsOf = (report: JestReport): string[] =>
  report.testResults
    .flatMap((file) => file.assertionResults)
    .filter(({ status }) => status === 'pending' || status === 'todo')
    .map(({ fullName }) => `skipped: ${fullName}`);

/**
 * The report of a run that ended with `code`; undefined when there is none. A file that could not
 * be run counts as a failed test, and a run that executed no test has failed.
 */
export const summaryOf = (report: JestReport | undefined, code: number): TestSummary => {
  if (report === undefined) {
    return { lines: ['the tests could not be run', '0 passed, 1 failed, 0 skipped'], exitCode: 1 };
  }
  const passed = report.numPassedTests;
  const failed = report.numFailedTests + report.numRuntimeErrorTestSuites;
  const skipped = report.numPendingTests + report.numTodoTests;
  const nothingRan = passed + failed === 0;
  const lines = [
    ...skipsOf(report),
    ...(nothingRan ? ['no test was executed'] : []),
    `${passed} passed, ${failed} failed, ${skipped} skipped`,
  ];
  return { lines, exitCode: failed > 0 || nothingRan ? 1 : code };
};
