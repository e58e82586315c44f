/** Everything that needs a person, and the acknowledgement of what a check found. */
import { send, useAsk, useAttempt } from '../../api.js';
import { FailedBox, formOf, html, PaymentLink, Shown, Time } from '../../parts.js';

/** @typedef {import('../../../../command-api/back-office/attention/contract.ts').AttentionList} Listed */
/** @typedef {Listed['items'][number]} Item */

const LIST = '/ops/v1/attention';
const LIST_MS = 3_000;
const ACKNOWLEDGED = ['LOG_BROKEN', 'LEDGER_DIFFERS'];

/** @param {{ item: Item, again: () => void }} props */
const Row = ({ item, again }) => {
  const { problem, attempt } = useAttempt();
  const { id, reason, paymentId, since, what, next } = item;
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    const note = formOf(event).get('note');
    const stored = await attempt(send(`${LIST}/${id}/acknowledge`, { note }));
    if (stored !== undefined) again();
  };
  return html`<li class="card">
    <h3><span class="state">${reason}</span> since <${Time} at=${since} /></h3>
    <p>${what} ${paymentId && html`<${PaymentLink} id=${paymentId} />`}</p>
    <p><code>${next}</code></p>
    <${FailedBox} problem=${problem} />
    ${
      ACKNOWLEDGED.includes(reason) &&
      html`<form onSubmit=${submit}>
        <label>Note: what was found out. It is recorded. <input name="note" required maxlength="255" /></label>
        <button type="submit">Acknowledge</button>
      </form>`
    }
  </li>`;
};

export const AttentionSection = () => {
  const loaded = useAsk(LIST, LIST_MS);
  /** @param {Listed} listed */
  const list = ({ items, next }) => html`
    ${items.length === 0 ? html`<p class="finding good">✓ Nothing needs a person.</p>` : html`<ul class="cards">${items.map((item) => html`<${Row} key=${item.id} item=${item} again=${loaded.again} />`)}</ul>`}
    ${next && html`<p class="hint">The oldest 100. <code>npx payments attention</code> lists all.</p>`}`;
  return html`<h2>What needs a person</h2><${Shown} loaded=${loaded} what="what needs a person">${list}<//>`;
};
