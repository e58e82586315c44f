/** The events of a payment as lines: what happened, who did it, and why it is as it is. */
import type { AuditEvent } from '../audit/contract.ts';
import { amountIn, dateAndClockOf, type ShownEvent } from './audit.ts';
import { columns, styled } from './output.ts';

/** How much of a request id is shown: its end, by which the log of the service can be searched. */
const REQUEST_ID_END = 8;

const NEVER_CARRIED_OUT: readonly unknown[] = ['NOT_SENT', 'FENCED'];

const given = (text: unknown, as: (text: unknown) => string): string[] =>
  text === undefined ? [] : [as(text)];

/** What operators said for an outcome, which is not what the provider said (gaps §16). */
const byHand = (resolution: unknown): string => {
  const { evidence, requestedBy, requestEvidence } = Object(resolution);
  const request = [
    ...given(requestedBy, (who) => `requested by ${who}`),
    ...given(requestEvidence, (text) => `"${text}"`),
  ].join(': ');
  return styled('yellow', `by hand: "${evidence}"${request === '' ? '' : `, ${request}`}`);
};

/** What an event says of the outcome beside its type, and who says it. */
const outcomeOf = ({
  outcome,
  evidence,
  failureCode,
  resolution,
}: AuditEvent['data']): string[] => {
  if (NEVER_CARRIED_OUT.includes(outcome)) return [`never carried out: ${outcome}`];
  if (evidence !== undefined) return [styled('yellow', `by hand: ${outcome}, "${evidence}"`)];
  const isSaid = failureCode === undefined && resolution === undefined;
  return isSaid ? given(outcome, (said) => `the provider says ${said}`) : [];
};

const whyOf = ({ data }: AuditEvent): string[] => {
  const { failureCode, providerFailureCode, reason, resolution } = data;
  const own = given(providerFailureCode, (code) => ` (${code})`).join('');
  return [
    ...given(failureCode, (code) => `${code}${own}`),
    ...outcomeOf(data),
    ...given(reason, (text) => `reason: ${text}`),
    ...given(resolution, byHand),
  ];
};

const brokenIn = ({ broken }: ShownEvent): string[] =>
  given(broken, (reason) => styled('red', `DOES NOT VERIFY: ${reason}`));

const rowOf = (event: ShownEvent): string[] => {
  const place = [`r${event.revision}`, `#${event.position}`];
  if ('unreadable' in event) {
    const why = [...brokenIn(event), event.unreadable].join('; ');
    return ['', ...place, 'cannot be read', '', '', '', '', why];
  }
  const { time, type, status = '', actor, requestId } = event;
  const why = [...brokenIn(event), ...whyOf(event)].join('; ');
  const who = [actor, `..${requestId.slice(-REQUEST_ID_END)}`];
  return [dateAndClockOf(time), ...place, type, amountIn(event), status, ...who, why];
};

/** A line for each event, in columns. */
export const timelineLines = (events: readonly ShownEvent[]): string[] =>
  columns(events.map(rowOf));
