/** `payments listen`: events as they happen; after a lost connection it resumes where it was. */
import { type Command, Option } from 'commander';
import { amountIn, auditClient, clockOf, pathOf, type ShownEvent } from './audit.ts';
import type { ForwardOptions } from './listen-forward.ts';
import { formatOption, type Given, verb } from './options.ts';
import { note, print } from './output.ts';
import { followStream } from './streams.ts';

type Options = Given<'type' | 'payment' | 'merchant'> & { from: string };

const lineOf = (event: ShownEvent): string => {
  const { position, revision, paymentId = event.stream } = event;
  if ('unreadable' in event) return `#${position}  cannot be read  ${paymentId}  r${revision}`;
  const { time, type } = event;
  return [clockOf(time), `#${position}`, type, paymentId, `r${revision}`, amountIn(event)]
    .join('  ')
    .trimEnd();
};

const show = (event: ShownEvent, { type, payment, format }: Options): void => {
  if (type !== undefined && !('type' in event && event.type === type)) return;
  if (payment !== undefined && event.paymentId !== payment) return;
  print(format === 'json' ? JSON.stringify(event) : lineOf(event));
};

const listen = async (options: Options, command: Command): Promise<void> => {
  const { merchant, from, type } = options;
  const { isEventType } = await import('../shared/payment/events.ts');
  if (type !== undefined && !isEventType(type))
    command.error('error: --type is no type of event; PaymentCaptured is one');
  const client = await auditClient(merchant);
  await followStream(client, pathOf('/audit/v1/events/stream', { from }), {
    onOpen: (isFirst, last) =>
      note(
        isFirst
          ? `listening at ${client.url}; Ctrl-C ends`
          : `reconnected, resumed at #${last ?? from}`,
      ),
    onEvent: ({ data }) => show(JSON.parse(data), options),
  });
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
  verb(
    'listen',
    'payments listen --type PaymentRefunded --from start',
    'payments listen --forward-to http://localhost:3000/hook',
  )
    .description('Prints events as they happen, until it is interrupted.')
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
      return listen(options, command);
    });
