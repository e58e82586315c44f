/** `payments reconcile`: lists what the log and the provider's ledger differ in; exit code 3 if any. */
import { Command } from 'commander';
import type { Difference, Reconciliation } from '../command-api/reconcile/reconcile.ts';
import { auditClient } from './audit.ts';
import { jsonOf } from './client.ts';
import { CommandFailed } from './command-failed.ts';
import { columns, type Format, formatOption, money, print, printJson, styled } from './output.ts';

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

const show = ({ ok, operations, entries, unreadable, differences }: Reconciliation): void => {
  const comparison = ok ? styled('green', 'agree') : styled('red', 'differ');
  print(`log and provider ${comparison}: ${operations} operations, ${entries} ledger entries`);
  if (unreadable > 0) print(`${unreadable} events cannot be read; next: payments verify --all`);
  if (differences.length > 0) print(...columns([HEADER, ...differences.map(rowOf)]));
};

const reconcile = async ({ format }: { format: Format }): Promise<void> => {
  const client = await auditClient();
  const result = await jsonOf<Reconciliation>(client.post('/audit/v1/reconcile'));
  if (format === 'json') printJson(result);
  else show(result);
  if (result.ok) return;
  const count = result.differences.length + result.more;
  throw new CommandFailed(`${count} differences; next: payments events <payment> for each`, 3);
};

/** The verb `reconcile`. */
export const reconcileCommand = (): Command =>
  new Command('reconcile')
    .description("Compares the provider's ledger with the log and lists every difference.")
    .addOption(formatOption())
    .addHelpText('after', '\nExample:\n  payments reconcile --format json')
    .action(reconcile);
