/** `payments reconcile`: the differences between the log and the provider's ledger, or the provider's word on one payment. */
import { type Command, Option } from 'commander';
import type { Acknowledgement } from '../command-api/back-office/provider-ahead/routes.ts';
import {
  type PaymentReconciliation,
  type Reconciliation,
  WINDOW_DAYS,
} from '../command-api/back-office/reconcile/contract.ts';
import type { Difference } from '../command-api/back-office/reconcile/differences.ts';
import { auditClient, auditPath, paymentPath } from './audit.ts';
import { type Client, jsonOf, openClient, rejectionLine } from './client.ts';
import { dataOption, formatted, type Given, timeValue } from './options.ts';
import {
  CommandFailed,
  count,
  failOnMisfit,
  moneyText,
  print,
  printJson,
  styled,
  table,
  textsIn,
} from './output.ts';
import { AS_STREAM, streamResult } from './streams.ts';

type Options = Given<'data' | 'merchant' | 'limit' | 'since', 'acknowledge' | 'all'>;

/** Neither side is shown of what an earlier comparison found, and is there still. */
const sideOf = ({ log, provider }: Difference, side: Difference['log' | 'provider']): string => {
  if (side === undefined) return (log ?? provider) ? 'nothing' : 'as found earlier';
  return `${side.kind} ${moneyText(side.amount, side.currency)} ${side.outcome ?? 'unresolved'}`;
};

const differencesTable = table<Difference>({
  DIFFERENCE: ({ kind }) => kind,
  PAYMENT: ({ paymentId }) => paymentId,
  OPERATION: ({ operationId }) => operationId,
  LOG: (one) => sideOf(one, one.log),
  PROVIDER: (one) => sideOf(one, one.provider),
});

const agreement = ({ ok, notCompared, differences }: Reconciliation): string => {
  if (ok) return styled('green', 'agree');
  if (differences.length > 0) return styled('red', 'differ');
  return styled('red', notCompared > 0 ? 'could not be compared to the end' : 'agree in part');
};

const show = (result: Reconciliation, since: string | undefined): void => {
  const { operations, atOtherProviders, entries, unreadableEvents, differences, more } = result;
  const part = since === undefined ? ` of the last ${WINDOW_DAYS} days` : ` since ${since}`;
  print(
    `log and provider ${agreement(result)}: ${operations} operations, ${entries} ledger entries${result.since === undefined ? '' : part}`,
  );
  if (atOtherProviders > 0)
    print(`not compared: ${count(atOtherProviders, 'operation')} that other providers were sent`);
  for (const { paymentId, position, revision, reason } of unreadableEvents)
    print(
      `not readable: ${paymentId}, revision ${revision}${position === '' ? '' : `, position ${position}`}: ${reason}`,
    );
  if (differences.length > 0) print(...differencesTable(differences));
  for (const { operationId, log } of differences)
    if (log?.reason !== undefined) print(`${operationId}: in the log ${log.reason}`);
  if (more > 0) print(`and ${count(more, 'more difference')}`);
};

type Kind = Difference['kind'];

/** Explains each kind of difference that the payment's events do not show. */
const NEXT: Partial<Record<Kind, string>> = {
  // The log holds no event of such an operation.
  MISSING_IN_LOG:
    'keep this list (--format json); after a restore put right what was sent without an Idempotency-Key, then payments reconcile --acknowledge, and merchants repeat the rest',
  UNRESOLVED_IN_LOG: 'payments unresolved',
  UNREADABLE_IN_LOG: 'payments verify <payment> for each',
};

const stepsFor = (byKind: Reconciliation['byKind']): string[] => {
  const kinds = Object.entries(byKind).filter(([, found]) => found > 0) as [Kind, number][];
  const named = kinds.filter(([kind]) => NEXT[kind] !== undefined);
  const others = kinds.filter(([kind]) => NEXT[kind] === undefined);
  const steps = named.map(([kind, found]) => `for ${found} ${kind}: ${NEXT[kind]}`);
  const rest = others.map(([kind, found]) => `${found} ${kind}`).join(', ');
  return others.length === 0
    ? steps
    : [...steps, `for ${rest}: payments events <payment> for each`];
};

export const failureText = (
  result: Pick<Reconciliation, 'differences' | 'more' | 'byKind' | 'unreadable' | 'notCompared'>,
): string => {
  const { differences, more, byKind, unreadable, notCompared } = result;
  const found = differences.length + more;
  const parts = textsIn([
    found > 0 && `${count(found, 'difference')}; next: ${stepsFor(byKind).join('; ')}`,
    unreadable > 0 &&
      `${count(unreadable, 'event')} cannot be read; next: payments verify --all says whether the log was changed; if it is intact, start the version that wrote them`,
    notCompared > 0 &&
      `${notCompared} operations had no counterpart where the comparison stopped; is it the ledger of this log?`,
  ]);
  return parts.join('; ');
};

/** The verbs that a line names, on the folder that was read. */
const inFolder = (line: string, data: string | undefined): string =>
  data === undefined
    ? line
    : line.replace(/payments (verify|events) \S+/g, (verb) => `${verb} --data ${data}`);

/** Asks for a stream, which no proxy closes while a long ledger is read. */
const compare = ({ post }: Client, { since, all }: Options): Promise<Reconciliation> => {
  const path = auditPath('/audit/v1/reconcile', { since, all: all && 'true' });
  return streamResult(post(path, undefined, AS_STREAM), {
    what: 'reconcile',
    lost: 'the connection was lost before the result; start the comparison again',
    failed: (data) => rejectionLine(503, data),
  });
};

const acknowledge = async (): Promise<Acknowledgement> =>
  jsonOf((await openClient({ scope: 'ops:admin' })).post('/ops/v1/reconcile/acknowledge'));

const acknowledgedLine = ({ acknowledged, cursor }: Acknowledgement): string =>
  acknowledged
    ? `acknowledged up to entry ${cursor} of the ledger: requests that move money are served again`
    : 'nothing to acknowledge: the log holds the latest operations of the provider';

type Compared = PaymentReconciliation['operations'][number];

const saidOf = ({ provider }: Compared): string => {
  const { outcome, providerReference, failureCode, providerFailureCode } = provider;
  return textsIn([outcome, providerReference, failureCode, providerFailureCode]).join(' ');
};

const findingOf = ({ finding, why }: Compared): string => {
  if (finding === 'AGREES' || finding === 'NO_ENTRY') return `${finding}: ${why}`;
  return styled(finding === 'DIFFERS' ? 'red' : 'yellow', `${finding}: ${why}`);
};

const operationsTable = table<Compared>({
  INTENT: ({ revision }) => `r${revision}`,
  OPERATION: ({ kind }) => kind,
  AMOUNT: ({ amount, currency }) => moneyText(amount, currency),
  LOG: ({ log = 'unresolved' }) => log,
  PROVIDER: saidOf,
  ID: ({ operationId }) => operationId,
  FINDING: findingOf,
});

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
    'not every operation could be compared, or the provider has what the log has not; it is not taken to agree. Next: payments reconcile',
  );
};

const reconcilePayment = async (paymentId: string, { merchant, limit, format }: Options) => {
  const client = await auditClient(merchant);
  const path = paymentPath(paymentId, 'reconcile', { limit });
  const result = await jsonOf<PaymentReconciliation>(client.get(path));
  if (format === 'json') printJson(result);
  else if (result.unreadable === undefined) {
    print(...operationsTable(result.operations));
    if (result.notCompared > 0)
      print(`${count(result.notCompared, 'older operation')} not compared: add --limit`);
  }
  failUnlessEqual(result);
};

const reconcile = async (paymentId: string | undefined, options: Options): Promise<void> => {
  const { data, format, acknowledge: opens, since, all } = options;
  if (paymentId !== undefined) {
    if (data === undefined && !opens && since === undefined && !all)
      return reconcilePayment(paymentId, options);
    throw new CommandFailed('--data, --since, --all and --acknowledge are not for one payment', 2);
  }
  if ((options.limit ?? options.merchant) !== undefined)
    throw new CommandFailed('--limit and --merchant are for one payment: name it', 2);
  const client = await auditClient(undefined, data);
  const result = await compare(client, options);
  if (format !== 'json') show(result, since);
  const acknowledgement = opens && (await acknowledge());
  if (format === 'json') printJson({ ...result, acknowledgement });
  else if (acknowledgement !== undefined) print(acknowledgedLine(acknowledgement));
  if (acknowledgement === undefined && !result.ok)
    throw new CommandFailed(inFolder(failureText(result), data), 3);
  failOnMisfit(client);
};

export const reconcileCommand = (): Command =>
  formatted(
    'reconcile',
    'payments reconcile --format json',
    'payments reconcile --all',
    'payments reconcile pay_01…',
    'payments reconcile --acknowledge',
  )
    .description(
      "Compares every sum of the provider's ledger with the log, or asks it about one payment.",
    )
    .argument('[paymentId]', 'ask the provider about the operations of this payment alone')
    .option('--limit <n>', 'of one payment: its last operations, up to 100; left out: 20')
    .option('--merchant <id>', 'of one payment: as this merchant sees it')
    .addOption(dataOption().conflicts(['acknowledge', 'since']))
    .addOption(
      new Option(
        '--since <time>',
        `what began then or later; left out: in the last ${WINDOW_DAYS} days. The rest is not said to agree`,
      )
        .argParser(timeValue)
        .conflicts(['acknowledge', 'all']),
    )
    .option('--all', 'everything, as with --data')
    .option(
      '--acknowledge',
      'after comparing, reopen a service that only reads because the provider is ahead of the log; recorded with your name',
    )
    .action(reconcile);
