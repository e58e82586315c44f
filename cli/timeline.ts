/** The events of a payment as lines: what happened, who did it, and why it is as it is. */
import { amountIn, dateAndClockOf, type ShownEvent } from './audit.ts';
import { columns, styled } from './output.ts';

/** How much of a request id is shown: its end, by which the log of the service can be searched. */
const REQUEST_ID_END = 8;

const brokenIn = ({ broken }: ShownEvent): string[] =>
  broken === undefined ? [] : [styled('red', `DOES NOT VERIFY: ${broken}`)];

/** What people said stands out from what the provider said. */
const wordsOf = (why: string): string[] => {
  if (why === '') return [];
  return [why.includes('by hand: ') ? styled('yellow', why) : why];
};

const rowOf = (event: ShownEvent): string[] => {
  const place = [`r${event.revision}`, `#${event.position}`];
  if ('unreadable' in event) {
    const isSaid = event.broken?.includes(event.unreadable) === true;
    const why = [...brokenIn(event), ...(isSaid ? [] : [event.unreadable])].join('; ');
    return ['', ...place, 'cannot be read', '', '', '', '', why];
  }
  const { time, type, status = '', actor, requestId, why = '' } = event;
  const who = [actor, `..${requestId.slice(-REQUEST_ID_END)}`];
  const words = [...brokenIn(event), ...wordsOf(why)].join('; ');
  return [dateAndClockOf(time), ...place, type, amountIn(event), status, ...who, words];
};

/** A line for each event, in columns. */
export const timelineLines = (events: readonly ShownEvent[]): string[] =>
  columns(events.map(rowOf));
