/** What became of the texts of a person in a payment: what was erased, when, by whom and why. */
import { numberOf, paymentPage } from './format.js';
import { html, Time } from './parts.js';

/** @typedef {import('./live-events.js').ShownEvent} ShownEvent */

/** @param {{ paymentId: string, events: readonly ShownEvent[] }} props none where the log has no erasure */
export const Erased = ({ paymentId, events }) => {
  const event = events.find((one) => 'type' in one && one.type === 'PaymentPersonalDataErased');
  if (event === undefined || 'unreadable' in event) return null;
  const { reason, ticket, requestedBy, keys } = event.data;
  const rows = [
    ['What', `names, addresses and free texts (${numberOf(Object(keys).length, 'key')})`],
    ['When', html`<${Time} at=${event.time} />`],
    ['Requested by', requestedBy],
    ['Erased by', event.actor],
    ['Reason', reason],
    ['Ticket', ticket],
    ['Event', html`<a href=${paymentPage(paymentId, event.revision)}>r${event.revision}</a>`],
  ];
  return html`<section aria-labelledby="erased">
    <h2 id="erased">Erased for good</h2>
    <dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
  </section>`;
};
