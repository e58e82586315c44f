/** `payments reconcile`: which of its options go together. */
import { expect, test } from '@jest/globals';
import { runCli } from '../support/cli.ts';

test.each([
  [['--merchant', 'm_1'], '--limit and --merchant are for one payment: name it'],
  [['--limit', '5'], '--limit and --merchant are for one payment: name it'],
  [['pay_1', '--data', 'folder'], '--data, --since and --acknowledge are not for one payment'],
  [['pay_1', '--acknowledge'], '--data, --since and --acknowledge are not for one payment'],
  [
    ['pay_1', '--since', '2026-11-01T00:00:00Z'],
    '--data, --since and --acknowledge are not for one payment',
  ],
])('reconcile %j is wrong usage, and no request is made', async (args, why) => {
  const { code, stderr } = await runCli(['reconcile', ...args]);
  expect([code, stderr]).toEqual([2, `payments: ${why}\n`]);
});
