/** What happened to a payment, one row an event: when, after how long, by whom, how much, why. */
import { duration, money } from './format.js';
import { html } from './html.js';
import { Clock, Status } from './parts.js';
import { Windowed } from './windowed.js';

/** @typedef {import('../../audit/contract.ts').AuditEvent} AuditEvent */
/** @typedef {import('./live-events.js').ShownEvent} ShownEvent */

const ROW_PX = 52;

/**
 * What a person said in place of the provider; undefined for the provider's own word.
 * @param {AuditEvent} event
 * @returns {{ evidence?: string, requestedBy?: string, requestEvidence?: string } | undefined}
 */
export const byHand = ({ type, data }) =>
  type === 'PaymentResolutionRequested'
    ? /** @type {object} */ (data)
    : /** @type {object | undefined} */ (data.resolution);

/**
 * Why the provider declined, or that it never got the operation; empty where neither is so.
 * @param {AuditEvent} event
 */
export const reasonIn = ({ data }) =>
  [data.failureCode, data.providerFailureCode, data.reason]
    .filter((text) => typeof text === 'string')
    .join(' · ');

/**
 * The time between an event and the one before it; undefined for the first.
 * @param {readonly ShownEvent[]} events
 * @param {number} at
 */
export const stepBefore = (events, at) => {
  const [event, before] = [events[at], events[at - 1]];
  if (event === undefined || before === undefined) return undefined;
  if ('unreadable' in event || 'unreadable' in before) return undefined;
  return Date.parse(event.time) - Date.parse(before.time);
};

/** @param {{ event: AuditEvent, step: number | undefined }} props */
const ReadableRow = ({ event, step }) => {
  const hand = byHand(event);
  const reason = reasonIn(event);
  const { amounts } = event;
  const day = event.time.slice(0, 10);
  return html`<span class="at"><${Clock} at=${event.time} /><small>${step === undefined ? day : `+${duration(step)}`}</small></span>
    <span class="type">${event.type}<small>${hand !== undefined && html`<span class="hand">☞ by hand </span>`}${reason}</small></span>
    <span class="amount">${amounts && money(amounts.amount, amounts.currency)}<small>${amounts?.releasedAmount ? `${money(amounts.releasedAmount, amounts.currency)} released` : ''}</small></span>
    <span class="after">${event.status && html`<${Status} status=${event.status} />`}</span>
    <span class="who">${event.actor}<small>…${event.requestId.slice(-8)}</small></span>`;
};

/**
 * The events; the chosen revision is marked and kept in sight.
 * @param {{ events: readonly ShownEvent[], chosen: number, choose: (revision: number) => void }} props
 */
export const Timeline = ({ events, chosen, choose }) => {
  /**
   * @param {ShownEvent} event
   * @param {number} at
   */
  const row = (event, at) => {
    const isBroken = event.broken !== undefined;
    const kind = 'unreadable' in event ? '' : byHand(event) === undefined ? '' : ' by-hand';
    return html`<button type="button" class=${`event${kind}${isBroken ? ' is-broken' : ''}`} aria-current=${at === chosen ? 'true' : undefined} onClick=${() => choose(at)}>
      <span class="revision">r${event.revision}</span>
      ${isBroken && html`<strong class="bad-text">✕ does not match its hash: ${event.broken}</strong>`}
      ${
        'unreadable' in event
          ? html`<strong class="bad-text">✕ cannot be read: ${event.unreadable}</strong>`
          : html`<${ReadableRow} event=${event} step=${stepBefore(events, at)} />`
      }
    </button>`;
  };
  return html`<${Windowed} rows=${events} rowHeight=${ROW_PX} label="Events, oldest first" chosen=${chosen} row=${row} />`;
};
