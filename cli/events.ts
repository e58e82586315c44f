/** `payments events`: a payment's events, its state at a moment, and what has changed since. */
import { Command } from 'commander';
import type { AuditTimeline } from '../audit/contract.ts';
import type { State } from '../audit/state.ts';
import { amountIn, auditClient, dateAndClockOf, paymentPath, type ShownEvent } from './audit.ts';
import { jsonOf } from './client.ts';
import { CommandFailed } from './command-failed.ts';
import { columns, type Format, formatOption, money, print, printJson, styled } from './output.ts';

type Options = {
  at?: string;
  state?: true;
  diff?: true;
  file?: string;
  merchant?: string;
  format: Format;
};

/** Where the events come from: the service, or an export. */
export type Source = { events(): Promise<ShownEvent[]>; state(at: At): Promise<State> };
/** A moment of a payment; with neither field the present. */
export type At = { revision?: string; at?: string };

const atOf = (text: string | undefined): At => {
  if (text === undefined) return {};
  return /^[0-9]{1,16}$/.test(text) ? { revision: text } : { at: text };
};

const serviceSource = async (paymentId: string, merchant?: string): Promise<Source> => {
  const client = await auditClient(merchant);
  return {
    events: async () =>
      (await jsonOf<AuditTimeline>(client.get(paymentPath(paymentId, 'events')))).events,
    state: (at) => jsonOf<State>(client.get(paymentPath(paymentId, 'state', at))),
  };
};

const rowOf = (event: ShownEvent): string[] => {
  const place = [`r${event.revision}`, `#${event.position}`];
  if ('unreadable' in event) return ['', ...place, 'cannot be read', '', event.unreadable];
  const { time, type, status = '', actor } = event;
  return [dateAndClockOf(time), ...place, type, amountIn(event), status, actor];
};

const upTo = (events: ShownEvent[], { revision, at }: At): ShownEvent[] => {
  if (revision !== undefined) return events.filter((event) => event.revision <= Number(revision));
  if (at === undefined) return events;
  const moment = new Date(at);
  if (Number.isNaN(moment.getTime()))
    throw new CommandFailed('--at must be a revision or a time', 2);
  return events.filter((event) => 'time' in event && event.time <= moment.toISOString());
};

const showTimeline = (events: ShownEvent[]): void => print(...columns(events.map(rowOf)));

const AMOUNTS = [
  'authorizedAmount',
  'capturedAmount',
  'refundedAmount',
  'refundableAmount',
] as const;

const showState = (state: State): void => {
  const { payment, revision, event, now } = state;
  const amount = (name: string): string => money(Number(payment[name]), String(payment.currency));
  const since = 'time' in event ? `${event.type} at ${event.time} by ${event.actor}` : '';
  print(
    `${styled('bold', String(payment.paymentId))}  ${payment.status}  ${amount('amount')}`,
    `revision ${revision} of ${now.revision}, after ${since}`,
    ...columns(AMOUNTS.map((name) => [`  ${name}`, amount(name)])),
  );
};

const showDiff = ({ differences, revision, now }: State): void => {
  const text = (value: unknown): string => (value === undefined ? '-' : JSON.stringify(value));
  const none = differences.length === 0 ? '  nothing has changed' : '';
  print(`revision ${revision} -> ${now.revision}${none}`);
  print(...columns(differences.map(({ path, was, now: is }) => [path, text(was), '->', text(is)])));
};

const showEvents = async (paymentId: string, options: Options): Promise<void> => {
  const { file, merchant, format, state, diff } = options;
  const source =
    file === undefined
      ? await serviceSource(paymentId, merchant)
      : // Loaded only here: decoding stored events needs modules that are slow to load.
        (await import('./events-of-file.ts')).fileSource(paymentId, file);
  const at = atOf(options.at);
  const isJson = format === 'json';
  if (state !== true && diff !== true) {
    const events = upTo(await source.events(), at);
    if (isJson) printJson(events);
    else showTimeline(events);
    return;
  }
  const then = await source.state(at);
  if (isJson) printJson(state === true ? then : then.differences);
  if (!isJson && state === true) showState(then);
  if (!isJson && diff === true) showDiff(then);
};

/** The verb `events`. */
export const eventsCommand = (): Command =>
  new Command('events')
    .description('Shows the events of a payment, oldest first, or its state at a moment.')
    .argument('<paymentId>', 'the payment; to search for it: payments find')
    .option('--at <when>', 'a revision, or a time (RFC 3339)')
    .option('--state', 'the state of the payment then; left out: its events up to then')
    .option('--diff', 'what has changed from then to now')
    .option('--file <file>', 'read the events from an export; no service is needed')
    .option('--merchant <id>', 'as this merchant sees it')
    .addOption(formatOption())
    .addHelpText('after', '\nExample:\n  payments events pay_01… --state --at 2026-03-03T12:00:00Z')
    .action(showEvents);
