/** What the auditor's verbs share: the client, how events are shown, and server-sent events. */
import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { AuditEvent, AuditUnreadableEvent } from '../audit/contract.ts';
import { type Client, openClient, orFail } from './client.ts';
import { money } from './output.ts';

export type ShownEvent = AuditEvent | AuditUnreadableEvent;

/** The service with the rights of an auditor, of one merchant where one is named. */
export const auditClient = (merchant?: string): Promise<Client> =>
  openClient({ scope: 'audit:read', merchant });

/** A path with those of the parameters that are there. */
export const pathOf = (path: string, parameters: Record<string, unknown> = {}): string => {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  const query = new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  return query === '' ? path : `${path}?${query}`;
};

export const paymentPath = (
  paymentId: string,
  name: string,
  parameters?: Record<string, unknown>,
): string => pathOf(`/audit/v1/payments/${encodeURIComponent(paymentId)}/${name}`, parameters);

/** The time of day, or the whole moment where the day matters. */
export const clockOf = (time: string): string => time.slice(11, 23);

export const amountIn = (event: ShownEvent): string =>
  'amounts' in event && event.amounts !== undefined
    ? money(event.amounts.amount, event.amounts.currency)
    : '';

/** One server-sent event. */
export type Sent = { event: string | undefined; id: string | undefined; data: string };

/** The events of a response, one after the other, until it ends. Throws CommandFailed for an error. */
export async function* sentBy(response: Response): AsyncGenerator<Sent> {
  const { body } = await orFail(response);
  if (body === null) return;
  const events = body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  for await (const { event, id, data } of events) yield { event, id, data };
}
