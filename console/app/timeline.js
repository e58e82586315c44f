/** What happened to a payment, one row an event: when, after how long, by whom, how much, why. */
import { comparedOf, ProviderMark } from './at-provider.js';
import { duration, money, pathOf } from './format.js';
import { Clock, html, isUnreadable, Name, Status } from './parts.js';
import { useNarrow, Windowed } from './windowed.js';

/** @typedef {import('../../audit/contract.ts').AuditEvent} AuditEvent */
/** @typedef {import('./live-events.js').ShownEvent} ShownEvent */
/** @import { Compared, Reconciliation } from './at-provider.js' */

const ROW_PX = { wide: 60, narrow: 118 };

/** @type {(event: AuditEvent) => { evidence?: string, requestedBy?: string, requestEvidence?: string } | undefined} a person's word in place of the provider's */
export const byHandNote = ({ type, data }) =>
  type === 'PaymentResolutionRequested'
    ? /** @type {object} */ (data)
    : /** @type {object | undefined} */ (data.resolution);

/** @type {(events: readonly ShownEvent[], at: number) => number | undefined} milliseconds since the event before */
const stepBefore = (events, at) => {
  const [event, before] = [events[at], events[at - 1]];
  if (event === undefined || before === undefined) return undefined;
  if ('unreadable' in event || 'unreadable' in before) return undefined;
  return Date.parse(event.time) - Date.parse(before.time);
};

/** @type {(event: AuditEvent) => string} the released amount, and the words of the event */
const wordsOf = ({ amounts, why = '' }) => {
  const { releasedAmount = 0, currency = '' } = amounts ?? {};
  const released = releasedAmount > 0 ? `${money(releasedAmount, currency)} released` : '';
  return [released, why].filter(Boolean).join('; ');
};

/** @param {{ event: ShownEvent, step: number | undefined, compared: Compared | undefined, isProven: boolean }} props */
const Row = ({ event, step, compared, isProven }) => {
  const { revision, broken } = event;
  const readable = 'unreadable' in event ? undefined : event;
  const hand = readable && byHandNote(readable);
  const words = 'unreadable' in event ? event.unreadable : wordsOf(event);
  const text = broken ?? words;
  const time = readable?.time ?? '';
  return html`<span class="revision">r${revision}</span>
    <span class="type">${readable === undefined ? html`<strong class="bad-text">✕ cannot be read</strong>` : html`<${Name} name=${readable.type} />`}
      <small title=${text} class=${broken === undefined ? '' : 'bad-text'}>${hand && html`<span class="hand">☞ ${words.startsWith('by hand') ? '' : 'by hand '}</span>`}${text}</small></span>
    <span class="at">${readable && html`<${Clock} at=${time} /> <small>${step === undefined ? time.slice(0, 10) : `+${duration(step)}`}</small>`}</span>
    <span class="amount">${readable?.amounts && money(readable.amounts.amount, readable.amounts.currency)}</span>
    <span class="after">${readable?.status && html`<${Status} status=${readable.status} />`}
      ${broken !== undefined && !isUnreadable(broken) && html`<strong class="bad-text">✕ changed</strong>`}${' '}
      <small>${isProven ? compared?.revision === revision && html`<${ProviderMark} compared=${compared} />` : '? not proven'}</small></span>
    <span class="who">${readable && html`${readable.actor}<small>…${readable.requestId.slice(-5)}</small>`}</span>`;
};

/**
 * The chosen revision is kept in sight, and is the one row that Tab stops at.
 * @param {{ address: string, events: readonly ShownEvent[], chosen: number, choose: (revision: number) => void, reconciliation?: Reconciliation | undefined }} props
 */
export const Timeline = ({ address, events, chosen, choose, reconciliation }) => {
  const rowHeight = useNarrow() ? ROW_PX.narrow : ROW_PX.wide;
  const brokenAt = events.findIndex(({ broken }) => broken !== undefined);
  /** @type {(event: ShownEvent, at: number) => unknown} */
  const row = (event, at) => {
    const isByHand = !('unreadable' in event) && byHandNote(event) !== undefined;
    const operationId = 'unreadable' in event ? undefined : event.data.operationId;
    return html`<a href=${pathOf(address, { revision: at })} class=${`event${isByHand ? ' by-hand' : ''}${at === brokenAt ? ' is-broken' : ''}`} aria-current=${at === chosen ? 'true' : undefined} tabindex=${at === chosen ? 0 : -1}>
      <${Row} event=${event} step=${stepBefore(events, at)} compared=${comparedOf(reconciliation, operationId)} isProven=${brokenAt === -1 || at <= brokenAt} /></a>`;
  };
  return html`<${Windowed} rows=${events} rowHeight=${rowHeight} label="Events, oldest first" chosen=${chosen} choose=${choose} row=${row} />`;
};
