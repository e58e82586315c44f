/** A payment at a revision: the event that led there, what GET answered then, and what is different now. */
import { useEffect, useState } from 'preact/hooks';
import { comparedOf, entryText } from './at-provider.js';
import { pathOf } from './format.js';
import { html } from './html.js';
import { BrokenBox, Fact, Money, ProblemBox, Raw, Status } from './parts.js';
import { byHand } from './timeline.js';
import { useAsk } from './use-ask.js';

/** @typedef {import('./live-events.js').ShownEvent} ShownEvent */
/** @typedef {{ status: string, amount: number, authorizedAmount: number, capturedAmount: number, refundedAmount: number, refundableAmount: number, currency: string }} Payment */
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
  const hand = byHand(event);
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
    <dl class="facts">
      ${rows
        .filter(([, value]) => value !== undefined && value !== '')
        .map(([name, value]) => html`<div><dt>${name}</dt><dd>${String(value)}</dd></div>`)}
    </dl>
    <${Raw} value=${event} name="Raw event" />`;
};

/** @param {{ payment: Payment }} props */
const Amounts = ({ payment }) => {
  const { currency } = payment;
  /** @type {[string, number][]} */
  const rows = [
    ['Amount', payment.amount],
    ['Authorized', payment.authorizedAmount],
    ['Captured', payment.capturedAmount],
    ['Refunded', payment.refundedAmount],
    ['Refundable', payment.refundableAmount],
  ];
  return html`<dl class="figures">
    <${Fact} name="Status"><${Status} status=${payment.status} /><//>
    ${rows.map(([name, minor]) => html`<${Fact} name=${name}><${Money} minor=${minor} currency=${currency} /><//>`)}
  </dl>`;
};

/** @param {{ value: unknown }} props */
const Leaf = ({ value }) =>
  value === undefined ? html`<em>nothing</em>` : html`<code>${JSON.stringify(value)}</code>`;

/** @param {{ moment: Moment }} props */
const Then = ({ moment }) => {
  const { payment } = moment;
  if (payment === undefined) return html`<${BrokenBox} broken=${moment.broken} />`;
  const { differences, now, revision } = moment;
  return html`<h3>What GET answered then</h3>
    <${Amounts} payment=${payment} />
    <${Raw} value=${payment} name="The whole body" />
    <h3>Different now</h3>
    ${
      differences.length === 0
        ? html`<p>${revision === now.revision ? 'This is the payment now.' : 'Nothing.'}</p>`
        : html`<div class="scrolls" tabindex="0" role="region" aria-label="Differences"><table>
            <thead><tr><th scope="col">Field</th><th scope="col">Then</th><th scope="col">Now (r${now.revision})</th></tr></thead>
            <tbody>${differences.map((one) => html`<tr><th scope="row">${one.path}</th><td><${Leaf} value=${one.was} /></td><td><${Leaf} value=${one.now} /></td></tr>`)}</tbody>
          </table></div>`
    }`;
};

/**
 * @param {{ paymentId: string, events: readonly ShownEvent[], revision: number, choose: (revision: number) => void, reconciliation: import('./at-provider.js').Reconciliation | undefined }} props
 */
export const AtRevision = ({ paymentId, events, revision, choose, reconciliation }) => {
  const rested = useRested(revision);
  const path = pathOf(`/audit/v1/payments/${encodeURIComponent(paymentId)}/state`, {
    revision: rested,
  });
  const loaded = useAsk(path);
  const moment = /** @type {Moment | undefined} */ (loaded.value);
  const event = events[revision];
  /** @param {{ currentTarget: HTMLInputElement }} change */
  const slid = ({ currentTarget }) => choose(Number(currentTarget.value));
  return html`<section aria-labelledby="then">
    <h2 id="then">At revision ${revision}</h2>
    <p><label>Revision <input type="range" min="0" max=${events.length - 1} value=${revision} onInput=${slid} aria-valuetext=${`revision ${revision} of ${events.length - 1}`} /></label>
      <small> Arrow keys move one step.</small></p>
    ${event !== undefined && !('unreadable' in event) && html`<${EventFacts} event=${event} compared=${comparedOf(reconciliation, event.data.operationId)} />`}
    <${ProblemBox} problem=${loaded.problem} again=${loaded.again} />
    ${moment !== undefined && html`<${Then} moment=${moment} />`}
  </section>`;
};
