/** Whether a command would be allowed now, and which events forbid it. */
import { useState } from 'preact/hooks';
import { minorOf, money, pathOf } from './format.js';
import { html } from './html.js';
import { BrokenBox, Finding, ProblemBox, Time } from './parts.js';
import { useAsk } from './use-ask.js';

/** @typedef {import('../../audit/contract.ts').AuditExplanation} Explanation */
/** @typedef {import('../../audit/contract.ts').AuditForbidding} Forbidding */

const COMMANDS = ['refund', 'capture', 'void'];

/** @param {{ title: string, rows: readonly (Forbidding & { failureCode?: string })[], choose: (revision: number) => void }} props */
const Because = ({ title, rows, choose }) =>
  rows.length === 0
    ? null
    : html`<h3>${title}</h3><ul class="because">
        ${rows.map(
          (
            one,
          ) => html`<li><button type="button" class="link" onClick=${() => choose(one.revision)}>r${one.revision} ${one.type}</button>
            <${Time} at=${one.time} /> ${one.why} ${one.failureCode && html`<code>${one.failureCode}</code>`}</li>`,
        )}
      </ul>`;

/** @param {{ explanation: Explanation, choose: (revision: number) => void }} props */
const Explained = ({ explanation, choose }) => {
  const { command, allowed, status = 'not shown', amount, currency, code, details } = explanation;
  const of = amount === undefined || currency === undefined ? '' : ` of ${money(amount, currency)}`;
  return html`<${Finding} isGood=${allowed}>${command}${of} ${allowed ? 'would be allowed' : `refused: ${code}`} (the payment is ${status})<//>
    ${details.map((detail) => html`<p>${detail}</p>`)}
    <${BrokenBox} broken=${explanation.broken} />
    <${Because} title="Because of" rows=${explanation.forbiddenBy} choose=${choose} />
    <${Because} title="Declined by the provider before" rows=${explanation.declined} choose=${choose} />`;
};

/** @param {{ paymentId: string, choose: (revision: number) => void }} props */
export const Explain = ({ paymentId, choose }) => {
  const [path, setPath] = useState(/** @type {string | undefined} */ (undefined));
  const [command, setCommand] = useState('refund');
  const response = useAsk(path);
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const amount = command === 'void' ? undefined : minorOf(String(form.get('amount')));
    const route = `/audit/v1/payments/${encodeURIComponent(paymentId)}/explain`;
    const next = pathOf(route, { command, amount });
    if (next === path) response.again();
    else setPath(next);
  };
  /** @param {{ currentTarget: HTMLSelectElement }} change */
  const chosen = ({ currentTarget }) => setCommand(currentTarget.value);
  const explanation = /** @type {Explanation | undefined} */ (response.value);
  return html`<section aria-labelledby="explain">
    <h2 id="explain">Would it be allowed?</h2>
    <form class="line" onSubmit=${submit}>
      <label>Command <select name="command" onChange=${chosen}>${COMMANDS.map((one) => html`<option selected=${one === command}>${one}</option>`)}</select></label>
      ${command !== 'void' && html`<label>Amount, empty for all of it <input name="amount" inputmode="decimal" pattern="[0-9]{1,12}([.,][0-9]{1,2})?" placeholder="5.00" /></label>`}
      <button type="submit">Explain</button>
    </form>
    <p class="hint">Nothing is done.</p>
    <${ProblemBox} problem=${response.problem} />
    ${explanation !== undefined && html`<div aria-live="polite"><${Explained} explanation=${explanation} choose=${choose} /></div>`}
  </section>`;
};
