/** Operations without a known outcome, and the word of two people for one of them. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { send, useAsk, useAttempt } from '../../api.js';
import { duration, money, paymentPage } from '../../format.js';
import { FailedBox, formOf, html, PaymentLink, Raw, Shown, Time } from '../../parts.js';
import { currentSession, hasScope, isOfAll } from '../../session.js';

/** @import { ResolutionBody, ResolutionRequested, UnresolvedList as Listed } from '../../../../command-api/back-office/by-hand/contract.ts' */
/** @typedef {Listed['unresolved'][number]} Unresolved */
/** @typedef {NonNullable<Unresolved['request']>} Request */
/** @typedef {ResolutionBody | ResolutionRequested} Resolved */

const LIST_MS = 3_000;

/** @param {{ request: Request }} props */
const Waits = ({
  request,
}) => html`<p class="hand">☞ ${request.requestedBy} requested <strong>${request.outcome}</strong>
  ${request.withoutFence ? ' without a fence' : ''}: “${request.evidence}”.
  Another operator can approve it until <${Time} at=${request.expiresAt} />.</p>`;

/** @param {{ one: Unresolved, onResolved: (resolved: Resolved) => void }} props */
const ResolveForm = ({ one, onResolved }) => {
  const { problem, attempt } = useAttempt();
  const [isRequested, setRequested] = useState(false);
  const { paymentId, operationId, request } = one;
  const isOwn = request?.requestedBy === currentSession()?.claims.actor;
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    const form = formOf(event);
    const path = `/ops/v1/payments/${encodeURIComponent(paymentId)}/resolve`;
    const body = {
      outcome: form.get('outcome'),
      evidence: form.get('evidence'),
      operationId,
      ...(form.get('withoutFence') === 'on' && { withoutFence: true }),
    };
    /** @type {Resolved | undefined} */
    const resolved = await attempt(send(path, body));
    if (resolved === undefined) return;
    setRequested('request' in resolved);
    onResolved(resolved);
  };
  return html`${isRequested && html`<p class="finding" role="status">Requested. Nothing is recorded until another operator requests the same.</p>`}
    <${FailedBox} problem=${problem} />
    ${isOwn && html`<p>Your own word waits for another operator.</p>`}
    <details><summary>${request === undefined ? 'Resolve by hand' : 'Approve, or say otherwise'}</summary>
      <form class="resolve" onSubmit=${submit}>
        <p class="hint">Only where the provider will never say it. It is asked once more first.</p>
        <label>Outcome <select name="outcome">
          <option value="approved" selected=${request?.outcome === 'APPROVED'}>approved</option>
          <option value="declined" selected=${request?.outcome === 'DECLINED'}>declined</option>
        </select></label>
        <label>Evidence: where you know it from. It is recorded.
          <textarea name="evidence" required maxlength="1000" rows="2"></textarea></label>
        <label><input type="checkbox" name="withoutFence" checked=${request?.withoutFence} /> Declined although the provider does not promise never to carry it out</label>
        <button type="submit">${request === undefined ? 'Request' : 'Approve'}</button>
      </form>
    </details>`;
};

/** @param {{ one: Unresolved, onResolved: (resolved: Resolved) => void }} props */
const Row = ({ one, onResolved }) => html`<li class="card">
  <h3><${PaymentLink} id=${one.paymentId} /> <span class="state">${one.state}</span></h3>
  <p>${one.operation} of <a href=${paymentPage(one.paymentId)}>${money(one.amountMinor, one.currency)}</a> of ${one.merchantId}, for <time datetime=${one.since}>${duration(Date.now() - Date.parse(one.since))}</time>${' '}
    (since <${Time} at=${one.since} />). The provider was asked <span class="attempts">${one.attempts === 1 ? 'once' : `${one.attempts} times`}</span> in vain${one.nextAttemptAt === null ? '' : html`, next at <${Time} at=${one.nextAttemptAt} />`}.</p>
  ${one.request && html`<${Waits} request=${one.request} />`}
  ${hasScope('ops:resolve') && isOfAll() && one.state !== 'UNCONFIRMED' && html`<${ResolveForm} one=${one} onResolved=${onResolved} />`}
  <${Raw} value=${one} />
</li>`;

/** @param {{ paymentId: string, resolved: Resolved }} props its operation has left the list, so this has the focus */
const Recorded = ({ paymentId, resolved }) => {
  const said = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => said.current?.focus(), [resolved]);
  return html`<p class="finding good" role="status" tabindex="-1" ref=${said}>✓ Recorded: ${resolved.outcome}, the payment <${PaymentLink} id=${paymentId} /> is ${resolved.status}.</p>`;
};

export const UnresolvedSection = () => {
  const loaded = useAsk('/ops/v1/unresolved', LIST_MS);
  const [recorded, setRecorded] = useState(
    /** @type {{ paymentId: string, resolved: Resolved } | undefined} */ (undefined),
  );
  /** @param {Unresolved} one */
  const row = (one) => {
    /** @param {Resolved} resolved */
    const onResolved = (resolved) => {
      if (!('request' in resolved)) setRecorded({ paymentId: one.paymentId, resolved });
      loaded.again();
    };
    return html`<${Row} key=${one.operationId} one=${one} onResolved=${onResolved} />`;
  };
  return html`<h2>Unresolved operations</h2>
    ${recorded && html`<${Recorded} ...${recorded} />`}
    <${Shown} loaded=${loaded} what="what is unresolved">${(
      /** @type {Listed} */ { unresolved, unconfirmed },
    ) => html`
      ${unresolved.length === 0 ? html`<p class="finding good">✓ Nothing is unresolved.</p>` : html`<ul class="cards">${unresolved.map(row)}</ul>`}
      ${unconfirmed.length > 0 && html`<h2>Resolved by hand, not confirmed yet</h2><p>Nothing to do: the service goes on asking the provider.</p><ul class="cards">${unconfirmed.map(row)}</ul>`}`}<//>`;
};
