/** `payments reconcile <paymentId>`: what the provider says of each operation, beside the log's outcome. */
import type { PaymentReconciliation } from '../command-api/reconcile/contract.ts';
import { auditClient, paymentPath } from './audit.ts';
import { jsonOf } from './client.ts';
import { CommandFailed } from './command-failed.ts';
import type { Format } from './options.ts';
import { columns, count, money, print, printJson, styled } from './output.ts';

type Compared = PaymentReconciliation['operations'][number];

const saidOf = ({ provider }: Compared): string => {
  const { outcome, providerReference, failureCode, providerFailureCode } = provider;
  return [outcome, providerReference, failureCode, providerFailureCode]
    .filter((text) => text !== undefined)
    .join(' ');
};

const findingOf = ({ finding, why }: Compared): string => {
  if (finding === 'AGREES' || finding === 'NO_ENTRY') return `${finding}: ${why}`;
  return styled(finding === 'DIFFERS' ? 'red' : 'yellow', `${finding}: ${why}`);
};

const operationRow = (one: Compared): string[] => [
  `r${one.revision}`,
  one.kind,
  money(one.amount, one.currency),
  one.log ?? 'unresolved',
  saidOf(one),
  one.operationId,
  findingOf(one),
];

const HEADER = ['INTENT', 'OPERATION', 'AMOUNT', 'LOG', 'PROVIDER', 'ID', 'FINDING'];

const showPayment = ({ operations, notCompared }: PaymentReconciliation): void => {
  print(...columns([HEADER, ...operations.map(operationRow)]));
  if (notCompared > 0) print(`${count(notCompared, 'older operation')} not compared: add --limit`);
};

/** Exit code 3 where the two differ or the log cannot be read, 1 where it is not known whether they do. */
const failUnlessEqual = (compared: PaymentReconciliation): void => {
  const { ok, paymentId, operations, unreadable } = compared;
  if (ok) return;
  if (unreadable !== undefined)
    throw new CommandFailed(`payment ${paymentId} cannot be compared: ${unreadable}`, 3);
  const differing = operations.filter(({ finding }) => finding === 'DIFFERS').length;
  if (differing > 0)
    throw new CommandFailed(
      `${count(differing, 'difference')}; next: payments events ${paymentId}`,
      3,
    );
  throw new CommandFailed(
    'not every operation could be compared; the provider is not taken to agree',
  );
};

/** Prints each operation with its finding; throws CommandFailed unless log and provider agree. */
export const reconcilePayment = async (
  paymentId: string,
  { merchant, limit, format }: { merchant?: string; limit?: string; format: Format },
): Promise<void> => {
  const client = await auditClient(merchant);
  const path = paymentPath(paymentId, 'reconcile', { limit });
  const result = await jsonOf<PaymentReconciliation>(client.get(path));
  if (format === 'json') printJson(result);
  else if (result.unreadable === undefined) showPayment(result);
  failUnlessEqual(result);
};
