/**
 * `payments listen --forward-to`: sends a merchant's messages to any address as a webhook endpoint would get
 * them, signed and in the order of the log. For messages that are not accepted it prints the command that
 * sends them again.
 */
import { TOKEN_EXPIRED } from '../audit/token-expiry.ts';
import { signedHeaders } from '../shared/webhooks/signer.ts';
import { clockOf, pathOf } from './audit.ts';
import { type Client, openClient } from './client.ts';
import { CommandFailed } from './command-failed.ts';
import type { Format } from './options.ts';
import { note, print, quoted } from './output.ts';
import {
  type Followed,
  followAgain,
  retryAfterMs,
  serverSentEvents,
  streamAfter,
} from './streams.ts';

export type ForwardOptions = {
  forwardTo: string;
  from: string;
  types?: string;
  merchant?: string;
  format: Format;
  printSecret?: boolean;
  showBody?: boolean;
};

const TIMEOUT_MS = 15_000;

type Forwarded = { status?: number; error?: string; latencyMs: number };

const codeOf = (error: unknown): string => {
  const { name, cause } = Object(error) as { name?: string; cause?: { code?: string } };
  return name === 'TimeoutError' ? 'TIMEOUT' : (cause?.code ?? 'FAILED');
};

const forward = async (
  url: string,
  secret: string,
  id: string,
  body: string,
): Promise<Forwarded> => {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const began = performance.now();
  const latencyMs = () => Math.round(performance.now() - began);
  try {
    const { status } = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...signedHeaders([key], id, Date.now(), body),
      },
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return { status, latencyMs: latencyMs() };
  } catch (error) {
    return { error: codeOf(error), latencyMs: latencyMs() };
  }
};

type MessageBody = {
  type: string;
  timestamp: string;
  data: { eventId: string; revision: number; payment: { paymentId: string } };
};

const show = (
  body: string,
  position: string,
  { status, error, latencyMs }: Forwarded,
  { format, showBody }: ForwardOptions,
): void => {
  const { type, timestamp, data } = JSON.parse(body) as MessageBody;
  const { eventId, revision, payment } = data;
  const { paymentId } = payment;
  if (format === 'json') {
    const message = { position, eventId, type, paymentId, revision };
    print(JSON.stringify({ ...message, status: status ?? null, error: error ?? null, latencyMs }));
    return;
  }
  const outcome = error ?? `${status}  ${latencyMs} ms`;
  print(`${clockOf(timestamp).slice(0, 8)}  ${type}  ${paymentId}  r${revision}  → ${outcome}`);
  if (showBody) print(body);
};

/** `rejected`: the message before was not accepted. */
type ForwardedStream = Followed & { secret: string; rejected: boolean };

const word = (text: string): string => (/^[\w.,:/-]+$/.test(text) ? text : quoted(text));

/** Sends the messages after a position, or all where none is known yet. */
const resendCommand = (after: string | undefined, options: ForwardOptions): string => {
  const from = after ?? (options.from === 'now' ? 'start' : options.from);
  const given = Object.entries({ from, types: options.types, merchant: options.merchant });
  const more = given.flatMap(([name, value]) => (value ? [`--${name} ${word(value)}`] : []));
  return `payments listen --forward-to ${word(options.forwardTo)} ${more.join(' ')}`;
};

/** The first of several messages that are not accepted leads to the command for all. */
const pass = async (
  data: string,
  position: string,
  after: string | undefined,
  options: ForwardOptions,
  followed: ForwardedStream,
): Promise<void> => {
  const { data: message } = JSON.parse(data) as MessageBody;
  const forwarded = await forward(options.forwardTo, followed.secret, message.eventId, data);
  show(data, position, forwarded, options);
  const { status = 0 } = forwarded;
  const accepted = status >= 200 && status < 300;
  if (!accepted && !followed.rejected)
    note(`not accepted; this and what follows again: ${resendCommand(after, options)}`);
  followed.rejected = !accepted;
};

/** Throws CommandFailed where the token may only read. */
const secretOf = (ready: string): string => {
  const { secret } = JSON.parse(ready) as { secret?: string };
  if (secret !== undefined) return secret;
  throw new CommandFailed(
    'PAYMENTS_TOKEN lacks the scope webhooks:write, so the service gives it no secret to sign messages with',
  );
};

/** Forwards until the connection ends; undefined where only the secret was wanted. */
const follow = async (
  client: Client,
  options: ForwardOptions,
  followed: ForwardedStream,
): Promise<number | undefined> => {
  const { forwardTo, from, types } = options;
  const path = pathOf('/api/v1/webhook-events/stream', { from, types });
  const response = await streamAfter(client, path, followed);
  if (response.status === 503 && followed.connected) return retryAfterMs(response);
  for await (const { event, id, data } of serverSentEvents(response)) {
    const after = followed.last;
    followed.last = id ?? after;
    if (event === 'ready') {
      followed.secret = secretOf(data);
      if (options.printSecret) {
        print(followed.secret);
        return undefined;
      }
      if (!followed.connected)
        note(`forwarding to ${forwardTo}; its secret is ${followed.secret}; Ctrl-C ends`);
      else note(`reconnected, resumed at #${followed.last ?? from}`);
      followed.connected = true;
    } else if (event === TOKEN_EXPIRED)
      note('the token has expired, connecting again with a new one');
    else if (event !== 'caught-up' && id !== undefined)
      await pass(data, id, after, options, followed);
  }
  return 0;
};

/** Throws CommandFailed for an address that is none, and where the service rejects the request. */
export const listenAndForward = async (options: ForwardOptions): Promise<void> => {
  if (!/^https?:\/\//i.test(options.forwardTo) || !URL.canParse(options.forwardTo))
    throw new CommandFailed('--forward-to must be an http or https address', 2);
  const { merchant } = options;
  const client = await openClient({ scope: 'payments:read webhooks:write', merchant });
  const followed: ForwardedStream = {
    last: undefined,
    secret: '',
    connected: false,
    rejected: false,
  };
  await followAgain(followed, () => follow(client, options, followed));
};
