/** `payments resolve`: ends an operation whose outcome the provider will never report (ADR-0013). */
import { Command, Option } from 'commander';
import { jsonOf, openClient } from './client.ts';
import { type Format, formatOption, print, printJson } from './output.ts';

type Options = {
  outcome: 'approved' | 'declined';
  evidence: string;
  operation?: string;
  format: Format;
};

type Resolved = { operation: string; outcome: string; status: string; revision: number };

const resolve = async (paymentId: string, options: Options): Promise<void> => {
  const { outcome, evidence, operation: operationId, format } = options;
  const client = await openClient({ scope: 'ops:admin' });
  const path = `/ops/v1/payments/${encodeURIComponent(paymentId)}/resolve`;
  const body = { outcome, evidence, ...(operationId !== undefined && { operationId }) };
  const resolved = await jsonOf<Resolved>(client.post(path, body));
  if (format === 'json') return printJson(resolved);
  const { operation, status, revision } = resolved;
  print(`${paymentId}  ${operation} ${outcome}, now ${status} (revision ${revision})`);
};

/** The verb `resolve`. */
export const resolveCommand = (): Command =>
  new Command('resolve')
    .description(
      'Records the outcome of an operation that the provider will never report. The provider is asked first: if it reports a definite outcome, that one is recorded and this command is refused.',
    )
    .argument('<paymentId>', 'the payment, see payments unresolved')
    .addOption(
      new Option('--outcome <outcome>', 'the outcome of the operation')
        .choices(['approved', 'declined'])
        .makeOptionMandatory(),
    )
    .requiredOption(
      '--evidence <text>',
      'how you know the outcome; stored for auditors, must hold no card number',
    )
    .option('--operation <id>', 'the operation id, where several operations are unresolved')
    .addOption(formatOption())
    .addHelpText(
      'after',
      '\nExample:\n  payments resolve pay_01J… --outcome declined --evidence "letter of the provider, case 4711"',
    )
    .action(resolve);
