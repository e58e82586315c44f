/** `payments listen`: events as they happen; after a lost connection it resumes where it was. */
import { Command, Option } from 'commander';
import { TOKEN_EXPIRED } from '../audit/token-expiry.ts';
import { amountIn, auditClient, clockOf, pathOf, type ShownEvent } from './audit.ts';
import type { Client } from './client.ts';
import type { ForwardOptions } from './listen-forward.ts';
import { type Format, formatOption } from './options.ts';
import { note, print } from './output.ts';
import {
  type Followed,
  followAgain,
  retryAfterMs,
  serverSentEvents,
  streamAfter,
} from './streams.ts';

type Options = {
  type?: string;
  payment?: string;
  from: string;
  merchant?: string;
  format: Format;
};

const lineOf = (event: ShownEvent): string => {
  const { position, revision, paymentId = event.stream } = event;
  if ('unreadable' in event) return `#${position}  cannot be read  ${paymentId}  r${revision}`;
  const { time, type } = event;
  return [clockOf(time), `#${position}`, type, paymentId, `r${revision}`, amountIn(event)]
    .join('  ')
    .trimEnd();
};

const isWanted = (event: ShownEvent, { type, payment }: Options): boolean =>
  (type === undefined || ('type' in event && event.type === type)) &&
  (payment === undefined || event.paymentId === payment);

const show = (event: ShownEvent, options: Options): void => {
  if (isWanted(event, options)) {
    print(options.format === 'json' ? JSON.stringify(event) : lineOf(event));
  }
};

/** Resolves with the wait in milliseconds that the service asks for before the next request. */
const follow = async (client: Client, options: Options, followed: Followed): Promise<number> => {
  const path = pathOf('/audit/v1/events/stream', { from: options.from });
  const response = await streamAfter(client, path, followed);
  // After a connection 503 means a restart of the service. Another rejection would come again.
  if (response.status === 503 && followed.connected) return retryAfterMs(response);
  const { ok } = response;
  if (ok && followed.connected) note(`reconnected, resumed at #${followed.last ?? options.from}`);
  else if (ok) note(`listening at ${client.url}; Ctrl-C ends`);
  followed.connected ||= ok;
  for await (const { event, id, data } of serverSentEvents(response)) {
    followed.last = id ?? followed.last;
    if (event === TOKEN_EXPIRED) note('the token has expired, connecting again with a new one');
    else if (event !== 'caught-up') show(JSON.parse(data), options);
  }
  return 0;
};

const listen = async (options: Options): Promise<void> => {
  const client = await auditClient(options.merchant);
  const followed: Followed = { last: undefined, connected: false };
  await followAgain(followed, () => follow(client, options, followed));
};

/** Ends the verb, exit code 2, at an option that needs --forward-to. */
const refuseWithoutForwarding = (options: Partial<ForwardOptions>, command: Command): void => {
  const given = [
    options.types !== undefined && '--types',
    options.printSecret && '--print-secret',
    options.showBody && '--show-body',
  ].find(Boolean);
  if (given) command.error(`error: ${given} goes with --forward-to <url>`);
};

export const listenCommand = (): Command =>
  new Command('listen')
    .description('Prints events as they happen, until it is interrupted.')
    .addHelpText(
      'after',
      '\nExample:\n  payments listen --type PaymentRefunded --from start\n  payments listen --forward-to http://localhost:3000/hook',
    )
    .option('--type <type>', 'only this type, such as PaymentCaptured')
    .option('--payment <paymentId>', 'only this payment')
    .option('--from <from>', 'start, now, or a position: only events after it', 'now')
    .option('--merchant <id>', 'only this merchant')
    .addOption(
      new Option(
        '--forward-to <url>',
        'send the messages of webhooks there instead, as an endpoint gets them',
      ).conflicts(['type', 'payment']),
    )
    .option('--types <types>', 'with --forward-to: comma list, such as payment.captured')
    .option('--print-secret', 'with --forward-to: print the secret that it signs with, and end')
    .option('--show-body', 'with --forward-to: print each message too')
    .addOption(formatOption())
    .action(async (given: Options & Partial<ForwardOptions>, command: Command) => {
      const { forwardTo, ...options } = given;
      if (forwardTo !== undefined)
        return (await import('./listen-forward.ts')).listenAndForward({ ...options, forwardTo });
      refuseWithoutForwarding(options, command);
      return listen(options);
    });
