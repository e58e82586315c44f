/** `payments topics`: the topics and their messages, computed from the log: the same bytes with a broker and without. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { withoutControlSigns } from '../shared/runtime/json.ts';
import type { RelayParkedList, RelayParkedRetries, RelayParkedRetry } from '../topics/contract.ts';
import { auditPath } from './audit.ts';
import { bodyText, type Client, openClient, orFail, postOps, readOps } from './client.ts';
import { type Format, formatted, verb } from './options.ts';
import { CommandFailed, columns, count, note, print, printJson } from './output.ts';

const FOLLOW_MS = 500;

type Listed = {
  topics: { name: string; key: string; cleanup: string; partitions: number }[];
  relay: { state: string; error?: string; checkpoint: string | null; parked: number };
};

const list = async ({ format }: { format: Format }): Promise<void> => {
  const listed = await readOps<Listed>('/ops/v1/topics');
  if (format === 'json') return printJson(listed);
  const { topics, relay } = listed;
  const rows = topics.map((one) => [one.name, one.key, one.cleanup, String(one.partitions)]);
  print(...columns([['topic', 'key', 'cleanup', 'partitions'], ...rows]));
  const why = relay.error === undefined ? '' : `: ${relay.error}`;
  if (relay.parked > 0) note('payments topics parked says which payments wait, and why');
  note(
    relay.state === 'off'
      ? 'no broker is set (KAFKA_BROKERS), so nothing is sent; payments topics tail shows the messages'
      : `relay ${relay.state}${why}, sent up to ${relay.checkpoint ?? 'nothing yet'}, parked: ${relay.parked}`,
  );
};

type TailOptions = { topic: string; from: string; latest?: boolean; keys?: boolean };

const printPage = async (client: Client, { topic, keys }: TailOptions, from: string) => {
  const path = auditPath(`/ops/v1/topics/${topic}/messages`, { from, keys: keys && 'true' });
  const response = await orFail(await client.get(path));
  const values = await bodyText(response);
  // A pipe gets the exact bytes of the messages.
  process.stdout.write(process.stdout.isTTY ? withoutControlSigns(values) : values);
  return response.headers.get('next-position') ?? from;
};

const tail = async (options: TailOptions): Promise<void> => {
  const { latest, from } = options;
  const client = await openClient({ scope: 'ops:admin' });
  let at = latest ? 'latest' : from;
  for (;;) {
    const next = await printPage(client, options, at);
    if (next === at && !latest) return;
    if (next === at) await delay(FOLLOW_MS);
    at = next;
  }
};

const PARKED = '/ops/v1/topics/parked';

const listParked = async ({ format }: { format: Format }): Promise<void> => {
  const listed = await readOps<RelayParkedList>(PARKED);
  if (format === 'json') return printJson(listed);
  const { state, error, parked } = listed;
  note(`relay ${state}${error === undefined ? '' : `: ${error}`}`);
  if (parked.length === 0) return note('The relay has parked no payment.');
  const rows = parked.map(({ paymentId, from, to, since, reason }) => {
    return [paymentId, from === to ? `${from}` : `${from}-${to}`, since, reason];
  });
  print(...columns([['PAYMENT', 'REVISIONS', 'SINCE', 'REASON'], ...rows]));
  if (listed.count > parked.length) note(`${listed.count - parked.length} more are not listed.`);
  note('Once the cause is mended: payments topics retry <paymentId>, or --all');
};

/** One request tries some of the payments, and moves those that stay parked to the end. */
const retryAll = async (): Promise<RelayParkedRetry[]> => {
  const retried = new Map<string, RelayParkedRetry>();
  for (let left: number | undefined; left === undefined || left > 0; ) {
    const page = await postOps<RelayParkedRetries>(`${PARKED}/retry`);
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
  { all = false, format }: { all?: boolean; format: Format },
  command: Command,
): Promise<void> => {
  if (all === (paymentId !== undefined)) command.error('name a payment, or give --all');
  const path = `${PARKED}/${encodeURIComponent(paymentId ?? '')}/retry`;
  const retried = all ? await retryAll() : [await postOps<RelayParkedRetry>(path)];
  if (format === 'json') printJson(all ? retried : retried[0]);
  else if (retried.length === 0) note('The relay has parked no payment.');
  else print(...retried.map(lineOf));
  const stillParked = retried.filter(({ sent }) => !sent).length;
  if (stillParked > 0) throw new CommandFailed(`${count(stillParked, 'payment')} still parked`);
};

export const topicsCommand = (): Command =>
  verb('topics', 'payments topics tail --topic state | jq .data.status')
    .description('Shows the topics that other systems read, with a broker or without one.')
    .addCommand(
      formatted('list', 'payments topics list --format json')
        .description('Lists the topics, and how far the relay has sent events to them.')
        .action(list),
    )
    .addCommand(
      verb(
        'tail',
        'payments topics tail --topic state | jq .data.status',
        'payments topics tail --latest --keys',
      )
        .description('Prints the values of the messages as the broker has them, one on each line.')
        .addOption(
          new Option('--topic <topic>', 'which topic')
            .choices(['events', 'state', 'seals'])
            .default('events'),
        )
        .option('--from <position>', 'only messages after this globalposition, or start', 'start')
        .addOption(
          new Option(
            '--latest',
            'only messages that come from now on, as they come, until it is interrupted',
          ).conflicts('from'),
        )
        .option('--keys', 'print partition and key with each message')
        .action(tail),
    )
    .addCommand(
      formatted('parked', 'payments topics parked --format json')
        .description('Lists the payments that the relay has parked: their messages wait, in order.')
        .action(listParked),
    )
    .addCommand(
      formatted('retry', 'payments topics retry pay_01J…', 'payments topics retry --all')
        .description('Sends what waits of a payment that the relay has parked, or of all of them.')
        .argument('[paymentId]', 'the payment, see payments topics parked')
        .option('--all', 'each parked payment, once')
        .action(retry),
    );
