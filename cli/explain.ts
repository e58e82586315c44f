/** `payments explain`: whether a command would be allowed, now or at a moment, and which events forbid it. */
import { Argument, type Command } from 'commander';
import type { AuditExplanation, AuditForbidding } from '../audit/contract.ts';
import { atOf, auditClient, dateAndClockOf, failIfBroken, paymentPath } from './audit.ts';
import { jsonOf } from './client.ts';
import { dataOption, formatted, type Given, timeOrRevision } from './options.ts';
import { columns, failOnMisfit, moneyText, print, printJson, styled } from './output.ts';

type Options = Given<'amount' | 'at' | 'merchant' | 'data'>;

const rowOf = ({ time, revision, position, type, why }: AuditForbidding): string[] => [
  `  ${dateAndClockOf(time)}`,
  `r${revision}`,
  `#${position}`,
  type,
  why,
];

const show = (explanation: AuditExplanation, at: string | undefined): void => {
  const { command, allowed, status = 'not shown', amount, currency, code, details } = explanation;
  const then = at === undefined ? '' : ` at ${at}`;
  const isWhole = amount === undefined || currency === undefined;
  const ofAmount = isWhole ? '' : ` of ${moneyText(amount, currency)}`;
  const decision = allowed
    ? styled('green', at === undefined ? 'would be allowed' : 'would have been allowed')
    : styled('red', `refused: ${code}`);
  print(
    `${command}${ofAmount} ${decision}${then}  (the payment ${at === undefined ? 'is' : 'was'} ${status})`,
    ...details.map((d) => `  ${d}`),
  );
  if (explanation.forbiddenBy.length > 0)
    print('because of', ...columns(explanation.forbiddenBy.map(rowOf)));
  if (explanation.declined.length > 0) {
    const rows = explanation.declined.map((one) => [
      ...rowOf(one),
      one.failureCode,
      one.providerFailureCode ?? '',
    ]);
    print('declined or never carried out before', ...columns(rows));
  }
};

const explain = async (paymentId: string, command: string, options: Options): Promise<void> => {
  const { amount, at, merchant, data, format } = options;
  const client = await auditClient(merchant, data);
  const path = paymentPath(paymentId, 'explain', { command, amount, ...atOf(at) });
  const explanation = await jsonOf<AuditExplanation>(client.get(path));
  if (format === 'json') printJson(explanation);
  else show(explanation, at);
  failIfBroken(`payment ${paymentId}`, explanation.broken);
  failOnMisfit(client);
};

export const explainCommand = (): Command =>
  formatted('explain', 'payments explain pay_01… refund --amount 2000 --at 2026-03-03T12:00:00Z')
    .description('Says whether a command would be allowed, and which events forbid it.')
    .argument('<paymentId>', 'the payment')
    .addArgument(new Argument('<command>', 'the command').choices(['capture', 'void', 'refund']))
    .option('--amount <minor>', 'in minor units; left out: the whole remaining amount')
    .option(
      '--at <moment>',
      'a revision or a time: whether it would have been allowed then',
      timeOrRevision,
    )
    .addOption(dataOption())
    .option('--merchant <id>', 'as this merchant sees it')
    .action(explain);
