/** `payments topics`: the topics and their messages, computed from the log: the same bytes with a broker and without. */
import { setTimeout as delay } from 'node:timers/promises';
import { Command, Option } from 'commander';
import { withoutControlSigns } from '../shared/runtime/control-signs.ts';
import { type Client, jsonOf, openClient, orFail, textOf } from './client.ts';
import { type Format, formatOption } from './options.ts';
import { columns, note, print, printJson } from './output.ts';
import { topicsParkedCommands } from './topics-parked.ts';

const SCOPE = 'ops:admin';
const FOLLOW_MS = 500;

type Listed = {
  topics: { name: string; key: string; cleanup: string; partitions: number }[];
  relay: { state: string; error?: string; checkpoint: string | null; parked: number };
};

const list = async ({ format }: { format: Format }): Promise<void> => {
  const client = await openClient({ scope: SCOPE });
  const listed = await jsonOf<Listed>(client.get('/ops/v1/topics'));
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

type TailOptions = {
  topic: string;
  from: string;
  latest?: boolean;
  follow?: boolean;
  keys?: boolean;
};

const printPage = async (
  client: Client,
  { topic, keys = false }: TailOptions,
  from: string,
): Promise<string> => {
  const query = new URLSearchParams({ from, ...(keys && { keys: 'true' }) });
  const response = await orFail(await client.get(`/ops/v1/topics/${topic}/messages?${query}`));
  const values = await textOf(response);
  // A pipe gets the exact bytes of the messages.
  process.stdout.write(process.stdout.isTTY ? withoutControlSigns(values) : values);
  return response.headers.get('next-position') ?? from;
};

const tail = async (options: TailOptions): Promise<void> => {
  const { latest = false, follow = latest } = options;
  const client = await openClient({ scope: SCOPE });
  let at = latest ? 'latest' : options.from;
  for (;;) {
    const next = await printPage(client, options, at);
    if (next === at && !follow) return;
    if (next === at) await delay(FOLLOW_MS);
    at = next;
  }
};

export const topicsCommand = (): Command => {
  const command = new Command('topics')
    .description('Shows the topics that other systems read, with a broker or without one.')
    .addHelpText('after', '\nExample:\n  payments topics tail --topic state | jq .data.status')
    .addCommand(
      new Command('list')
        .description('Lists the topics, and how far the relay has sent events to them.')
        .addHelpText('after', '\nExample:\n  payments topics list --format json')
        .addOption(formatOption())
        .action(list),
    )
    .addCommand(
      new Command('tail')
        .description('Prints the values of the messages as the broker has them, one on each line.')
        .addHelpText(
          'after',
          '\nExample:\n  payments topics tail --topic state | jq .data.status\n  payments topics tail --latest --keys',
        )
        .addOption(
          new Option('--topic <topic>', 'which topic')
            .choices(['events', 'state', 'seals'])
            .default('events'),
        )
        .option('--from <position>', 'only messages after this globalposition, or start', 'start')
        .addOption(
          new Option('--latest', 'only messages that come from now on, as they come').conflicts(
            'from',
          ),
        )
        .option('--keys', 'print partition and key beside each message')
        .option('--follow', 'print new messages as they come, until it is interrupted')
        .action(tail),
    );
  for (const own of topicsParkedCommands()) command.addCommand(own);
  return command;
};
