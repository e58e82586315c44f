/**
 * `payments topics`: the topics, and the values of their messages to the byte, one a line. The
 * service computes them from the log, so they are the same with a broker and without.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Command, Option } from 'commander';
import { type Client, jsonOf, openClient, orFail } from './client.ts';
import { columns, type Format, formatOption, note, print, printJson } from './output.ts';

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
  print(
    ...columns([
      ['topic', 'key', 'cleanup', 'partitions'],
      ...topics.map(({ name, key, cleanup, partitions }) => [
        name,
        key,
        cleanup,
        String(partitions),
      ]),
    ]),
  );
  const why = relay.error === undefined ? '' : `: ${relay.error}`;
  note(
    relay.state === 'off'
      ? 'no broker is set (KAFKA_BROKERS): nothing is sent, "payments topics tail" shows what would be'
      : `relay ${relay.state}${why}, sent up to ${relay.checkpoint ?? 'nothing yet'}, parked: ${relay.parked}`,
  );
};

type TailOptions = { topic: string; from: string; follow?: boolean };

const printPage = async (client: Client, topic: string, from: string): Promise<string> => {
  const query = new URLSearchParams({ from });
  const response = await orFail(await client.get(`/ops/v1/topics/${topic}/messages?${query}`));
  process.stdout.write(await response.text());
  return response.headers.get('next-position') ?? from;
};

const tail = async ({ topic, from, follow = false }: TailOptions): Promise<void> => {
  const client = await openClient({ scope: SCOPE });
  let at = from;
  for (;;) {
    const next = await printPage(client, topic, at);
    if (next === at && !follow) return;
    if (next === at) await delay(FOLLOW_MS);
    at = next;
  }
};

/** The verb `topics`. */
export const topicsCommand = (): Command =>
  new Command('topics')
    .description('The topics that other systems read, with a broker or without one.')
    .addCommand(
      new Command('list')
        .description('Lists the topics and how far they are.')
        .addOption(formatOption())
        .action(list),
    )
    .addCommand(
      new Command('tail')
        .description('Prints the values of the messages as the broker has them, one a line.')
        .addOption(
          new Option('--topic <topic>', 'which one').choices(['events', 'state']).default('events'),
        )
        .option('--from <position>', 'after this globalposition, or start', 'start')
        .option('--follow', 'goes on as events come, until it is ended')
        .action(tail),
    )
    .addHelpText('after', '\nExample:\n  payments topics tail --topic state | jq .data.status');
