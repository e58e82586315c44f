/** `payments topics parked` and `payments topics retry`: payments whose messages to the topics wait. */
import { Command } from 'commander';
import type {
  RelayParkedList,
  RelayParkedRetries,
  RelayParkedRetry,
} from '../projector/contract.ts';
import { type Client, jsonOf, openClient, postToFollowing } from './client.ts';
import { CommandFailed } from './command-failed.ts';
import { type Format, formatOption } from './options.ts';
import { columns, count, note, print, printJson } from './output.ts';

const SCOPE = 'ops:admin';
const PATH = '/ops/v1/topics/parked';

type Options = { format: Format };
type Parked = RelayParkedList['parked'][number];

const revisionsOf = ({ from, to }: Parked): string => (from === to ? `${from}` : `${from}-${to}`);

const list = async ({ format }: Options): Promise<void> => {
  const client = await openClient({ scope: SCOPE });
  const listed = await jsonOf<RelayParkedList>(client.get(PATH));
  if (format === 'json') return printJson(listed);
  const { state, error, parked } = listed;
  note(`relay ${state}${error === undefined ? '' : `: ${error}`}`);
  if (parked.length === 0) return note('The relay has parked no payment.');
  const rows = parked.map((one) => [one.paymentId, revisionsOf(one), one.since, one.reason]);
  print(...columns([['PAYMENT', 'REVISIONS', 'SINCE', 'REASON'], ...rows]));
  if (listed.count > parked.length) note(`${listed.count - parked.length} more are not listed.`);
  note('Once the cause is mended: payments topics retry <paymentId>, or --all');
};

/** A request tries some payments, and puts those that stay parked last. */
const retryAll = async (client: Client): Promise<RelayParkedRetry[]> => {
  const retried = new Map<string, RelayParkedRetry>();
  for (let left: number | undefined; left === undefined || left > 0; ) {
    const page = await jsonOf<RelayParkedRetries>(postToFollowing(client, `${PATH}/retry`));
    for (const one of page.retried) retried.set(one.paymentId, one);
    if (page.retried.length === 0) break;
    left = left === undefined ? page.left : left - page.retried.length;
  }
  return [...retried.values()];
};

const lineOf = ({ paymentId, sent, at = 0, reason }: RelayParkedRetry): string =>
  sent ? `${paymentId}  sent` : `${paymentId}  still parked at revision ${at}: ${reason}`;

const retry = async (
  paymentId: string | undefined,
  { all = false, format }: Options & { all?: boolean },
  command: Command,
): Promise<void> => {
  if (all === (paymentId !== undefined)) command.error('name a payment, or give --all');
  const client = await openClient({ scope: SCOPE });
  const path = `${PATH}/${encodeURIComponent(paymentId ?? '')}/retry`;
  const retried = all
    ? await retryAll(client)
    : [await jsonOf<RelayParkedRetry>(postToFollowing(client, path))];
  if (format === 'json') printJson(all ? retried : retried[0]);
  else if (retried.length === 0) note('The relay has parked no payment.');
  else print(...retried.map(lineOf));
  const stillParked = retried.filter(({ sent }) => !sent).length;
  if (stillParked > 0) throw new CommandFailed(`${count(stillParked, 'payment')} still parked`);
};

export const topicsParkedCommands = (): Command[] => [
  new Command('parked')
    .description('Lists the payments that the relay has parked: their messages wait, in order.')
    .addHelpText('after', '\nExample:\n  payments topics parked --format json')
    .addOption(formatOption())
    .action(list),
  new Command('retry')
    .description('Sends what waits of a payment that the relay has parked, or of all of them.')
    .addHelpText(
      'after',
      '\nExample:\n  payments topics retry pay_01J…\n  payments topics retry --all',
    )
    .argument('[paymentId]', 'the payment, see payments topics parked')
    .option('--all', 'each parked payment, once')
    .addOption(formatOption())
    .action(retry),
];
