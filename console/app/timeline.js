/** What happened to a payment, one row an event: when, after how long, by whom, how much, why. */
import { comparedOf, ProviderMark } from './at-provider.js';
import { duration, money, pathOf } from './format.js';
import { Clock, html, Status } from './parts.js';
import { useRowHeight, Windowed } from './windowed.js';

/** @typedef {import('../../audit/contract.ts').AuditEvent} AuditEvent */
/** @typedef {import('./live-events.js').ShownEvent} ShownEvent */
/** @typedef {import('./at-provider.js').Reconciliation} Reconciliation */
/** @typedef {import('./at-provider.js').Compared} Compared */

const ROW_PX = { wide: 60, narrow: 132 };

/** @type {(event: AuditEvent) => { evidence?: string, requestedBy?: string, requestEvidence?: string } | undefined} a person's word in place of the provider's */
export const byHand = ({ type, data }) =>
  type === 'PaymentResolutionRequested'
    ? /** @type {object} */ (data)
    : /** @type {object | undefined} */ (data.resolution);

/** @type {(events: readonly ShownEvent[], at: number) => number | undefined} milliseconds since the event before */
export const stepBefore = (events, at) => {
  const [event, before] = [events[at], events[at - 1]];
  if (event === undefined || before === undefined) return undefined;
  if ('unreadable' in event || 'unreadable' in before) return undefined;
  return Date.parse(event.time) - Date.parse(before.time);
};

/** @param {{ event: AuditEvent, step: number | undefined, compared: Compared | undefined }} props */
const ReadableRow = ({ event, step, compared }) => {
  const hand = byHand(event);
  const { amounts, why = '', revision } = event;
  const day = event.time.slice(0, 10);
  return html`<span class="at"><${Clock} at=${event.time} /><small>${step === undefined ? day : `+${duration(step)}`}</small></span>
    <span class="type">${event.type}<small title=${why}>${hand === undefined ? why : html`<span class="hand">☞ ${why.startsWith('by hand') ? '' : 'by hand '}${why}</span>`}</small></span>
    <span class="amount">${amounts && money(amounts.amount, amounts.currency)}<small>${amounts?.releasedAmount ? `${money(amounts.releasedAmount, amounts.currency)} released` : ''}</small></span>
    <span class="after">${event.status && html`<${Status} status=${event.status} />`}<small>${compared?.revision === revision && html`<${ProviderMark} compared=${compared} />`}</small></span>
    <span class="who">${event.actor}<small>…${event.requestId.slice(-8)}</small></span>`;
};

/**
 * The chosen revision is kept in sight, and is the one row that Tab stops at.
 * @param {{ address: string, events: readonly ShownEvent[], chosen: number, choose: (revision: number) => void, reconciliation?: Reconciliation | undefined }} props
 */
export const Timeline = ({ address, events, chosen, choose, reconciliation }) => {
  const rowHeight = useRowHeight(ROW_PX);
  /** @type {(event: ShownEvent, at: number) => unknown} */
  const row = (event, at) => {
    const isBroken = event.broken !== undefined;
    const isUnread = 'unreadable' in event && event.broken?.includes(event.unreadable) === true;
    const kind = 'unreadable' in event ? '' : byHand(event) === undefined ? '' : ' by-hand';
    return html`<a href=${pathOf(address, { revision: at })} class=${`event${kind}${isBroken ? ' is-broken' : ''}`} aria-current=${at === chosen ? 'true' : undefined} tabindex=${at === chosen ? 0 : -1}>
      <span class="revision">r${event.revision}</span>
      ${isBroken && !isUnread && html`<strong class="bad-text">✕ does not match its hash: ${event.broken}</strong>`}
      ${
        'unreadable' in event
          ? html`<strong class="bad-text">✕ cannot be read: ${event.unreadable}</strong>`
          : html`<${ReadableRow} event=${event} step=${stepBefore(events, at)} compared=${comparedOf(reconciliation, event.data.operationId)} />`
      }
    </a>`;
  };
  return html`<${Windowed} rows=${events} rowHeight=${rowHeight} label="Events, oldest first" chosen=${chosen} choose=${choose} row=${row} />`;
};
