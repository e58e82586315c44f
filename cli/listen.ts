/** `payments listen`: live events, resumed after a lost connection; `--forward-to` sends them as webhooks. */
import { type Command, Option } from 'commander';
import { signedHeaders } from '../webhooks/signer.ts';
import { amountIn, auditClient, auditPath, clockOf, type ShownEvent } from './audit.ts';
import { openClient } from './client.ts';
import { formatted, type Given } from './options.ts';
import { CommandFailed, note, print, quoted } from './output.ts';
import { followStream } from './streams.ts';

type ForwardOptions = { forwardTo: string; from: string } & Given<
  'types' | 'merchant',
  'printSecret' | 'showBody'
>;

const TIMEOUT_MS = 15_000;

const codeOf = (error: unknown): string => {
  const { name, cause } = Object(error) as { name?: string; cause?: { code?: string } };
  return name === 'TimeoutError' ? 'TIMEOUT' : (cause?.code ?? 'FAILED');
};

const forward = async (url: string, secret: string, id: string, body: string) => {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const began = performance.now();
  const headers = {
    'content-type': 'application/json',
    ...signedHeaders([key], id, Date.now(), body),
  };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const sent = fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal });
  const outcome = await sent.then(
    ({ status }) => ({ status, error: null }),
    (error: unknown) => ({ status: null, error: codeOf(error) }),
  );
  return { ...outcome, latencyMs: Math.round(performance.now() - began) };
};

type MessageBody = {
  type: string;
  timestamp: string;
  data: { eventId: string; revision: number; payment: { paymentId: string } };
};

const word = (text: string): string => (/^[\w.,:/-]+$/.test(text) ? text : quoted(text));

const resendCommand = (after: string | undefined, options: ForwardOptions): string => {
  const from = after ?? (options.from === 'now' ? 'start' : options.from);
  const given = Object.entries({ from, types: options.types, merchant: options.merchant });
  const more = given.flatMap(([name, value]) => (value ? [`--${name} ${word(value)}`] : []));
  return `payments listen --forward-to ${word(options.forwardTo)} ${more.join(' ')}`;
};

const secretOf = (ready: string): string => {
  const { secret } = JSON.parse(ready) as { secret?: string };
  if (secret !== undefined) return secret;
  throw new CommandFailed(
    'PAYMENTS_TOKEN lacks the scope webhooks:write, so the service gives it no secret to sign messages with',
  );
};

const listenAndForward = async (options: ForwardOptions): Promise<void> => {
  const { forwardTo, from, types, merchant, printSecret, format, showBody } = options;
  if (!/^https?:\/\//i.test(forwardTo) || !URL.canParse(forwardTo))
    throw new CommandFailed('--forward-to must be an http or https address', 2);
  const client = await openClient({ scope: 'payments:read webhooks:write', merchant });
  let secret = '';
  let wasAccepted = true;

  const begin = (ready: string, resumedAt: string): boolean => {
    const isFirst = secret === '';
    secret = secretOf(ready);
    if (printSecret) print(secret);
    else if (isFirst) note(`forwarding to ${forwardTo}; its secret is ${secret}; Ctrl-C ends`);
    else note(`reconnected, resumed at #${resumedAt}`);
    return printSecret === true;
  };
  const pass = async (body: string, position: string, before: string | undefined) => {
    const { type, timestamp, data } = JSON.parse(body) as MessageBody;
    const { eventId, revision, payment } = data;
    const { paymentId } = payment;
    const { status, error, latencyMs } = await forward(forwardTo, secret, eventId, body);
    if (format === 'json') {
      const message = { position, eventId, type, paymentId, revision };
      print(JSON.stringify({ ...message, status, error, latencyMs }));
    } else {
      const outcome = error ?? `${status}  ${latencyMs} ms`;
      print(`${clockOf(timestamp).slice(0, 8)}  ${type}  ${paymentId}  r${revision}  → ${outcome}`);
      if (showBody) print(body);
    }
    const isAccepted = status !== null && status >= 200 && status < 300;
    // The first of several that are not accepted leads to the command for all.
    if (!isAccepted && wasAccepted)
      note(`not accepted; this and what follows again: ${resendCommand(before, options)}`);
    wasAccepted = isAccepted;
  };

  await followStream(client, auditPath('/api/v1/webhook-events/stream', { from, types }), {
    onEvent: async ({ event, id, data }, before) => {
      if (event === 'ready') return begin(data, id ?? before ?? from);
      if (id !== undefined) await pass(data, id, before);
    },
  });
};

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
  await followStream(client, auditPath('/audit/v1/events/stream', { from }), {
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
  formatted(
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
    .action(async (given: Options & Partial<ForwardOptions>, command: Command) => {
      const { forwardTo, ...options } = given;
      if (forwardTo !== undefined) return listenAndForward({ ...options, forwardTo });
      refuseWithoutForwarding(options, command);
      return listen(options, command);
    });
