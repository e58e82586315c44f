/** `payments reconcile`: which of its options go together, and the next step for each kind of difference. */
import { expect, test } from '@jest/globals';
import { failureText } from '../../cli/reconcile.ts';
import {
  DIFFERENCE_KINDS,
  type Difference,
} from '../../command-api/back-office/reconcile/differences.ts';
import { runCli } from '../support/cli.ts';

type Kind = Difference['kind'];

const resultOf = (found: Partial<Record<Kind, number>>, more = 0) => {
  const kinds = Object.entries(found) as [Kind, number][];
  const none = Object.fromEntries(DIFFERENCE_KINDS.map((kind) => [kind, 0])) as Record<
    Kind,
    number
  >;
  const differences = kinds
    .flatMap(([kind, times]) => Array<Kind>(times).fill(kind))
    .slice(more)
    .map((kind) => ({ kind, operationId: 'op_1', paymentId: 'pay_1' }));
  return { differences, more, byKind: { ...none, ...found }, unreadable: 0, notCompared: 0 };
};

test('M5: of what the log does not hold, no step reads its events; the list is kept, then the service is opened', () => {
  const line = failureText(resultOf({ MISSING_IN_LOG: 3 }, 2));
  expect(line).toMatch(
    /^3 differences; next: for 3 MISSING_IN_LOG: keep this list \(--format json\)/,
  );
  expect(line).toMatch(/Idempotency-Key, then payments reconcile --acknowledge/);
  expect(line).not.toContain('payments events');
});

test('M5: each kind has its own step', () => {
  const found = {
    OUTCOME_DIFFERS: 1,
    UNRESOLVED_IN_LOG: 2,
    UNREADABLE_IN_LOG: 1,
    AMOUNT_DIFFERS: 1,
  };
  expect(failureText(resultOf(found))).toBe(
    '5 differences; next: for 1 UNREADABLE_IN_LOG: payments verify <payment> for each; for 2 UNRESOLVED_IN_LOG: payments unresolved; for 1 OUTCOME_DIFFERS, 1 AMOUNT_DIFFERS: payments events <payment> for each',
  );
});

test('events that cannot be read lead to a verification, and an intact log to the version that wrote them', () => {
  expect(failureText({ ...resultOf({}), unreadable: 1 })).toBe(
    '1 event cannot be read; next: payments verify --all says whether the log was changed; if it is intact, start the version that wrote them',
  );
});

test.each([
  [['--merchant', 'm_1'], '--limit and --merchant are for one payment: name it'],
  [['--limit', '5'], '--limit and --merchant are for one payment: name it'],
  [
    ['pay_1', '--data', 'folder'],
    '--data, --since, --all and --acknowledge are not for one payment',
  ],
  [['pay_1', '--acknowledge'], '--data, --since, --all and --acknowledge are not for one payment'],
  [
    ['pay_1', '--since', '2026-11-01T00:00:00Z'],
    '--data, --since, --all and --acknowledge are not for one payment',
  ],
])('reconcile %j is wrong usage, and no request is made', async (args, why) => {
  const { code, stderr } = await runCli(['reconcile', ...args]);
  expect([code, stderr]).toEqual([2, `payments: ${why}\n`]);
});
