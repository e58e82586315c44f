/** `payments events`: a payment's events, its state at a moment, and what has changed since. */
import { type Command, Option } from 'commander';
import type { AuditNoState, AuditTimeline } from '../audit/contract.ts';
import type { State } from '../audit/state.ts';
import {
  type At,
  amountIn,
  atOf,
  auditClient,
  dateAndClockOf,
  failIfBroken,
  paymentPath,
  type ShownEvent,
} from './audit.ts';
import { jsonOf } from './client.ts';
import type { EventsFile } from './events-of-file.ts';
import { dataOption, formatted, type Given, keyOption, timeOrRevision } from './options.ts';
import { columns, failOnMisfit, moneyText, print, printJson, printList, styled } from './output.ts';

type Options = Given<'at' | 'file' | 'key' | 'data' | 'merchant', 'state' | 'diff'>;

const serviceSource = async (
  paymentId: string,
  { merchant, data }: Options,
): Promise<EventsFile> => {
  const client = await auditClient(merchant, data);
  return {
    misfit: client.misfit,
    timeline: () => jsonOf<AuditTimeline>(client.get(paymentPath(paymentId, 'events'))),
    state: (at) => jsonOf<State | AuditNoState>(client.get(paymentPath(paymentId, 'state', at))),
  };
};

const upTo = (events: ShownEvent[], { revision, at }: At): ShownEvent[] => {
  if (revision !== undefined) return events.filter((event) => event.revision <= Number(revision));
  if (at === undefined) return events;
  const moment = new Date(at).toISOString();
  // An event that cannot be read has no time and is never left out, as in an export.
  return events.filter((event) => !('time' in event) || event.time <= moment);
};

const AMOUNTS = ['authorizedAmount', 'capturedAmount', 'refundedAmount', 'refundableAmount'];

/** The end of a request id is shown: the service's log can be searched by it. */
const REQUEST_ID_END = 8;

const brokenIn = ({ broken }: ShownEvent): string[] =>
  broken === undefined ? [] : [styled('red', `DOES NOT VERIFY: ${broken}`)];

const rowOf = (event: ShownEvent): string[] => {
  const place = [`r${event.revision}`, `#${event.position}`];
  if ('unreadable' in event) {
    const isSaid = event.broken?.includes(event.unreadable) === true;
    const why = [...brokenIn(event), ...(isSaid ? [] : [event.unreadable])].join('; ');
    return ['', ...place, 'cannot be read', '', '', '', '', why];
  }
  const { time, type, status = '', actor, requestId, why = '' } = event;
  const who = [actor, `..${requestId.slice(-REQUEST_ID_END)}`];
  // The words of people stand out from the provider's.
  const said = why.includes('by hand: ') ? styled('yellow', why) : why;
  const words = [...brokenIn(event), ...(said === '' ? [] : [said])].join('; ');
  return [dateAndClockOf(time), ...place, type, amountIn(event), status, ...who, words];
};

export const timelineLines = (events: readonly ShownEvent[]): string[] =>
  columns(events.map(rowOf));

const showState = (state: State): void => {
  const { payment, revision, event, now } = state;
  const amount = (name: string): string =>
    moneyText(Number(payment[name]), String(payment.currency));
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

const showEvents = async (paymentId: string, options: Options, command: Command): Promise<void> => {
  const { file, key, state, diff } = options;
  if (key !== undefined && file === undefined)
    command.error('error: --key goes with --file: a service has its own key');
  const source =
    file === undefined
      ? await serviceSource(paymentId, options)
      : // Loaded only here: decoding stored events needs modules that are slow to load.
        await (await import('./events-of-file.ts')).openFileSource(paymentId, file, key);
  const at = atOf(options.at);
  const isState = state === true || diff === true;
  const { broken } = isState
    ? await showMoment(source, at, options)
    : await showUpTo(source, at, options);
  failIfBroken(`payment ${paymentId}`, broken);
  failOnMisfit(source);
};

const showUpTo = async (source: EventsFile, at: At, { format }: Options) => {
  const timeline = await source.timeline();
  const events = upTo(timeline.events, at);
  printList(format, events, timelineLines, 'The payment has no event up to then.');
  return timeline;
};

const showMoment = async (source: EventsFile, at: At, { format, state, diff }: Options) => {
  const then = await source.state(at);
  const isThere = 'payment' in then;
  if (format === 'json') printJson(state === true || !isThere ? then : then.differences);
  else if (isThere) {
    if (state === true) showState(then);
    if (diff === true) showDiff(then);
  }
  return then;
};

export const eventsCommand = (): Command =>
  formatted('events', 'payments events pay_01… --state --at 2026-03-03T12:00:00Z')
    .description('Shows the events of a payment, oldest first, or its state at a moment.')
    .argument('<paymentId>', 'the payment; to search for it: payments find')
    .option('--at <when>', 'a revision, or a time (RFC 3339)', timeOrRevision)
    .option('--state', 'the state of the payment then; left out: its events up to then')
    .option('--diff', 'what has changed from then to now')
    .option('--file <file>', 'read the events from an export; no service is needed')
    .addOption(keyOption())
    .addOption(dataOption().conflicts('file'))
    .addOption(new Option('--merchant <id>', 'as this merchant sees it').conflicts('file'))
    .action(showEvents);
