/** `payments explain`: whether a command would be allowed now, and if not, which events forbid it. */
import { Argument, Command } from 'commander';
import type { AuditExplanation, AuditForbidding } from '../audit/contract.ts';
import { auditClient, dateAndClockOf, failIfBroken, paymentPath } from './audit.ts';
import { jsonOf } from './client.ts';
import { dataOption, type Format, formatOption } from './options.ts';
import { columns, money, print, printJson, styled } from './output.ts';

type Options = { amount?: string; merchant?: string; data?: string; format: Format };

const rowOf = ({ time, revision, position, type, why }: AuditForbidding): string[] => [
  `  ${dateAndClockOf(time)}`,
  `r${revision}`,
  `#${position}`,
  type,
  why,
];

const show = (explanation: AuditExplanation): void => {
  const { command, allowed, status = 'not shown', amount, currency, code, details } = explanation;
  const isWhole = amount === undefined || currency === undefined;
  const ofAmount = isWhole ? '' : ` of ${money(amount, currency)}`;
  const decision = allowed
    ? styled('green', 'would be allowed')
    : styled('red', `refused: ${code}`);
  print(
    `${command}${ofAmount} ${decision}  (the payment is ${status})`,
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
  const { amount, merchant, data, format } = options;
  const client = await auditClient(merchant, data);
  const path = paymentPath(paymentId, 'explain', { command, amount });
  const explanation = await jsonOf<AuditExplanation>(client.get(path));
  if (format === 'json') printJson(explanation);
  else show(explanation);
  failIfBroken(`payment ${paymentId}`, explanation.broken);
};

export const explainCommand = (): Command =>
  new Command('explain')
    .description('Says whether a command would be allowed now, and which events forbid it.')
    .addHelpText('after', '\nExample:\n  payments explain pay_01… refund --amount 2000')
    .argument('<paymentId>', 'the payment')
    .addArgument(new Argument('<command>', 'the command').choices(['capture', 'void', 'refund']))
    .option('--amount <minor>', 'in minor units; left out: the whole remaining amount')
    .addOption(dataOption())
    .option('--merchant <id>', 'as this merchant sees it')
    .addOption(formatOption())
    .action(explain);
