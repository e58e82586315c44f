/** A payment at a revision: the event that led there, what GET answered then, and what is different now. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { useAsk } from './api.js';
import { comparedOf, entryText } from './at-provider.js';
import { paymentPage, paymentRoute } from './format.js';
import {
  EventMoney,
  Fact,
  FailedBox,
  html,
  Money,
  Name,
  Raw,
  Status,
  Table,
  Time,
} from './parts.js';
import { byHandNote } from './timeline.js';

/** @typedef {import('./live-events.js').ShownEvent} ShownEvent */
/** @typedef {import('../../shared/payment/fields.ts').PaymentResponse} Payment */
/** @typedef {{ revision: number, payment: Payment, now: { revision: number }, differences: readonly { path: string, was?: unknown, now?: unknown }[], broken?: undefined } | { broken: { position: string, stream: string, revision: number, reason: string }, payment?: undefined }} Moment */

/** A slider that is dragged asks once it rests. */
const REST_MS = 150;

/** @param {number} revision */
const useRested = (revision) => {
  const [rested, setRested] = useState(revision);
  useEffect(() => {
    const timer = setTimeout(() => setRested(revision), REST_MS);
    return () => clearTimeout(timer);
  }, [revision]);
  return rested;
};

/** @param {{ event: import('./timeline.js').AuditEvent, compared: import('./at-provider.js').Compared | undefined }} props */
const EventFacts = ({ event, compared }) => {
  const hand = byHandNote(event);
  const rows = [
    ['Actor', event.actor],
    ['Request', event.requestId],
    ['Correlation', event.correlationId],
    ['Position in the log', `#${event.position}`],
    ['Operation at the provider', event.data.operationId],
    ["Provider's reference", event.data.providerReference],
    ['In words', event.why],
    ['The provider says now', compared && `${entryText(compared)} (${compared.why})`],
    ['Evidence', hand?.evidence],
    ['Requested by', hand?.requestedBy],
    ['Evidence of the request', hand?.requestEvidence],
    ['Hash', event.hash],
  ];
  return html`<h3>${hand !== undefined && html`<span class="hand">☞ by hand: </span>`}${event.type}</h3>
    ${event.broken && html`<p class="bad-text">✕ ${event.broken}</p>`}
    <dl class="facts">
      ${rows
        .filter(([, value]) => value !== undefined && value !== '')
        .map(([name, value]) => html`<div><dt>${name}</dt><dd>${String(value)}</dd></div>`)}
    </dl>
    <${Raw} value=${event} name="Raw event" />`;
};

/** @typedef {'authorizedAmount' | 'capturedAmount' | 'refundedAmount' | 'refundableAmount'} Sum */

/** @type {[string, Sum][]} */
const SUMS = [
  ['Authorized', 'authorizedAmount'],
  ['Captured', 'capturedAmount'],
  ['Refunded', 'refundedAmount'],
  ['Refundable', 'refundableAmount'],
];

/** @type {(events: readonly ShownEvent[], revision: number, field: Sum | 'status') => number} the revision that made the field what it is at `revision` */
const madeAt = (events, revision, field) => {
  /** @param {number} at */
  const valueAt = (at) => {
    const event = events[at];
    if (event === undefined || 'unreadable' in event) return undefined;
    return field === 'status' ? event.status : event.amounts?.[field];
  };
  let at = revision;
  while (at > 0 && valueAt(at - 1) === valueAt(revision)) at -= 1;
  return at;
};

/** @param {{ payment: Payment, events: readonly ShownEvent[], revision: number }} props */
const Amounts = ({ payment, events, revision }) => {
  const { currency, paymentId, merchantReference, personalData } = payment;
  const { card } = payment.paymentMethod;
  /** @param {Sum | 'status'} field */
  const address = (field) => paymentPage(paymentId, madeAt(events, revision, field));
  return html`<dl class="figures">
    <${Fact} name="Status" href=${address('status')}><${Status} status=${payment.status} /><//>
    <${Fact} name="Amount" href=${paymentPage(paymentId, 0)}><${Money} minor=${payment.amount} currency=${currency} /><//>
    ${SUMS.map(([name, sum]) => html`<${Fact} name=${name} href=${address(sum)}><${Money} minor=${payment[sum]} currency=${currency} /><//>`)}
  </dl>
  <p class="hint">Each leads to the event that made it so.</p>
  <dl class="facts">
    ${merchantReference !== undefined && html`<div><dt>Reference</dt><dd class="id">${merchantReference}</dd></div>`}
    <div><dt>Card</dt><dd class="id">${card.brand} …${card.last4}</dd></div>
    ${personalData !== undefined && html`<div><dt>Names and addresses</dt><dd>${Object.keys(personalData)[0]}</dd></div>`}
  </dl>`;
};

const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/** @param {{ path: string, value: unknown, payment: Payment, events: readonly ShownEvent[], revision: number }} props */
const Leaf = ({ path, value, payment: { paymentId, currency }, events, revision }) => {
  if (value === undefined) return html`<em>nothing</em>`;
  if (typeof value === 'string' && TIME.test(value)) return html`<${Time} at=${value} />`;
  if (typeof value !== 'number' || !/amount$/i.test(path))
    return html`<code>${JSON.stringify(value)}</code>`;
  const sum = SUMS.find(([, name]) => name === path)?.[1];
  const at = sum === undefined ? revision : madeAt(events, revision, sum);
  return html`<${EventMoney} id=${paymentId} revision=${at} minor=${value} currency=${currency} />`;
};

/** @param {{ moment: Moment, events: readonly ShownEvent[] }} props */
const Then = ({ moment, events }) => {
  const { payment } = moment;
  if (payment === undefined)
    return html`<p>From revision ${moment.broken.revision} on nothing is proven, so no answer of GET is shown.</p>`;
  const { differences, now, revision } = moment;
  /** @type {(path: string, value: unknown, at: number) => unknown} */
  const leaf = (path, value, at) =>
    html`<${Leaf} path=${path} value=${value} payment=${payment} events=${events} revision=${at} />`;
  return html`<h3>What GET answered then</h3>
    <${Amounts} payment=${payment} events=${events} revision=${revision} />
    <${Raw} value=${payment} name="The whole body" />
    <h3>Different now</h3>
    ${
      differences.length === 0
        ? html`<p>${revision === now.revision ? 'This is the payment now.' : 'Nothing.'}</p>`
        : html`<${Table} label="Differences" columns=${['Field', 'Then', html`Now (<a href=${paymentPage(payment.paymentId, now.revision)}>r${now.revision}</a>)`]}>
            ${differences.map((one) => html`<tr><th scope="row" class="id"><${Name} name=${one.path} /></th><td>${leaf(one.path, one.was, revision)}</td><td>${leaf(one.path, one.now, now.revision)}</td></tr>`)}<//>`
    }`;
};

/** @param {{ paymentId: string, events: readonly ShownEvent[], revision: number, choose: (revision: number) => void, reconciliation: import('./at-provider.js').Reconciliation | undefined }} props */
export const AtRevision = ({ paymentId, events, revision, choose, reconciliation }) => {
  const rested = useRested(revision);
  const loaded = useAsk(paymentRoute(paymentId, 'state', { revision: rested }));
  const moment = /** @type {Moment | undefined} */ (loaded.value);
  // The earlier moment stays until the next one is there, so that an element in it keeps the focus.
  const last = useRef(moment);
  last.current = moment ?? last.current;
  const shown = loaded.problem === undefined ? last.current : undefined;
  const event = events[revision];
  /** @param {{ currentTarget: HTMLInputElement }} change */
  const slid = ({ currentTarget }) => choose(Number(currentTarget.value));
  return html`<section class="then" aria-labelledby="then">
    <h2 id="then" data-arrival>At revision ${revision}</h2>
    <p><label>Revision <input type="range" min="0" max=${events.length - 1} value=${revision} onInput=${slid} aria-valuetext=${`revision ${revision} of ${events.length - 1}`} /></label>
      <small class="own-line">Arrow keys move one step.</small></p>
    ${event !== undefined && ('unreadable' in event ? html`<p class="bad-text">✕ cannot be read: ${event.unreadable}</p>` : html`<${EventFacts} event=${event} compared=${comparedOf(reconciliation, event.data.operationId)} />`)}
    <${FailedBox} problem=${loaded.problem} again=${loaded.again} />
    ${shown !== undefined && html`<div aria-busy=${moment === undefined}><${Then} moment=${shown} events=${events} /></div>`}
  </section>`;
};
