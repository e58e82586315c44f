/**
 * `payments reconcile`: lists what the log and the provider's ledger differ in; exit code 3 if any. With a
 * payment, what the provider says of each of its operations.
 */
import { Command } from 'commander';
import type { Acknowledgement } from '../command-api/provider-ahead/routes.ts';
import type { Reconciliation } from '../command-api/reconcile/contract.ts';
import type { Difference } from '../command-api/reconcile/differences.ts';
import { auditClient, dataOption, serverSentEvents } from './audit.ts';
import { jsonOf, openClient, rejectionLine } from './client.ts';
import { CommandFailed } from './command-failed.ts';
import {
  columns,
  count,
  type Format,
  formatOption,
  money,
  print,
  printJson,
  styled,
} from './output.ts';
import { failureOf } from './reconcile-next.ts';
import { reconcilePayment } from './reconcile-payment.ts';

const sideOf = (side: Difference['log'] | Difference['provider']): string =>
  side === undefined
    ? 'nothing'
    : `${side.kind} ${money(side.amount, side.currency)} ${side.outcome ?? 'unresolved'}`;

const rowOf = ({ kind, paymentId, operationId, log, provider }: Difference): string[] => [
  kind,
  paymentId,
  operationId,
  sideOf(log),
  sideOf(provider),
];

const HEADER = ['DIFFERENCE', 'PAYMENT', 'OPERATION', 'LOG', 'PROVIDER'];

const reasonsOf = (differences: readonly Difference[]): string[] =>
  differences.flatMap(({ operationId, log }) =>
    log?.reason === undefined ? [] : [`${operationId}: in the log ${log.reason}`],
  );

const agreement = ({ ok, notCompared, differences }: Reconciliation): string => {
  if (ok) return styled('green', 'agree');
  if (differences.length > 0) return styled('red', 'differ');
  return styled('red', notCompared > 0 ? 'could not be compared to the end' : 'agree in part');
};

const show = (result: Reconciliation): void => {
  const { operations, atOtherProviders, entries, unreadableEvents, differences, more } = result;
  print(
    `log and provider ${agreement(result)}: ${operations} operations, ${entries} ledger entries`,
  );
  if (atOtherProviders > 0)
    print(`not compared: ${count(atOtherProviders, 'operation')} that other providers were sent`);
  for (const { paymentId, position, revision, reason } of unreadableEvents) {
    print(`not readable: ${paymentId}, revision ${revision}, position ${position}: ${reason}`);
  }
  if (differences.length > 0) print(...columns([HEADER, ...differences.map(rowOf)]));
  print(...reasonsOf(differences));
  if (more > 0) print(`and ${count(more, 'more difference')}`);
};

/** The comparison may take as long as the ledger is long: as a stream nobody on the way gives it up. */
const compare = async (data: string | undefined): Promise<Reconciliation> => {
  const client = await auditClient(undefined, data);
  const accept = { accept: 'text/event-stream' };
  const response = await client.post('/audit/v1/reconcile', undefined, accept);
  for await (const { event, data: text } of serverSentEvents(response)) {
    if (event === 'failed') throw new CommandFailed(rejectionLine(503, text));
    if (event === 'result') return JSON.parse(text);
  }
  throw new CommandFailed('the connection was lost before the result; start the comparison again');
};

const acknowledge = async (): Promise<Acknowledgement> => {
  const client = await openClient({ scope: 'ops:admin' });
  return jsonOf<Acknowledgement>(client.post('/ops/v1/reconcile/acknowledge'));
};

const acknowledgedLine = ({ acknowledged, cursor }: Acknowledgement): string =>
  acknowledged
    ? `acknowledged up to entry ${cursor} of the ledger: requests that move money are served again`
    : 'nothing to acknowledge: the log holds the latest operations of the provider';

type Options = {
  data?: string;
  format: Format;
  acknowledge?: true;
  merchant?: string;
  limit?: string;
};

const reconcile = async (paymentId: string | undefined, options: Options): Promise<void> => {
  const { data, format, acknowledge: opens } = options;
  if (paymentId !== undefined) {
    if (data === undefined && !opens) return reconcilePayment(paymentId, options);
    throw new CommandFailed('--data and --acknowledge are not for one payment', 2);
  }
  if ((options.limit ?? options.merchant) !== undefined)
    throw new CommandFailed('--limit and --merchant are for one payment: name it', 2);
  const result = await compare(data);
  if (format !== 'json') show(result);
  const acknowledgement = opens && (await acknowledge());
  if (format === 'json') printJson({ ...result, acknowledgement });
  if (acknowledgement !== undefined) {
    if (format !== 'json') print(acknowledgedLine(acknowledgement));
    return;
  }
  if (!result.ok) throw new CommandFailed(failureOf(result), 3);
};

/** The verb `reconcile`. */
export const reconcileCommand = (): Command =>
  new Command('reconcile')
    .description(
      "Compares every sum of the provider's ledger with the log, or asks it about one payment.",
    )
    .argument('[paymentId]', 'ask the provider about the operations of this payment alone')
    .option('--limit <n>', 'of one payment: its last operations, up to 100; left out: 20')
    .option('--merchant <id>', 'of one payment: as this merchant sees it')
    .addOption(dataOption().conflicts('acknowledge'))
    .addOption(formatOption())
    .option(
      '--acknowledge',
      'then let merchants move money again, where the service serves reads alone because the provider is ahead of the log; recorded with your name',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  payments reconcile --format json\n  payments reconcile pay_01…\n  payments reconcile --acknowledge',
    )
    .action(reconcile);
