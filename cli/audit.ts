/** What the auditor's verbs share: the client, how events are shown, and server-sent events. */
import { Option } from 'commander';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { AuditBreak, AuditEvent, AuditUnreadableEvent } from '../audit/contract.ts';
import { describeBreak } from '../shared/event-store/verify-chain.ts';
import { type Client, openClient, orFail } from './client.ts';
import { CommandFailed } from './command-failed.ts';
import { money } from './output.ts';

/** An event as the audit routes show it. */
export type ShownEvent = AuditEvent | AuditUnreadableEvent;

/**
 * A client with the scope audit:read, for one merchant where `merchant` is given, else for all. With
 * `data` it asks no service but the stopped data folder of that path.
 */
export const auditClient = async (merchant?: string, data?: string): Promise<Client> => {
  if (data === undefined) return openClient({ scope: 'audit:read', merchant });
  // Loaded only here: the routes and the store are slow to load.
  return (await import('./stopped-folder.ts')).openStoppedFolder(data, merchant);
};

/** The option by which a verb reads a stopped data folder. */
export const dataOption = (): Option =>
  new Option('--data <folder>', 'read this stopped data folder, and change nothing in it');

/** A path with its query; parameters that are undefined are left out. */
export const pathOf = (path: string, parameters: Record<string, unknown> = {}): string => {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  const query = new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  return query === '' ? path : `${path}?${query}`;
};

/** The path of a payment's audit route, such as `events` or `verify`. */
export const paymentPath = (
  paymentId: string,
  name: string,
  parameters?: Record<string, unknown>,
): string => pathOf(`/audit/v1/payments/${encodeURIComponent(paymentId)}/${name}`, parameters);

/** The time of day of an RFC 3339 time, with milliseconds. */
export const clockOf = (time: string): string => time.slice(11, 23);

/** Date and time of day of an RFC 3339 time, with milliseconds. */
export const dateAndClockOf = (time: string): string => `${time.slice(0, 10)} ${clockOf(time)}`;

/** The amount of an event as money; empty where the event has none. */
export const amountIn = (event: ShownEvent): string =>
  'amounts' in event && event.amounts !== undefined
    ? money(event.amounts.amount, event.amounts.currency)
    : '';

/**
 * Ends the verb where what it has shown does not verify. Throws CommandFailed with exit code 3 and the
 * place of the break; does nothing where there is none.
 */
export const failIfBroken = (what: string, broken: AuditBreak | undefined): void => {
  if (broken === undefined) return;
  throw new CommandFailed(`${what} failed verification at ${describeBreak(broken)}`, 3);
};

/** One server-sent event. */
export type ServerSentEvent = { event: string | undefined; id: string | undefined; data: string };

/**
 * The server-sent events of a response, until it ends or its connection is lost. Throws CommandFailed
 * for an error response.
 */
export async function* serverSentEvents(response: Response): AsyncGenerator<ServerSentEvent> {
  const { body } = await orFail(response);
  if (body === null) return;
  const events = body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  try {
    for await (const { event, id, data } of events) yield { event, id, data };
  } catch {
    // Who reads on knows by the missing result that the response was cut off.
  }
}
