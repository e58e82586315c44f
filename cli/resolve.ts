/** `payments resolve`: one person's word for the outcome of an operation (gaps §16, ADR-0098). */
import { Command, Option } from 'commander';
import type { Resolution, ResolutionRequested } from '../command-api/operator/contract.ts';
import { jsonOf, openClient } from './client.ts';
import { type Format, formatOption } from './options.ts';
import { note, print, printJson } from './output.ts';

type Options = {
  outcome: 'approved' | 'declined';
  evidence: string;
  operation?: string;
  withoutFence?: true;
  format: Format;
};

const resolve = async (paymentId: string, options: Options): Promise<void> => {
  const { outcome, evidence, operation: operationId, withoutFence, format } = options;
  const client = await openClient({ scope: 'ops:resolve' });
  const path = `/ops/v1/payments/${encodeURIComponent(paymentId)}/resolve`;
  const body = {
    outcome,
    evidence,
    ...(operationId !== undefined && { operationId }),
    ...(withoutFence && { withoutFence }),
  };
  const resolved = await jsonOf<Resolution | ResolutionRequested>(client.post(path, body));
  if (format === 'json') return printJson(resolved);
  if ('request' in resolved) return printRequested(paymentId, resolved, options);
  const { operation, status, revision, confirmed } = resolved;
  print(`${paymentId}  ${operation} ${outcome}, now ${status} (revision ${revision})`);
  note(
    confirmed
      ? 'The contradiction is ended: the provider is not asked any more'
      : 'The provider is asked on until it says the same: payments unresolved',
  );
};

const printRequested = (
  paymentId: string,
  { operation, operationId, status, request: { requestedBy, expiresAt } }: ResolutionRequested,
  { outcome, withoutFence }: Options,
): void => {
  print(`${paymentId}  ${operation} ${outcome}: requested by ${requestedBy}, still ${status}`);
  const flags = `--operation ${operationId}${withoutFence ? ' --without-fence' : ''}`;
  note(
    `Nothing is recorded yet: a second person has to approve before ${expiresAt}, with a token of their own in PAYMENTS_TOKEN:`,
    `  payments resolve ${paymentId} --outcome ${outcome} ${flags} --evidence "…"`,
  );
};

export const resolveCommand = (): Command =>
  new Command('resolve')
    .description(
      'Resolves an operation whose outcome the provider does not report. The first person requests it, a second one approves it by the same command within 24 hours. The provider is asked first: if it reports a definite outcome, that one is recorded and this command is refused.',
    )
    .addHelpText(
      'after',
      '\nExample:\n  payments token --merchant "*" --scope ops:resolve --subject ann@example.com\n  PAYMENTS_TOKEN=… payments resolve pay_01J… --outcome declined --without-fence --evidence "letter of the provider, case 4711"',
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
    .option(
      '--without-fence',
      'declined although the provider does not promise never to carry it out',
    )
    .addOption(formatOption())
    .action(resolve);
