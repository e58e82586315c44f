import type { AuditBreak, AuditEvent, AuditUnreadableEvent } from '../audit/contract.ts';
import { describeBreak } from '../shared/event-store/chain.ts';
import { type Client, openClient } from './client.ts';
import { CommandFailed, moneyText } from './output.ts';

export type ShownEvent = AuditEvent | AuditUnreadableEvent;

/** For one merchant where one is given, else for all. `data` is a stopped data folder to ask in place of a service. */
export const auditClient = async (merchant?: string, data?: string): Promise<Client> => {
  if (data === undefined) return openClient({ scope: 'audit:read', merchant });
  // The routes and the store are slow to load.
  return (await import('./stopped-folder.ts')).openStoppedFolder(data, merchant);
};

export const auditPath = (path: string, parameters: Record<string, unknown> = {}): string => {
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
): string => auditPath(`/audit/v1/payments/${encodeURIComponent(paymentId)}/${name}`, parameters);

/** A moment of a payment; with neither field the present. */
export type At = { revision?: string; at?: string };

export const atOf = (text: string | undefined): At => {
  if (text === undefined) return {};
  return /^[0-9]{1,16}$/.test(text) ? { revision: text } : { at: text };
};

export const clockOf = (time: string): string => time.slice(11, 23);

export const dateAndClockOf = (time: string): string => `${time.slice(0, 10)} ${clockOf(time)}`;

export const amountIn = (event: ShownEvent): string =>
  'amounts' in event && event.amounts !== undefined
    ? moneyText(event.amounts.amount, event.amounts.currency)
    : '';

/** Throws CommandFailed with exit code 3 and the place of the break, if there is one. */
export const failIfBroken = (what: string, broken: AuditBreak | undefined): void => {
  if (broken === undefined) return;
  throw new CommandFailed(`${what} failed verification at ${describeBreak(broken)}`, 3);
};
