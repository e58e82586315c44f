/** `payments unresolved`: operations whose outcome at the provider is not known (ADR-0013). */
import { Command } from 'commander';
import { jsonOf, openClient } from './client.ts';
import { columns, type Format, formatOption, note, print, printJson } from './output.ts';

type Unresolved = {
  paymentId: string;
  merchantId: string;
  operation: string;
  operationId: string;
  amountMinor: number;
  since: string;
  attempts: number;
  nextAttemptAt: string | null;
};

const UNITS: [name: string, seconds: number][] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
];

/** A span in its largest whole unit: 90 s is `1 min`. */
const span = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [name, size] = UNITS.find(([, unit]) => seconds >= unit) ?? ['s', 1];
  return `${Math.floor(seconds / size)} ${name}`;
};

const nextOf = ({ nextAttemptAt, attempts }: Unresolved): string => {
  if (nextAttemptAt !== null) return `in ${span(Date.parse(nextAttemptAt) - Date.now())}`;
  return attempts > 0 ? 'now' : 'by the process that sent it';
};

const HEAD = [
  'PAYMENT',
  'MERCHANT',
  'OPERATION',
  'AMOUNT (MINOR)',
  'AGE',
  'ATTEMPTS',
  'NEXT ATTEMPT',
  'ID',
];

const rowOf = (one: Unresolved): string[] => [
  one.paymentId,
  one.merchantId,
  one.operation,
  String(one.amountMinor),
  span(Date.now() - Date.parse(one.since)),
  String(one.attempts),
  nextOf(one),
  one.operationId,
];

const list = async ({ format }: { format: Format }): Promise<void> => {
  const client = await openClient({ scope: 'ops:admin' });
  const { unresolved } = await jsonOf<{ unresolved: Unresolved[] }>(
    client.get('/ops/v1/unresolved'),
  );
  if (format === 'json') return printJson(unresolved);
  if (unresolved.length === 0) return note('Nothing is unresolved.');
  print(...columns([HEAD, ...unresolved.map(rowOf)]));
  note('Where the provider will never report the outcome: payments resolve <paymentId> --help');
};

/** The verb `unresolved`. */
export const unresolvedCommand = (): Command =>
  new Command('unresolved')
    .description('Lists operations whose outcome at the provider is not known, the oldest first.')
    .addOption(formatOption())
    .addHelpText('after', '\nExample:\n  payments unresolved --format json')
    .action(list);
