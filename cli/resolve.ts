/** `payments settle`: ends an operation that the provider will never answer for (decision 0013). */
import { Command, Option } from 'commander';
import { jsonOf, openClient } from './client.ts';
import { type Format, formatOption, print, printJson } from './output.ts';

type Options = {
  outcome: 'approved' | 'declined';
  evidence: string;
  operation?: string;
  format: Format;
};

type Settled = { operation: string; outcome: string; status: string; revision: number };

const settle = async (paymentId: string, options: Options): Promise<void> => {
  const { outcome, evidence, operation: operationId, format } = options;
  const client = await openClient({ scope: 'ops:admin' });
  const path = `/ops/v1/payments/${encodeURIComponent(paymentId)}/settle`;
  const body = { outcome, evidence, ...(operationId !== undefined && { operationId }) };
  const settled = await jsonOf<Settled>(client.post(path, body));
  if (format === 'json') return printJson(settled);
  const { operation, status, revision } = settled;
  print(`${paymentId}  ${operation} ${outcome}, now ${status} (revision ${revision})`);
};

/** The verb `settle`. */
export const settleCommand = (): Command =>
  new Command('settle')
    .description(
      'Records what became of an operation that the provider will never answer for. It asks the provider first: a definite answer is recorded instead, and this is refused.',
    )
    .argument('<paymentId>', 'the payment, see payments unsettled')
    .addOption(
      new Option('--outcome <outcome>', 'what became of it')
        .choices(['approved', 'declined'])
        .makeOptionMandatory(),
    )
    .requiredOption('--evidence <text>', 'how you know: kept for auditors, no card number')
    .option('--operation <id>', 'which one, where several are open')
    .addOption(formatOption())
    .addHelpText(
      'after',
      '\nExample:\n  payments settle pay_01J… --outcome declined --evidence "letter of the provider, case 4711"',
    )
    .action(settle);
