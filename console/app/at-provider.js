/** The provider's word on each operation, next to the outcome of the log. */
import { money, numberOf, pathOf } from './format.js';
import { html, Raw, Shown, Table } from './parts.js';

/** @typedef {import('../../command-api/back-office/reconcile/contract.ts').PaymentReconciliation} Reconciliation */
/** @typedef {Reconciliation['operations'][number]} Compared */

/** A sign and words for each finding: colour is never the only sign. */
const FINDINGS = {
  AGREES: { sign: '✓', words: 'provider agrees', kind: 'good-text' },
  DIFFERS: { sign: '✕', words: 'provider differs', kind: 'bad-text' },
  OPEN: { sign: '…', words: 'no entry so far', kind: '' },
  NO_ENTRY: { sign: '○', words: 'no entry there', kind: '' },
  NOT_KNOWN: { sign: '?', words: 'provider silent', kind: '' },
};

/** @param {{ compared: Compared }} props */
export const ProviderMark = ({ compared: { finding, why } }) => {
  const { sign, words, kind } = FINDINGS[finding];
  return html`<span class=${kind} title=${why}><span aria-hidden="true">${sign}</span> ${words}</span>`;
};

/** @param {Compared} compared */
export const entryText = ({ provider }) => {
  const { outcome, providerReference, failureCode, providerFailureCode } = provider;
  return [outcome, providerReference, failureCode, providerFailureCode].filter(Boolean).join(' ');
};

/** @type {(reconciliation: Reconciliation | undefined, operationId: unknown) => Compared | undefined} */
export const comparedOf = (reconciliation, operationId) =>
  reconciliation?.operations.find((one) => one.operationId === operationId);

/** @param {{ compared: Compared, address: string }} props */
const Row = ({ compared, address }) => {
  const { revision, kind, amount, currency, log = 'no outcome yet', why, difference } = compared;
  const href = pathOf(address, { revision });
  return html`<tr>
    <th scope="row"><a href=${href}>r${revision} ${kind}</a></th>
    <td class="amount"><a href=${href}>${money(amount, currency)}</a></td>
    <td>${log}</td>
    <td>${entryText(compared)}</td>
    <td><${ProviderMark} compared=${compared} /><small>${difference === undefined ? '' : `${difference}: `}${why}</small></td>
  </tr>`;
};

const COLUMNS = ['Operation', 'Amount', 'Log', 'Provider', 'Finding'];

/** @param {{ paymentId: string, address: string, loaded: import('./api.js').Loaded<Reconciliation>, isBroken: boolean }} props */
export const AtProvider = ({ paymentId, address, loaded, isBroken }) => {
  /** @param {Reconciliation} value */
  const shown = (value) => html`<${Table} label="Operations at the provider" columns=${COLUMNS}>
      ${value.operations.map((one) => html`<${Row} key=${one.operationId} compared=${one} address=${address} />`)}<//>
    ${value.notCompared > 0 && html`<p><a href="#happened">${numberOf(value.notCompared, 'older operation')}</a> not compared: <code>npx payments reconcile ${paymentId} --limit 100</code></p>`}
    <p><button type="button" onClick=${loaded.again}>Ask the provider again</button></p>
    <${Raw} value=${value} />`;
  return html`<section aria-labelledby="provider">
    <h2 id="provider">At the provider</h2>
    <p class="hint">Its word now on each operation, the last 20. Nothing is changed by asking.</p>
    ${isBroken ? html`<p>Not asked: the stream does not verify. <a href="/console/operate/reconcile">Reconcile</a> compares the whole ledger.</p>` : html`<${Shown} loaded=${loaded} what="the provider's entries">${shown}<//>`}
  </section>`;
};
