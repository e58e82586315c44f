/** The summary of a test run: the skipped tests by name, the last line and the exit code. */

/** The fields of Jest's `--json` report that are used here. */
export type JestReport = {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  /** Files that could not be run at all: the other numbers do not include their tests. */
  numRuntimeErrorTestSuites: number;
  testResults: { assertionResults: TestResult[] }[];
};

type TestResult = { status: string; fullName: string; ancestorTitles?: string[] };

type TestSummary = { lines: string[]; exitCode: number };

const isSkipped = ({ status }: TestResult): boolean => status === 'pending' || status === 'todo';
const groupOf = ({ ancestorTitles, fullName }: TestResult): string =>
  ancestorTitles?.[0] ?? fullName;

/**
 * One line for each group that was skipped as a whole, with its size, and for each other skipped
 * test. The names of the tests hold the reason.
 */
const skipsOf = (report: JestReport): string[] => {
  const all = report.testResults.flatMap((file) => file.assertionResults);
  const running = new Set(all.filter((test) => !isSkipped(test)).map(groupOf));
  const nameOf = (test: TestResult): string =>
    running.has(groupOf(test)) ? test.fullName : groupOf(test);
  return [...Map.groupBy(all.filter(isSkipped), nameOf)].map(([name, tests]) =>
    tests.length === 1
      ? `skipped: ${tests[0]?.fullName}`
      : `skipped: ${name}: ${tests.length} tests`,
  );
};

/**
 * The summary of a run that ended with `code`; its report is undefined when Jest wrote none. A file
 * that could not be run counts as a failed test. A run without any executed test has failed, and so
 * has one that skipped tests for a `required` variable, whose engine was started for them.
 */
export const summaryOf = (
  report: JestReport | undefined,
  code: number,
  required: readonly string[] = [],
): TestSummary => {
  if (report === undefined) {
    return { lines: ['the tests could not be run', '0 passed, 1 failed, 0 skipped'], exitCode: 1 };
  }
  const passed = report.numPassedTests;
  const failed = report.numFailedTests + report.numRuntimeErrorTestSuites;
  const skipped = report.numPendingTests + report.numTodoTests;
  const nothingRan = passed + failed === 0;
  const skips = skipsOf(report);
  const missed = required.filter((name) => skips.some((line) => line.includes(name)));
  const lines = [
    ...skips,
    ...missed.map((name) => `not allowed: tests were skipped that ${name} was set for`),
    ...(nothingRan ? ['no test was executed'] : []),
    `${passed} passed, ${failed} failed, ${skipped} skipped`,
  ];
  return { lines, exitCode: failed > 0 || nothingRan || missed.length > 0 ? 1 : code };
};
