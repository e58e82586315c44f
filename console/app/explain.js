/** Whether a command would be allowed now, and which events forbid it. */
import { useState } from 'preact/hooks';
import { useAsk } from './api.js';
import { minorOf, pathOf, paymentRoute } from './format.js';
import { BrokenBox, EventMoney, FailedBox, Finding, formOf, html, Time } from './parts.js';

/** @import { AuditExplanation as Explanation, AuditForbidding as Forbidding } from '../../audit/contract.ts' */

const COMMANDS = ['refund', 'capture', 'void'];

/** @param {{ title: string, rows: readonly (Forbidding & { failureCode?: string })[], address: string }} props */
const Because = ({ title, rows, address }) => {
  /** @param {(typeof rows)[number]} one */
  const row = ({ revision, type, time, why, failureCode }) =>
    html`<li><a href=${pathOf(address, { revision })}>r${revision} ${type}</a> <${Time} at=${time} /> ${why} ${failureCode && html`<code>${failureCode}</code>`}</li>`;
  return rows.length > 0 && html`<h3>${title}</h3><ul class="because">${rows.map(row)}</ul>`;
};

/** @param {{ explanation: Explanation, address: string, isPast: boolean }} props */
const Explained = ({ explanation, address, isPast }) => {
  const { paymentId, command, allowed, status = 'not shown', code, details } = explanation;
  const { amount, currency, revision = 0 } = explanation;
  const of =
    amount !== undefined &&
    html` of <${EventMoney} id=${paymentId} revision=${revision} minor=${amount} currency=${currency} />`;
  return html`<${Finding} isGood=${allowed}>${command}${of} ${allowed ? (isPast ? 'would have been allowed' : 'would be allowed') : `refused: ${code}`} ${isPast && html`at <a href=${pathOf(address, { revision })}>r${revision}</a> `}(the payment ${isPast ? 'was' : 'is'} ${status})<//>
    ${details.map((detail) => html`<p>${detail}</p>`)}
    <${BrokenBox} broken=${explanation.broken} />
    <${Because} title="Because of" rows=${explanation.forbiddenBy} address=${address} />
    <${Because} title="Declined or never carried out before" rows=${explanation.declined} address=${address} />`;
};

/** @param {{ paymentId: string, address: string, revision: number | undefined }} props `revision` where it is not the last. */
export const Explain = ({ paymentId, address, revision }) => {
  const [shown, show] = useState(
    /** @type {{ path?: string, isPast: boolean }} */ ({ isPast: false }),
  );
  const [command, setCommand] = useState('refund');
  const response = useAsk(shown.path);
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    const amount = command === 'void' ? undefined : minorOf(String(formOf(event).get('amount')));
    const path = paymentRoute(paymentId, 'explain', { command, amount, revision });
    if (path === shown.path) response.again();
    else show({ path, isPast: revision !== undefined });
  };
  /** @param {{ currentTarget: HTMLSelectElement }} change */
  const chosen = ({ currentTarget }) => setCommand(currentTarget.value);
  const explanation = /** @type {Explanation | undefined} */ (response.value);
  return html`<section aria-labelledby="explain">
    <h2 id="explain">Would it be allowed${revision === undefined ? '' : ` at r${revision}`}?</h2>
    <form class="line" onSubmit=${submit}>
      <label>Command <select name="command" onChange=${chosen}>${COMMANDS.map((one) => html`<option selected=${one === command}>${one}</option>`)}</select></label>
      ${command !== 'void' && html`<label>Amount, empty for all of it <input name="amount" inputmode="decimal" pattern="[0-9]{1,12}([.,][0-9]{1,2})?" placeholder="5.00" /></label>`}
      <button type="submit">Explain</button>
    </form>
    <p class="hint">Nothing is done.</p>
    <${FailedBox} problem=${response.problem} />
    ${explanation !== undefined && html`<div aria-live="polite"><${Explained} explanation=${explanation} address=${address} isPast=${shown.isPast} /></div>`}
  </section>`;
};
