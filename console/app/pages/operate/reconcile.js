/** The provider's ledger against the log. */
import { useState } from 'preact/hooks';
import { useRun } from '../../api.js';
import { counted, money, numberOf, pathOf, paymentPage } from '../../format.js';
import { FailedBox, Finding, html, PaymentLink, Raw, Table, Time } from '../../parts.js';

/** @typedef {import('../../../../command-api/back-office/reconcile/contract.ts').Reconciliation} Reconciliation */
/** @typedef {Reconciliation['differences'][number]} Difference */

/** @type {(difference: Difference, side: 'log' | 'provider') => string} */
const sideOf = ({ log, provider }, name) => {
  const side = name === 'log' ? log : provider;
  if (side === undefined) return (log ?? provider) ? 'nothing' : 'as found earlier';
  return `${side.kind} ${money(side.amount, side.currency)} ${side.outcome ?? 'unresolved'}`;
};

/** @param {{ found: Reconciliation }} props */
const Result = ({ found }) => {
  const { ok, operations, atOtherProviders, entries, unreadable, notCompared, differences, more } =
    found;
  return html`<${Finding} isGood=${ok}>${ok ? 'Log and provider agree' : 'Log and provider do not agree'}: <a href="/console/find">${numberOf(operations, 'operation')}</a>, <a href="#compared">${counted(entries)} ledger ${entries === 1 ? 'entry' : 'entries'}</a>${found.since !== undefined && html` since <${Time} at=${found.since} />`}<//>
    ${unreadable > 0 && html`<p><a href="/console/verify">${numberOf(unreadable, 'event')}</a> cannot be read.</p>`}
    ${atOtherProviders > 0 && html`<p>${counted(atOtherProviders)} were sent to other providers and not compared.</p>`}
    ${notCompared > 0 && html`<p>${counted(notCompared)} were not compared: too many waited for a counterpart.</p>`}
    ${
      differences.length > 0 &&
      html`<${Table} label="Differences" columns=${['Payment', 'Difference', 'Operation', 'Log', 'Provider']}>
        ${differences.map((one) => html`<tr><td><${PaymentLink} id=${one.paymentId} /></td><td>${one.kind}</td><td class="id">${one.operationId}</td><td><a href=${paymentPage(one.paymentId)}>${sideOf(one, 'log')}</a><small>${one.log?.reason}</small></td><td><a href=${paymentPage(one.paymentId)}>${sideOf(one, 'provider')}</a></td></tr>`)}<//>`
    }
    ${more > 0 && html`<p>${counted(more)} more are not listed.</p>`}
    <${Raw} id="compared" value=${found} />`;
};

export const ReconcileSection = () => {
  const [isAll, setAll] = useState(false);
  const path = pathOf('/audit/v1/reconcile', { all: String(isAll) });
  /** @type {ReturnType<typeof useRun<Reconciliation>>} */
  const { isRunning, result, problem, start } = useRun(path, 'POST');
  return html`<h2>Reconcile</h2>
    <p>Compares each operation of the last weeks with the provider's ledger: the result says since when. Nothing is changed.</p>
    <p><label><input type="checkbox" checked=${isAll} onChange=${() => setAll(!isAll)} /> All operations</label></p>
    <p><button type="button" onClick=${start} aria-disabled=${isRunning}>Reconcile</button>
      <span role="status"> ${isRunning ? 'Comparing …' : ''}</span></p>
    <${FailedBox} problem=${problem} again=${start} />
    ${result !== undefined && html`<${Result} found=${result} />`}`;
};
